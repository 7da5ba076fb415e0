import { TEST_AUDIENCE } from '../../control/support/keys.js';
import { copyFile, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import { createPayoutWorker } from '../../../src/control/payout-worker.js';
import { until } from '../../support/until.js';
import { NO_SENDER, problemOf, useDoctor } from '../support/doctor-rig.js';

const doctor = useDoctor();

let dir: string;
/** What the account's keys and its journal are once a worker of this host has sent two payouts. */
let keys: (readonly [string, Buffer])[];
let sent: string;

/** BullMQ's own short-lived keys: brought back, they would stay for good. */
const EXPIRES = /:(limiter|lock|stalled-check)$/;

const journal = (): string => join(dir, 'journal', `${doctor.platformId}.journal`);

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-doctor-journal-'));
  await sendTwo();
  sent = await readFile(journal(), 'utf8');
  const names = (await doctor.client.keys(`${doctor.prefix}*`)).filter((name) => !EXPIRES.test(name));
  keys = await Promise.all(names.map(async (name) => [name, await doctor.client.dumpBuffer(name)] as const));
});

beforeEach(async () => {
  for (const [name, value] of keys) await doctor.client.restore(name, 0, value, 'REPLACE');
  await mkdir(join(dir, 'journal'), { recursive: true });
  await writeFile(journal(), sent);
  doctor.environment['SEND_JOURNAL_DIR'] = join(dir, 'journal');
});

afterAll(async () => {
  await rm(dir, { recursive: true });
});

async function sendTwo(): Promise<void> {
  const { platformId, sandbox, secretKey, redis } = doctor;
  const producer = new PayoutProducer({ platformId, redisUrl: redis.url });
  const worker = await createPayoutWorker({
    redisUrl: redis.url,
    journalDir: join(dir, 'journal'),
    accounts: [
      { platformId, baseUrl: sandbox.url, secretKey, audience: TEST_AUDIENCE, leaseMs: 1_000, quarantineMs: 0 },
    ],
  });
  try {
    const payout = (payoutId: string) => ({ payoutId, paymentId: 1, amount: '1', addressTo: `w-${payoutId}` });
    await producer.enqueueMany([payout('P-1'), payout('P-2')]);
    await until('both are sent', async () => {
      const { queued, sending } = await producer.stats();
      return queued + sending === 0;
    });
  } finally {
    await worker.stop();
    await producer.close();
  }
}

const MISSING = problemOf('journal and ledger', 'knows a journal of this host that has sends');

async function setHost(host: string): Promise<void> {
  const key = `${doctor.prefix}:journals`;
  for (const [journalId, text] of Object.entries(await doctor.client.hgetall(key))) {
    await doctor.client.hset(key, journalId, JSON.stringify({ ...(JSON.parse(text) as object), host }));
  }
}

describe("payouts doctor, where this host's journal has sends and is gone:", () => {
  it('agrees while it is there', async () => {
    expect(await doctor.findings()).toEqual({ code: 0, found: [NO_SENDER] });
    expect((await doctor.run()).out).toContain('they agree on 2 sends');
  });

  it('says where it should be, and what to do', async () => {
    await rm(journal());
    const { code, found } = await doctor.findings();
    expect([code, found]).toEqual([1, [MISSING, NO_SENDER]]);
    expect(found[0]?.detail).toContain(join(dir, 'journal'));
    expect(found[0]?.fix).toMatch(/Restore the file.*audit adopt-journal --account \d+ --reason WHY/);
  });

  it.each<[string, () => Promise<void>]>([
    ['moved', async () => rename(journal(), `${journal()}.moved-elsewhere`)],
    ['emptied', async () => writeFile(journal(), '')],
    ['without its sends', async () => writeFile(journal(), `${(await readFile(journal(), 'utf8')).split('\n')[0]}\n`)],
    ['with its whole folder', async () => rm(join(dir, 'journal'), { recursive: true })],
  ])('a journal that was lost (%s) is a problem', async (_, lose) => {
    await lose();
    expect(await doctor.findings()).toEqual({ code: 1, found: [MISSING, NO_SENDER] });
  });

  it('another SEND_JOURNAL_DIR than the one that it is in is a problem, and its own is named', async () => {
    await mkdir(join(dir, 'other'));
    const { code, found } = await doctor.findings({ SEND_JOURNAL_DIR: join(dir, 'other') });
    expect([code, found]).toEqual([1, [MISSING, NO_SENDER]]);
    expect(found[0]?.fix).toContain(`SEND_JOURNAL_DIR=${join(dir, 'journal')}`);
    // Its file moved with the setting: all is well.
    await copyFile(journal(), join(dir, 'other', `${doctor.platformId}.journal`));
    expect((await doctor.findings()).found).toEqual([NO_SENDER]);
  });

  it('a ledger that lost its count of sends makes it no better', async () => {
    await rm(journal());
    await doctor.client.del(`${doctor.prefix}:sender`);
    expect(await doctor.findings()).toEqual({ code: 1, found: [MISSING, NO_SENDER] });
  });

  it('a journal that was replaced by a new one is a warning until it is given up', async () => {
    const [, ...lines] = (await readFile(journal(), 'utf8')).trimEnd().split('\n');
    // In the format without a chain: the hashes of another journal are others.
    const unchained = lines.map((line) => ({ ...(JSON.parse(line) as object), prev: undefined }));
    const other = [{ v: 2, journalId: 'another-one' }, ...unchained];
    await writeFile(journal(), other.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const { code, found } = await doctor.findings();
    const replaced = expect.objectContaining({ name: 'journal and ledger', status: 'warning' });
    expect([code, found]).toEqual([0, [replaced, NO_SENDER]]);
    expect(found[0]?.detail).toMatch(/the one before it \(\S+\) is gone/);
  });

  it('a journal of a single send counts too', async () => {
    const key = `${doctor.prefix}:journals`;
    for (const [journalId, text] of Object.entries(await doctor.client.hgetall(key))) {
      await doctor.client.hset(
        key,
        journalId,
        JSON.stringify({ ...(JSON.parse(text) as object), sends: 0, token: '' }),
      );
    }
    await rm(journal());
    expect(await doctor.findings()).toEqual({ code: 1, found: [MISSING, NO_SENDER] });
  });

  it('a journal of another host is a warning only', async () => {
    await rm(journal());
    await setHost(`not-${hostname()}`);
    const { code, found } = await doctor.findings();
    expect([code, found]).toEqual([
      0,
      [expect.objectContaining({ name: 'journal and ledger', status: 'warning' }), NO_SENDER],
    ]);
    expect(found[0]?.detail).toContain('the ledger has 2 sends');
  });
});

import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Queue } from 'bullmq';
import { openAccount } from '../../../src/queues/open-account.js';
import { until } from '../../support/until.js';
import { NO_SENDER, problemOf, useDoctor, warningOf } from '../support/doctor-rig.js';

const doctor = useDoctor();
const payout = (payoutId: string) => ({ payoutId, paymentId: 1, amount: '1', addressTo: `w-${payoutId}` });

describe('payouts doctor finds, in the queues:', () => {
  const open = () => openAccount({ platformId: doctor.platformId, redisUrl: doctor.redis.url });

  it.each(['withdraw', 'transactionstatus'])('settings on the %s queue, and its commands remove them', async (name) => {
    const queue = new Queue(name, { connection: { url: doctor.redis.url }, prefix: doctor.prefix });
    await queue.setGlobalConcurrency(5);
    await queue.setGlobalRateLimit(100, 1_000);
    await queue.pause();
    await doctor.client.set(queue.toKey('limiter'), '7');
    const found = await doctor.expectFindings(1, [problemOf(`${name} queue`, 'global concurrency of 5'), NO_SENDER]);
    for (const part of ['global rate limit (100 in 1000 ms)', 'paused', 'never expires'])
      expect(found[0]?.detail).toContain(part);
    const commands = found[0]?.fix?.matchAll(/redis-cli (HDEL|DEL) '([^']+)'((?: (?!&&)\S+)*)/g) ?? [];
    for (const [, command = '', key = '', fields = ''] of commands) {
      await doctor.client.call(command, key, ...fields.split(' ').filter((field) => field !== ''));
    }
    await doctor.expectFindings(0, [NO_SENDER]);
    await queue.rateLimit(60_000);
    await queue.close();
    await doctor.expectFindings(1, [problemOf(`${name} queue`, 'rate limited by hand for another'), NO_SENDER]);
  });

  it('payouts without a job, whichever structure of the queue is missing', async () => {
    const [account, producer] = [open(), doctor.openProducer()];
    const { withdraw, transactionstatus } = account.queues;
    const later = { ...payout('later'), notBefore: new Date(Date.now() + 3_600_000) };
    await producer.enqueueMany([payout('plain'), { ...payout('urgent'), priority: 1 }, later, payout('polled')]);
    await account.ledger.change({ payoutId: 'polled', from: 'queued', to: 'sending' });
    await account.ledger.change({ payoutId: 'polled', from: 'sending', to: 'in_progress', txhash: 'h' });
    // Its job has yet to be added, and its old one has yet to end: neither is missing.
    await doctor.expectFindings(0, [NO_SENDER]);
    await account.queues.removeWithdrawJob({ payoutId: 'polled' });
    await account.queues.addStatusJobs([payout('polled')], 60_000);
    await account.ledger.clearOutbox('in_progress', ['polled']);
    const before = await doctor.client.dbsize();
    expect((await doctor.run()).out).toMatch(
      /✓ withdraw jobs {12}3 jobs for 3 payouts\n.*✓ status jobs {14}1 job for 1 payout\n/,
    );
    for (const [key, name] of [
      ...['wait', 'prioritized', 'delayed'].map((structure) => [withdraw.toKey(structure), 'withdraw jobs'] as const),
      [transactionstatus.toKey('delayed'), 'status jobs'],
    ] as const) {
      await doctor.client.rename(key, 'elsewhere');
      await doctor.expectFindings(0, [NO_SENDER, warningOf(name, '1 of')]);
      await doctor.client.rename('elsewhere', key);
    }
    expect(await doctor.client.dbsize()).toBe(before);
    await producer.close();
    await account.close();
  });

  it('payouts without a job beside a worker, which repairs it', async () => {
    const [account, producer] = [open(), doctor.openProducer()];
    await account.ledger.pause('anna', 'to keep them waiting');
    const worker = await doctor.startWorker(join(doctor.dir, 'journal'));
    await producer.enqueueMany(['P-1', 'P-2', 'P-3'].map(payout));
    await until('a job is active', async () => (await account.queues.withdraw.getActiveCount()) === 1);
    const paused = problemOf('pause', 'to keep them waiting');
    await doctor.expectFindings(1, [paused]);
    await doctor.client.del(account.queues.withdraw.toKey('wait'));
    const found = await doctor.findings();
    for (const each of [{ close: async () => worker.stop() }, producer, account]) await each.close();
    const jobless = problemOf('withdraw jobs', '2 of 3 payouts have no job');
    expect(found).toEqual({ code: 1, found: [jobless, paused] });
    expect(found.found[0]?.fix).toContain('within a minute');
  });
});

describe("payouts doctor, where this host's journal has sends and is gone:", () => {
  let dir: string;
  /** What the account's keys and its journal are once a worker of this host has sent two payouts. */
  let keys: (readonly [string, Buffer])[];
  let sent: string;
  /** BullMQ's own short-lived keys: brought back, they would stay for good. */
  const EXPIRES = /:(limiter|lock|stalled-check)$/;
  const journal = (folder = 'journal'): string => join(dir, folder, `${doctor.platformId}.journal`);
  const MISSING = [problemOf('journal and ledger', 'knows a journal of this host that has sends'), NO_SENDER];

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'payouts-doctor-journal-'));
    const producer = doctor.openProducer();
    const worker = await doctor.startWorker(join(dir, 'journal'));
    await producer.enqueueMany(['P-1', 'P-2'].map(payout));
    await until('both are sent', async () => {
      const { queued, sending } = await producer.stats();
      return queued + sending === 0;
    });
    await worker.stop();
    await producer.close();
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

  afterAll(async () => rm(dir, { recursive: true }));

  /** Changes what the ledger knows of each journal. */
  async function alterKnown(changes: object): Promise<void> {
    const key = `${doctor.prefix}:journals`;
    for (const [journalId, text] of Object.entries(await doctor.client.hgetall(key))) {
      await doctor.client.hset(key, journalId, JSON.stringify({ ...(JSON.parse(text) as object), ...changes }));
    }
  }

  it.each<[string, () => Promise<unknown>]>([
    ['with its whole folder', async () => rm(join(dir, 'journal'), { recursive: true })],
    ['without its sends', async () => writeFile(journal(), `${sent.split('\n')[0]}\n`)],
    ['and the ledger too', async () => Promise.all([rm(journal()), doctor.client.del(`${doctor.prefix}:sender`)])],
    ['after a single send', async () => Promise.all([rm(journal()), alterKnown({ sends: 0, token: '' })])],
  ])('one that was lost (%s) is a problem: says where it should be', async (_, lose) => {
    await lose();
    const found = await doctor.expectFindings(1, MISSING);
    expect(found[0]?.detail).toContain(join(dir, 'journal'));
    expect(found[0]?.fix).toMatch(/Restore the file.*audit adopt-journal --account \d+ --reason WHY/);
  });

  it('another SEND_JOURNAL_DIR than the one that it is in is a problem', async () => {
    await mkdir(join(dir, 'other'));
    const found = await doctor.expectFindings(1, MISSING, { SEND_JOURNAL_DIR: join(dir, 'other') });
    expect(found[0]?.fix).toContain(`SEND_JOURNAL_DIR=${join(dir, 'journal')}`);
    // Its file moved with the setting: all is well.
    await copyFile(journal(), journal('other'));
    await doctor.expectFindings(0, [NO_SENDER]);
    expect((await doctor.run()).out).toContain('they agree on 2 sends');
  });

  it('one that was replaced by a new one, or is of another host, is a warning only', async () => {
    const [, ...lines] = sent.trimEnd().split('\n');
    // In the format without a chain: the hashes of another journal are others.
    const unchained = lines.map((line) => ({ ...(JSON.parse(line) as object), prev: undefined }));
    const other = [{ v: 2, journalId: 'another-one' }, ...unchained];
    await writeFile(journal(), other.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const found = await doctor.expectFindings(0, [warningOf('journal and ledger', ''), NO_SENDER]);
    expect(found[0]?.detail).toMatch(/the one before it \(\S+\) is gone/);
    await rm(journal());
    await alterKnown({ host: `not-${hostname()}` });
    await doctor.expectFindings(0, [warningOf('journal and ledger', 'the ledger has 2 sends'), NO_SENDER]);
  });
});

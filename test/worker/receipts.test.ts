import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { signText } from '../../src/control/keys/ed25519.js';
import { formatReceipt, receiptOf } from '../../src/control/intents/receipt.js';
import { NOTIFY_GROUP } from '../../src/ledger/reads/state-events.js';
import type { Payout } from '../../src/ledger/payout.js';
import { parseRecord } from '../../src/ledger/payout-record.js';
import { toReceiptFields } from '../../src/ledger/control-record.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { connectRedis, closeRedis, type RedisClient } from '../../src/base/redis.js';
import { runInProcess } from '../cli/support/in-process.js';
import { keyEntry, testKey, type KeyEntry, TEST_AUDIENCE } from '../control/support/keys.js';
import { until } from '../support/until.js';
import type { Notification } from '../../src/notifications/notification.js';
import { startNotify } from '../notifications/support/notify-process.js';
import { startReceiver } from '../notifications/support/receiver.js';
import { endAllWorkers } from './support/worker-process.js';
import { openWorld, type PayoutWorld } from './support/payout-world.js';

/**
 * A real worker with a key pays two payouts, signed by a producer; then someone with full access to Redis alters what it
 * left there, and a producer with the keyring reads it.
 */

const [SHOP, WORKER, OTHER_WORKER] = [testKey(1), testKey(2), testKey(3)];
const ENTRIES = [
  keyEntry(SHOP),
  keyEntry(WORKER, { name: 'worker-1', role: 'worker', person: 'Host 1' }),
  keyEntry(OTHER_WORKER, { name: 'worker-2', role: 'worker', person: 'Host 2', revoked: true }),
];
const FAILS = 'wallet-failsxxxxxxxxxxxxxxxxxxxxxxxxxxxx';
const WAIT = { timeoutMs: 40_000 };

let world: PayoutWorld;
let redis: RedisClient;
let dir: string;
let keysFile: string;
let reader: PayoutProducer;
const readers: PayoutProducer[] = [];
/** What the worker left of each payout. */
const left = new Map<string, Record<string, string>>();

async function writeKeys(name: string, keys: readonly KeyEntry[]): Promise<string> {
  const file = join(dir, name);
  await writeFile(file, JSON.stringify({ version: 1, keys }), { mode: 0o600 });
  return file;
}

/** A producer with this keyring. */
async function readerWith(name: string, keys: readonly KeyEntry[]): Promise<PayoutProducer> {
  const producer = new PayoutProducer({
    redisUrl: world.redisUrl,
    platformId: world.platformId,
    keysFile: await writeKeys(name, keys),
    audience: TEST_AUDIENCE,
  });
  readers.push(producer);
  return producer;
}

const recordKey = (payoutId: string): string => `{payouts:${world.platformId}}:payout:${payoutId}`;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-receipts-'));
  world = await openWorld({ sandbox: { failAddresses: [FAILS] } });
  redis = connectRedis(world.redisUrl, 'commands');
  const keyFile = join(dir, 'worker-1.pem');
  await writeFile(keyFile, WORKER.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 });
  keysFile = await writeKeys('keys.json', ENTRIES);
  const worker = world.startWorker({
    environment: {
      PAYOUT_KEYS_FILE: keysFile,
      PAYOUT_WORKER_KEY_FILE: keyFile,
      PAYOUT_WORKER_KEY_NAME: 'worker-1',
    },
  });
  // What was signed before the worker's journal was begun is held.
  await until('it sends', () => worker.log().includes('acquired sender lease'));
  reader = await readerWith('reader.json', ENTRIES);
  const shop = new PayoutProducer({
    redisUrl: world.redisUrl,
    platformId: world.platformId,
    signingKey: { name: 'shop', privateKey: SHOP },
    audience: TEST_AUDIENCE,
  });
  readers.push(shop);
  const common = { paymentId: 1, amount: '0.01', metadata: { order: 7 } };
  await shop.enqueue({ payoutId: 'paid', addressTo: 'wallet-paidxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', ...common });
  await shop.enqueue({ payoutId: 'lost', addressTo: FAILS, ...common });
  for (const payoutId of ['paid', 'lost']) {
    const { state, held } = await shop.waitFor(payoutId, WAIT);
    expect({ state, held }).toEqual({ state: payoutId === 'paid' ? 'completed' : 'failed' });
    left.set(payoutId, await redis.hgetall(recordKey(payoutId)));
  }
}, 60_000);

afterAll(async () => {
  await endAllWorkers();
  await Promise.all(readers.map(async (each) => each.close()));
  await closeRedis(redis);
  await world.close();
  await rm(dir, { recursive: true, force: true });
});

/** Alters the record, as anyone who can write to Redis, and reads the payout; the record is put back afterwards. */
async function altered(payoutId: string, fields: Record<string, string | undefined>): Promise<Payout> {
  const key = recordKey(payoutId);
  try {
    for (const [field, value] of Object.entries(fields)) {
      await (value === undefined ? redis.hdel(key, field) : redis.hset(key, field, value));
    }
    const payout = await reader.get(payoutId);
    if (payout === undefined) throw new Error('it is gone');
    return payout;
  } finally {
    await redis.del(key);
    await redis.hset(key, left.get(payoutId) ?? {});
  }
}

async function payoutOf(payoutId: string): Promise<Payout> {
  return parseRecord(payoutId, await redis.hgetall(recordKey(payoutId)));
}

/** A receipt that says the very same, by another key. */
async function signedAnew(payoutId: string, key: string, privateKey = WORKER): Promise<Record<string, string>> {
  const payout = await payoutOf(payoutId);
  const at = payout.updatedAt;
  const text = formatReceipt(
    world.platformId,
    receiptOf(world.platformId, payout, payout.state, { at, audience: TEST_AUDIENCE }),
  );
  const [receipt = '', first = '', receiptRest = '', rest = ''] = toReceiptFields({
    ...{ key, at, audience: TEST_AUDIENCE },
    signature: signText(text, privateKey),
  });
  return { [receipt]: first, [receiptRest]: rest };
}

describe('a payout that a worker with a key paid', () => {
  it('has a receipt that verifies, completed and failed, however it is read', async () => {
    const paid = await reader.get('paid');
    expect(paid).toMatchObject({
      state: 'completed',
      verified: true,
      receipt: { key: 'worker-1', at: paid?.updatedAt, signature: expect.stringMatching(/^[\w-]{86}$/) },
    });
    expect(await reader.get('lost')).toMatchObject({ state: 'failed', verified: true });
    expect(await reader.waitFor('lost', WAIT)).toMatchObject({ verified: true });
    expect(await reader.getByTxhash(paid?.txhash ?? '')).toMatchObject({ payoutId: 'paid', verified: true });
    expect((await reader.list({ state: 'completed' })).payouts).toMatchObject([{ verified: true }]);
  });

  it('says nothing of it to a reader without a keyring', async () => {
    expect(await world.producer.get('paid')).not.toHaveProperty('verified');
  });

  it('is stored compactly', async () => {
    expect(await redis.object('ENCODING', recordKey('paid'))).toBe('listpack');
  });

  it.each([
    ['state', 'lost', { state: 'completed' }],
    ['state', 'paid', { state: 'failed' }],
    ['txhash', 'paid', { txhash: 'another' }],
    ['txhash, which is gone', 'paid', { txhash: undefined }],
    ['attempt', 'paid', { attempt: '2' }],
    ['amount', 'paid', { amount: '0.02' }],
    ['address', 'paid', { addressTo: 'wallet-thiefxxxxxxxxxxxxxxxxxxxxxxxxxxxx' }],
    ['payment id', 'paid', { paymentId: '2' }],
    ['payment id, in another text', 'paid', { paymentId: '1.0' }],
    ['metadata', 'paid', { metadata: '{"order":8}' }],
    ['symbol', 'paid', { symbol: 'USD' }],
    ['reference, which was not there', 'paid', { reference: 'x' }],
    ['time', 'paid', { h3: '1795404231000\tcompleted' }],
    ["producer's signature", 'paid', { sig: undefined }],
    ['receipt, which is gone', 'paid', { receipt: undefined }],
    ['receipt, half of which is gone', 'paid', { receiptRest: undefined }],
    ['receipt, whose key is none', 'paid', { receipt: '<b>\u001b x' }],
    ['address, with a line break', 'paid', { addressTo: 'a\nb' }],
  ])('is not verified with an altered %s', async (_name, payoutId, fields) => {
    expect(await altered(payoutId, {})).toMatchObject({ verified: true });
    expect(await altered(payoutId, fields)).toMatchObject({ verified: false });
  });

  it('is not verified with the receipt of another payout', async () => {
    const { receipt, receiptRest } = left.get('lost') ?? {};
    expect(await altered('paid', { receipt, receiptRest })).toMatchObject({ verified: false });
  });

  it('is not verified as a copy under another id', async () => {
    await redis.hset(recordKey('copy'), left.get('paid') ?? {});
    expect(await reader.get('copy')).toMatchObject({ state: 'completed', verified: false });
    await redis.del(recordKey('copy'));
  });

  it('is not verified by a receipt of anyone but a worker of the keyring', async () => {
    expect(await altered('paid', await signedAnew('paid', 'worker-1'))).toMatchObject({ verified: true });
    expect(await altered('paid', await signedAnew('paid', 'shop', SHOP))).toMatchObject({ verified: false });
    expect(await altered('paid', await signedAnew('paid', 'worker-1', SHOP))).toMatchObject({ verified: false });
    expect(await altered('paid', await signedAnew('paid', 'worker-2', OTHER_WORKER))).toMatchObject({
      verified: false,
    });
    expect(await altered('paid', await signedAnew('paid', 'nobody', testKey(9)))).toMatchObject({ verified: false });
  });

  it.each([
    ['that is revoked', { revoked: true }, false],
    ['that ended before', { notAfter: '2020-01-01T00:00:00Z' }, false],
    ['that begins later', { notBefore: '2200-01-01T00:00:00Z' }, false],
    ['that ended since', { notAfter: '2199-01-01T00:00:00Z', notBefore: '2020-01-01T00:00:00Z' }, true],
  ])('of a key %s', async (name, change, verified) => {
    const [shop, worker] = ENTRIES as [KeyEntry, KeyEntry];
    const other = await readerWith(`${name}.json`, [shop, { ...worker, ...change }]);
    expect(await other.get('paid')).toMatchObject({ verified });
  });

  it('says nothing of a state that no worker signs', async () => {
    expect(await altered('paid', { state: 'rejected' })).not.toHaveProperty('verified');
    expect(await altered('paid', { state: 'queued' })).not.toHaveProperty('verified');
  });
});

describe('payouts get and list', () => {
  const run = async (...args: string[]): Promise<string> => {
    const keyring = { PAYOUT_KEYS_FILE: keysFile, GATEWAY_PLATFORM_ID: String(world.platformId) };
    const { code, stdout } = await runInProcess(args, keyring);
    expect(code).toBe(0);
    return stdout;
  };

  it('say who signed it', async () => {
    expect(await run('get', 'paid')).toMatch(/ {3}receipt +verified by worker worker-1\n/);
    expect(JSON.parse(await run('get', 'paid', '--json'))).toMatchObject({ verified: true });
    expect(JSON.parse(await run('list', '--state', 'failed', '--json'))).toMatchObject({ verified: true });
  });

  it('say why it is not verified, and end with 0', async () => {
    await redis.hset(recordKey('paid'), { amount: '5' });
    expect(await run('get', 'paid')).toMatch(
      / {3}receipt +NOT VERIFIED: the signature of key "worker-1" is not over it/,
    );
    expect(JSON.parse(await run('list', '--state', 'completed', '--json'))).toMatchObject({ verified: false });
    await redis.hset(recordKey('paid'), left.get('paid') ?? {});
  });

  it('say nothing without a keyring', async () => {
    const { stdout } = await runInProcess(['get', 'paid', '--json'], { GATEWAY_PLATFORM_ID: String(world.platformId) });
    expect(JSON.parse(stdout)).not.toHaveProperty('verified');
  });
});

it('a webhook says of each final state whether a worker signed it', async () => {
  const receiver = await startReceiver();
  const notify = await startNotify(world.redisUrl, world.platformId, receiver.url, {
    ...{ PAYOUT_KEYS_FILE: keysFile, PAYOUT_AUDIENCE: TEST_AUDIENCE, NOTIFY_EVENTS: 'completed,failed,cancelled' },
  });
  try {
    const events = `{payouts:${world.platformId}}:events`;
    await until('it follows', async () => JSON.stringify(await redis.xinfo('GROUPS', events)).includes(NOTIFY_GROUP));
    // A payout that was never paid, and events that say so.
    const record = { ...(left.get('paid') ?? {}), txhash: 'ab'.repeat(32) };
    await redis.hset(recordKey('forged'), record);
    await redis.hset(recordKey('open'), { ...record, state: 'cancelled' });
    const to = { paid: 'completed', lost: 'failed', forged: 'completed', open: 'cancelled' };
    for (const [payoutId, state] of Object.entries(to)) {
      const change = ['type', 'state', 'payoutId', payoutId, 'from', 'in_progress', 'to', state];
      await redis.xadd(events, '*', ...change, 'at', String(Date.now()), 'by', '', 'reason', '');
    }
    await until('all arrived', () => receiver.received.length === 4);
    const posted = receiver.received.map(({ body }) => JSON.parse(body) as Notification);
    expect(posted.map(({ payout }) => [payout?.payoutId, payout?.verified])).toEqual([
      ['paid', true],
      ['lost', true],
      ['forged', false],
      ['open', undefined],
    ]);
    expect(posted.map(({ text }) => text.includes('NOT VERIFIED'))).toEqual([false, false, true, false]);
  } finally {
    notify.kill('SIGTERM');
    await notify.result;
    await receiver.close();
    await redis.del(recordKey('forged'), recordKey('open'));
  }
});

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Logger } from '../../src/base/logger.js';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { formatReceipt, receiptOf } from '../../src/control/intents/receipt.js';
import { PayoutProducer, type PayoutProducerOptions } from '../../src/control/payout-producer.js';
import { createPayoutWorker } from '../../src/control/payout-worker.js';
import { toReceiptFields } from '../../src/ledger/control-record.js';
import { parseRecord } from '../../src/ledger/payout-record.js';
import { NOTIFY_GROUP } from '../../src/ledger/reads/state-events.js';
import type { Notification } from '../../src/notifications/notification.js';
import { writeKeyring, writePrivateKey } from '../control/support/key-files.js';
import { keyEntry, testKey, type KeyEntry, TEST_AUDIENCE as audience } from '../control/support/keys.js';
import { runInProcess } from '../cli/support/in-process.js';
import { startNotify } from '../notifications/support/notify-process.js';
import { startReceiver } from '../notifications/support/receiver.js';
import { until } from '../support/until.js';
import { openWorld, SECRET_KEY, untilLeased, worldOfTest, type PayoutWorld } from './support/payout-world.js';
import { signText } from '../control/support/sign-at-once.js';
import { keySigner } from '../../src/control/keys/signing-key.js';

/** A worker with a key pays two signed payouts; then someone alters them in Redis, and a producer with the keyring reads. */

const [SHOP, WORKER] = [testKey(1), testKey(2)];
const SHOP_ENTRY = keyEntry(SHOP);
const WORKER_ENTRY = keyEntry(WORKER, { name: 'worker-1', role: 'worker', person: 'Host 1' });
const FAILS = 'wallet-failsxxxxxxxxxxxxxxxxxxxxxxxxxxxx';
const WAIT = { timeoutMs: 40_000 };

let world: PayoutWorld;
let redis: RedisClient;
let keysFile: string;
let reader: PayoutProducer;
const producers: PayoutProducer[] = [];
const left = new Map<string, Record<string, string>>();

const writeKeys = async (...keys: readonly KeyEntry[]) =>
  writeKeyring(join(world.dir, `keys-${randomUUID()}.json`), keys);

function openProducer(options: Partial<PayoutProducerOptions>) {
  const producer = new PayoutProducer({ ...world.account, audience, ...options });
  producers.push(producer);
  return producer;
}

const recordKey = (payoutId: string) => `{payouts:${world.platformId}}:payout:${payoutId}`;

beforeAll(async () => {
  world = await openWorld({ sandbox: { failAddresses: [FAILS] } });
  redis = connectRedis(world.redisUrl, 'commands');
  const keyFile = await writePrivateKey(join(world.dir, 'worker-1.pem'), WORKER);
  keysFile = await writeKeys(SHOP_ENTRY, WORKER_ENTRY);
  const key = { PAYOUT_WORKER_SIGNER: keyFile, PAYOUT_WORKER_SIGNER_NAME: 'worker-1' };
  // What was signed before the worker's journal was begun is held.
  await untilLeased(world.startWorker({ environment: { PAYOUT_KEYS_FILE: keysFile, ...key } }));
  reader = openProducer({ keysFile });
  const shop = openProducer({ signer: keySigner('shop', SHOP) });
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
  await Promise.all(producers.map(async (each) => each.close()));
  await closeRedis(redis);
  await world.close();
});

/** Reads the payout with an altered record, which is put back afterwards. */
async function altered(payoutId: string, fields: Record<string, string | undefined>) {
  const key = recordKey(payoutId);
  try {
    for (const [field, value] of Object.entries(fields)) {
      await (value === undefined ? redis.hdel(key, field) : redis.hset(key, field, value));
    }
    return await reader.get(payoutId);
  } finally {
    await redis.del(key);
    await redis.hset(key, left.get(payoutId) ?? {});
  }
}

/** A receipt that says the very same, by another key. */
async function signedAnew(key: string, privateKey = WORKER): Promise<Record<string, string>> {
  const { platformId } = world;
  const payout = parseRecord('paid', await redis.hgetall(recordKey('paid')));
  const at = payout.updatedAt;
  const text = formatReceipt(platformId, receiptOf(platformId, payout, payout.state, { at, audience }));
  const signature = signText(text, privateKey);
  const [receipt = '', first = '', receiptRest = '', rest = ''] = toReceiptFields({ key, at, audience, signature });
  return { [receipt]: first, [receiptRest]: rest };
}

describe('a payout that a worker with a key paid', () => {
  it('has a receipt that verifies, completed and failed, and is stored compactly', async () => {
    const paid = await reader.get('paid');
    const receipt = { key: 'worker-1', at: paid?.updatedAt, signature: expect.stringMatching(/^[\w-]{86}$/) };
    expect(paid).toMatchObject({ state: 'completed', verified: true, receipt });
    expect(await reader.get('lost')).toMatchObject({ state: 'failed', verified: true });
    expect((await reader.list({ state: 'completed' })).payouts).toMatchObject([{ verified: true }]);
    expect(await redis.object('ENCODING', recordKey('paid'))).toBe('listpack');
    expect(await world.producer.get('paid')).not.toHaveProperty('verified');
  });

  it('is not verified with an altered field, another receipt, or under another id', async () => {
    const { receipt, receiptRest } = left.get('lost') ?? {};
    const alterations: readonly Record<string, string | undefined>[] = [
      ...[
        { gatewayId: 'another' },
        { txhash: 'another' },
        { txhash: undefined },
        { attempt: '2' },
        { amount: '0.02' },
        { addressTo: 'wallet-thief' },
      ],
      ...[{ paymentId: '2' }, { metadata: '{"order":8}' }, { reference: 'x' }, { h3: 'cmwtk3v5j' }],
      ...[{ sig: undefined }, { receiptRest: undefined }, { addressTo: 'a\nb' }, { receipt, receiptRest }],
    ];
    for (const fields of alterations)
      expect([fields, (await altered('paid', fields))?.verified]).toEqual([fields, false]);
    expect(await altered('lost', { state: 'completed' })).toMatchObject({ verified: false });
    await redis.hset(recordKey('copy'), left.get('paid') ?? {});
    expect(await reader.get('copy')).toMatchObject({ state: 'completed', verified: false });
    await redis.del(recordKey('copy'));
    // No worker signs this state.
    expect(await altered('paid', { state: 'rejected' })).not.toHaveProperty('verified');
  });

  it('is verified only by a receipt of a worker of the keyring, whose key counted at its time', async () => {
    expect(await altered('paid', await signedAnew('worker-1', WORKER))).toMatchObject({ verified: true });
    for (const name of ['shop', 'worker-1']) {
      expect(await altered('paid', await signedAnew(name, SHOP))).toMatchObject({ verified: false });
    }
    for (const change of [{ revoked: true }, { notAfter: '2020-01-01T00:00:00Z' }]) {
      const keys = await writeKeys(SHOP_ENTRY, { ...WORKER_ENTRY, ...change });
      expect(await openProducer({ keysFile: keys }).get('paid')).toMatchObject({ verified: false });
    }
  });
});

it('payouts get says who signed it, or why it is not verified', async () => {
  const env = { GATEWAY_PLATFORM_ID: String(world.platformId), PAYOUT_KEYS_FILE: keysFile };
  const run = async () => (await runInProcess(['get', 'paid'], env)).stdout;
  expect(await run()).toMatch(/ {3}receipt +verified by worker worker-1\n/);
  await redis.hset(recordKey('paid'), { amount: '5' });
  expect(await run()).toMatch(/ {3}receipt +NOT VERIFIED: the signature of key "worker-1" is not over it/);
  await redis.hset(recordKey('paid'), left.get('paid') ?? {});
});

it('a webhook says of each final state whether a worker signed it', async () => {
  const receiver = await startReceiver();
  const notify = await startNotify(world.redisUrl, world.platformId, receiver.url, {
    ...{ PAYOUT_KEYS_FILE: keysFile, PAYOUT_AUDIENCE: audience, NOTIFY_EVENTS: 'completed' },
  });
  try {
    const events = `{payouts:${world.platformId}}:events`;
    await until('it follows', async () => JSON.stringify(await redis.xinfo('GROUPS', events)).includes(NOTIFY_GROUP));
    await redis.hset(recordKey('forged'), { ...(left.get('paid') ?? {}), gatewayId: 'ab'.repeat(32) });
    for (const payoutId of ['paid', 'forged']) {
      const change = ['type', 'state', 'payoutId', payoutId, 'from', 'in_progress', 'to', 'completed'];
      await redis.xadd(events, '*', ...change, 'at', String(Date.now()), 'by', '', 'reason', '');
    }
    await until('all arrived', () => receiver.received.length === 2);
    const posted = receiver.received.map(({ body }) => JSON.parse(body) as Notification);
    expect(posted.map(({ payout, text }) => [payout?.payoutId, payout?.verified, /NOT VERIFIED/.test(text)])).toEqual([
      ['paid', true, false],
      ['forged', false, true],
    ]);
  } finally {
    notify.kill('SIGTERM');
    await notify.result;
    await receiver.close();
    await redis.del(recordKey('forged'));
  }
});

it('a worker whose own signer never answers starts, and says that it cannot sign', async () => {
  const { account, sandbox, dir } = await worldOfTest();
  const logged: unknown[] = [];
  const log = (_: unknown, message: string) => void logged.push(message);
  const logger: Logger = { debug: log, info: log, warn: log, error: log, child: () => logger };
  const access = { platformId: account.platformId, baseUrl: sandbox.url, secretKey: SECRET_KEY, audience };
  const worker = await createPayoutWorker({
    ...{ redisUrl: account.redisUrl, journalDir: join(dir, 'journal'), keysFile, logger },
    accounts: [{ ...access, leaseMs: 500, quarantineMs: 0 }],
    receiptSigner: { name: 'worker-1', sign: async () => new Promise(() => undefined) },
  });
  // A stop does not wait for a journal that is being opened, which would still write into the folder of the test.
  await until('the worker sends', () => worker.accounts[0]?.status.role === 'sender');
  await worker.stop();
  expect(logged).toContain('final states cannot be signed now: they get no receipt meanwhile');
}, 30_000);

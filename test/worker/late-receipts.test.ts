import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { keySigner } from '../../src/control/keys/signing-key.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { LedgerKeys } from '../../src/ledger/keys.js';
import { writeKeyring } from '../control/support/key-files.js';
import { keyEntry, TEST_AUDIENCE as audience, testKey } from '../control/support/keys.js';
import { startAgentProxy, startSshAgent } from '../control/support/ssh-agent.js';
import { until } from '../support/until.js';
import { openWorld, type PayoutWorld, untilLeased } from './support/payout-world.js';

/** A worker whose ssh-agent goes away and comes back. */

const WAIT = { timeoutMs: 40_000 };

let world: PayoutWorld;
let redis: RedisClient;
let keys: LedgerKeys;
let producer: PayoutProducer;
let agent: Awaited<ReturnType<typeof startSshAgent>>;
let environment: Record<string, string>;
let reachable: { close(): Promise<void> } | undefined;

const socket = () => join(world.dir, 'reached');
const come = async () => (reachable = await startAgentProxy(socket(), agent.socket));
const leave = async () => {
  await reachable?.close();
  reachable = undefined;
};

/** Pays one while the signer is away. */
async function payUnsigned(payoutId: string) {
  const payment = { paymentId: 1, amount: '0.01', addressTo: 'wallet-paidxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' };
  await producer.enqueue({ payoutId, ...payment });
  const ended = await producer.waitFor(payoutId, WAIT);
  expect(ended).toMatchObject({ state: 'completed', verified: false });
  expect(ended).not.toHaveProperty('receipt');
  return ended;
}

const isVerified = async (payoutId: string) => (await producer.get(payoutId))?.verified === true;
const owed = async () => redis.zrange(keys.unreceipted, '0', '-1');

beforeAll(async () => {
  world = await openWorld();
  redis = connectRedis(world.redisUrl, 'commands');
  keys = new LedgerKeys(world.platformId);
  agent = await startSshAgent(world.dir);
  const host = {
    ...keyEntry(testKey(2), { name: 'worker-1', role: 'worker', person: 'Host 1' }),
    public: agent.public,
  };
  const keysFile = await writeKeyring(join(world.dir, 'keys.json'), [keyEntry(testKey(1)), host]);
  environment = {
    PAYOUT_KEYS_FILE: keysFile,
    PAYOUT_WORKER_SIGNER: agent.from,
    PAYOUT_WORKER_SIGNER_NAME: 'worker-1',
    SSH_AUTH_SOCK: socket(),
  };
  producer = new PayoutProducer({ ...world.account, audience, keysFile, signer: keySigner('shop', testKey(1)) });
}, 60_000);

afterAll(async () => {
  await leave();
  await agent.stop();
  await producer.close();
  await closeRedis(redis);
  await world.close();
});

it('a payment that ended while the signer was away has its receipt once the signer is back', async () => {
  const worker = world.startWorker({ environment });
  await untilLeased(worker);
  const ended = await payUnsigned('first');
  expect(await owed()).toEqual(['first']);
  await come();
  await until('it is verified', async () => isVerified('first'));
  // Of the time at which it ended.
  expect(await producer.get('first')).toMatchObject({ updatedAt: ended.updatedAt, receipt: { at: ended.updatedAt } });
  await until('nothing is owed', async () => (await owed()).length === 0);
  await leave();
  await payUnsigned('second');
  await worker.end();
}, 60_000);

it('so it does if the worker was killed meanwhile, and nothing in Redis is believed', async () => {
  const paid = await redis.hgetall(keys.payout('first'));
  const { receipt, receiptRest, ...unsigned } = paid;
  expect([receipt, receiptRest]).toEqual([expect.any(String), expect.any(String)]);
  // The same payment under another id, another end, and the payment of another payout.
  await redis.hset(keys.payout('copy'), unsigned);
  const { gatewayId = '' } = await redis.hgetall(keys.payout('second'));
  await redis.hset(keys.payout('first'), { ...unsigned, state: 'failed' });
  await redis.hdel(keys.payout('first'), 'receipt', 'receiptRest');
  await redis.hset(keys.payout('unsent'), { ...unsigned, amount: '7', gatewayId });
  await redis.zadd(keys.unreceipted, 1, 'copy', 2, 'first', 3, 'unsent', 4, 'none');
  await come();
  await untilLeased(world.startWorker({ environment }));
  await until('it is verified', async () => isVerified('second'));
  await until('nothing is owed', async () => (await owed()).length === 0);
  for (const payoutId of ['copy', 'first', 'unsent']) {
    expect(await redis.hexists(keys.payout(payoutId), 'receipt')).toBe(0);
  }
}, 60_000);

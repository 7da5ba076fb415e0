import { mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { findFreePort, startLocalRedis } from '../../../src/sandbox/local-redis.js';
import { createFakeClock, type FakeClock } from '../../doubles/fake-clock.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { numbered } from '../../support/account.js';
import { until } from '../../support/until.js';
import type { Rig } from '../rig.js';
import { alike, told, warned, type Way } from './way.js';

const enqueueOne = async ({ world }: Rig) => world.enqueue(1);

const REDIS_DOWN = told('redisDown', 'RedisDown', [503, '"redis":"unavailable"'], [1, 'Redis', 'not reachable']);
const refuses = (why: string, full = why) =>
  told('redisRefused', 'RedisRefusesWrites', [503, `Redis refuses writes: ${why}`], [1, 'Redis writes', full]);

export const REDIS_WAYS: readonly Way[] = [
  { name: 'Redis is down', stop: 'redisDown', happens: async ({ redis }) => redis.stop(), told: REDIS_DOWN },
  {
    name: 'Redis hangs',
    happens: async ({ redis }) => Promise.resolve(process.kill(redis.pid, 'SIGSTOP')),
    told: REDIS_DOWN,
  },
  {
    name: 'Redis became a read-only replica',
    happens: async ({ client }) => client.replicaof('127.0.0.1', await findFreePort()),
    told: refuses('it is a read-only replica'),
  },
  {
    name: 'Redis is full',
    stop: 'redisRefuses',
    happens: async ({ client }) => client.config('SET', 'maxmemory', '1mb'),
    told: refuses('it is full', 'it is full (maxmemory)'),
  },
  {
    name: 'Redis cannot save to its disk',
    happens: async ({ client, redis }) => {
      // Nothing can be saved under the name of a folder.
      await mkdir(join(redis.dir, 'dump.rdb'));
      await client.config('SET', 'save', '3600 1');
      await client.bgsave();
    },
    told: refuses('it cannot write to its disk'),
  },
  {
    name: 'Redis has fewer replicas than its min-replicas-to-write',
    happens: async ({ client }) => client.config('SET', 'min-replicas-to-write', '1'),
    told: refuses('too few of its replicas are connected'),
  },
  {
    name: 'Redis came back empty',
    stop: 'objection',
    happens: async (rig) => {
      await rig.pay(1);
      await rig.client.flushall();
    },
    told: alike('mismatch', 'Objection SendingRefused NoSender', 503, [1, 'journal and ledger'], 'another ledger'),
  },
  {
    name: 'Redis may forget what was sent, and so a worker ends at its start',
    happens: async (rig) => rig.replaceWorker(async () => rig.client.config('SET', 'appendfsync', 'no')),
    told: told('silent', 'WorkerMissing', ['none', ''], [1, 'Redis keeps its data', 'appendfsync is no']),
  },
  {
    name: 'Redis may forget what was sent',
    stop: 'redisForgets',
    happens: async ({ client }) => client.config('SET', 'maxmemory-policy', 'allkeys-lru'),
    told: alike('redisRefused', 'RedisMayForget', 503, [1, 'Redis keeps its data'], 'maxmemory-policy is allkeys-lru'),
  },
  {
    name: 'A replica of Redis is missing',
    stop: 'replicas',
    environment: { REDIS_REPLICAS: '1' },
    prepare: async ({ redis, client, others }) => {
      await client.config('SET', 'repl-diskless-sync-delay', '0');
      const replica = await startLocalRedis({ args: ['--replicaof', `127.0.0.1 ${new URL(redis.url).port}`] });
      others.push({ close: async () => replica.stop() });
      await until('the replica is online', async () => /slave0:.*state=online/.test(await client.info('replication')));
    },
    happens: async ({ others }) => others[0]?.close(),
    told: told(
      'replicasMissing',
      'ReplicasMissing',
      [503, 'Only 0 of 1 replicas of Redis acknowledge writes'],
      [1, 'Redis replicas', 'only 0 of 1 acknowledge writes'],
    ),
  },
];

/** More than are sent while an operator is told. */
async function enqueueMany({ world }: Rig) {
  await world.enqueue(100);
  const notBefore = new Date(Date.now() + 3_600_000).toISOString();
  const others = numbered(50, 'Q').flatMap((id) => [
    { ...aPayout(`${id}-urgent`), priority: 1 },
    { ...aPayout(`${id}-later`), notBefore },
  ]);
  await world.producer.enqueueMany(others);
}

/** The queues or the outbox in Redis are not as the worker left them, or BullMQ does not work. */
export const QUEUE_WAYS: readonly Way[] = [
  {
    name: 'Someone deletes the lists of jobs in Redis',
    happens: async (rig) => {
      await enqueueMany(rig);
      const structures = ['wait', 'prioritized', 'delayed'];
      await rig.client.del(structures.map((structure) => `${rig.prefix}:withdraw:${structure}`));
    },
    repeats: true,
    told: warned('sending', 'JobsRecreated', 'missing in Redis had to be added again'),
  },
  {
    name: 'The record of the next payout cannot be read',
    happens: async (rig) =>
      rig.replaceWorker(async () => {
        await rig.world.enqueue(2);
        await rig.client.hset(`${rig.prefix}:payout:P-1`, 'metadata', '{');
      }),
    told: warned('tampering', 'Tampering Held', '1 payout held, and not sent'),
  },
  {
    name: 'The outbox holds what no worker understands',
    happens: async ({ client, prefix }) => {
      const strange = Array.from({ length: 700 }, (_, index) => [1, Buffer.of(index % 256, index >> 8, 0xff)]);
      await client.zadd(`${prefix}:outbox`, ...strange.flat());
    },
    told: alike('idle', 'OutboxUnreadable', 200, [0, 'outbox'], '700 members that this version does not understand'),
  },
  {
    name: 'A BullMQ worker hangs',
    environment: { NODE_OPTIONS: `--import=${new URL('../hanging-bullmq.mjs', import.meta.url).href}` },
    happens: enqueueOne,
    repeats: true,
    told: warned('idle', 'JobWorkerReplaced', '1 BullMQ worker hung and had to be replaced'),
  },
];

export const GATEWAY_WAYS: readonly Way[] = [
  {
    name: 'The gateway is down',
    stop: 'gatewayDown',
    happens: async ({ world }) => {
      await world.sandbox.close();
      await world.enqueue(1);
    },
    repeats: true,
    told: told(
      'gatewayDown',
      'GatewayDown StandStill',
      [200, 'ended before anything was written: No connection to the gateway'],
      [1, 'gateway connection', 'ECONNREFUSED'],
    ),
  },
  {
    name: 'The gateway responds to status polls with 500',
    sandbox: { faults: [{ kind: 'json-500', endpoint: 'transactionstatus' }] },
    happens: enqueueOne,
    told: warned('pollsFail', 'PollErrors', 'status polls failed'),
  },
  {
    name: 'The gateway answers slowly',
    sandbox: { faults: [{ kind: 'latency-after', endpoint: 'transactionstatus', delayMs: 6_000 }] },
    happens: async ({ world }) => world.enqueue(3),
    repeats: true,
    told: warned('idle', 'GatewaySlow', 'The gateway is slow'),
  },
  {
    name: 'The gateway never settles a payment',
    environment: { STUCK_AFTER_MS: '1000' },
    sandbox: { settleAfterMs: 3_600_000 },
    happens: enqueueOne,
    told: warned('stuck', 'StuckInProgress', '1 payout in progress for longer than STUCK_AFTER_MS'),
  },
  {
    name: 'The gateway does not respond to a withdrawal',
    stop: 'noResponse',
    sandbox: { faults: [{ kind: 'drop-after', times: 1 }] },
    happens: enqueueOne,
    told: told(
      'noResponse',
      'Unknown',
      [200, '1 payout may or may not have been sent'],
      [0, 'unknown payouts', '1 may or may not have been sent'],
    ),
  },
  {
    name: 'The gateway has another payment with the order id of a payout than Redis says',
    environment: { GATEWAY_API: 'v2' },
    sandbox: { faults: [{ kind: 'drop-after', times: 1 }] },
    happens: async (rig) => {
      await rig.world.enqueue(1);
      await until('its outcome is unknown', async () => (await rig.world.producer.stats()).unknown === 1);
      await rig.client.hset(`${rig.prefix}:payout:P-1`, 'amount', '0.05');
    },
    repeats: true,
    told: told(
      'otherPayment',
      'OtherPayment Unknown',
      [200, '"headline":"Another payment"'],
      [0, 'unknown payouts', '1 may or may not have been sent'],
    ),
  },
  {
    name: 'The balance is below what is queued',
    environment: { BALANCE_EVERY_MS: '1000' },
    happens: async ({ world }) =>
      world.producer.enqueue({
        ...aPayout('too-1'),
        paymentId: 1,
        amount: '100000000',
        notBefore: '2099-01-01T00:00:00Z',
      }),
    told: told('idle', 'BalanceLow', [200, 'The balance is below what is queued'], [0, 'balance', 'queued']),
  },
  {
    name: "Someone else uses the gateway's secret key",
    environment: { BALANCE_EVERY_MS: '1000' },
    happens: async (rig) => {
      await until('the balance is judged', async () => {
        const stored = await rig.client.hget(`${rig.prefix}:gateway`, 'reconciliation');
        return stored?.includes('"unexplained":"0"') === true;
      });
      await rig.payBeside('100000');
    },
    told: alike('balanceFell', 'BalanceDropped', 200, [0, 'reconciliation'], 'more than the payouts explain'),
  },
  {
    name: 'The gateway blocks the account',
    sandbox: { faults: [{ kind: 'block' }] },
    happens: enqueueOne,
    told: alike('paused', 'Paused Rejected', 200, [1, 'pause'], 'looks like a block'),
  },
];

export const ACCOUNT_WAYS: readonly Way[] = [
  {
    name: 'The gateway rejects one payout after another',
    stop: 'breaker',
    environment: { MAX_REJECTIONS_IN_A_ROW: '2' },
    sandbox: { faults: [{ kind: 'reject' }] },
    happens: async ({ world }) => world.enqueue(3),
    told: alike('paused', 'Paused Rejected', 200, [1, 'pause'], '2 rejections in a row'),
  },
  {
    name: 'The account is paused',
    stop: 'pause',
    happens: async ({ operator }) => operator.pause({ by: 'an operator', reason: 'to check it' }),
    told: alike('paused', 'Paused', 200, [1, 'pause'], 'paused: to check it'),
  },
  {
    name: 'The withdraw queue is paused by hand in BullMQ',
    stop: 'queue',
    happens: async (rig) => {
      const { world, client, prefix } = rig;
      // Only the time of the last send tells `payouts status` at once that the account stands still.
      await rig.pay(1);
      await client.hset(`${prefix}:withdraw:meta`, 'paused', '1');
      await world.enqueue(1, 'Q');
    },
    minutes: 8 * 60,
    told: alike('standsStill', 'StandStill QueuedTooLong', 200, [1, 'withdraw queue'], 'paused in BullMQ'),
  },
  {
    name: 'The ledger was written by another version',
    stop: 'otherVersion',
    happens: async ({ client, prefix }) => client.hset(`${prefix}:ledger`, 'format', '99'),
    told: alike('otherVersion', 'SendingRefused NoSender', 503, [1, 'pause'], 'The ledger in Redis has format 99'),
  },
];

export const WORKER_WAYS: readonly Way[] = [
  {
    name: 'Payouts were enqueued for an account that no worker serves',
    happens: async ({ world: { producerOf, platformId } }) =>
      producerOf(platformId + 1).enqueueMany(numbered(2).map((payoutId) => aPayout(payoutId))),
    told: told('idle', 'Unserved', [200, ''], [0, 'other accounts', 'no worker serves 2 payouts of account']),
  },
  {
    name: 'The worker was killed, and none stands by',
    stop: 'lease',
    happens: async (rig) => {
      await rig.worker.end();
      await rig.world.enqueue(1);
    },
    told: told('silent', 'WorkerMissing', ['none', ''], [1, 'sender', 'sent no heartbeat']),
  },
  {
    name: 'The worker hangs, and none stands by',
    happens: async (rig) => {
      rig.worker.kill('SIGSTOP');
      await rig.world.enqueue(1);
    },
    told: told('silent', 'WorkerMissing', ['none', ''], [1, 'sender', 'and 1 payout queued']),
  },
];

const clocks = new WeakMap<Rig, FakeClock>();

/** The wall clock of the worker's machine, which needs libfaketime, and its log. */
export const MACHINE_WAYS: readonly Way[] = [
  {
    name: 'The wall clock is three days ahead',
    prepare: async (rig) => {
      const clock = await createFakeClock(rig.world.dir, 'clock');
      clocks.set(rig, clock);
      Object.assign(rig.environment, clock.environment);
    },
    happens: async (rig) => clocks.get(rig)?.set(3 * 24 * 60 * 60 * 1_000),
    told: alike('idle', 'ClockOff', 200, [0, 'system clock'], 'ahead of the clock of Redis'),
  },
  {
    name: "The log's disk is full",
    happens: async (rig) => {
      const full = await open('/dev/full', 'w');
      await rig.replaceWorker(undefined, { stderr: full.fd });
      await full.close();
      await rig.world.enqueue(5);
    },
    repeats: true,
    told: warned('idle', 'LogsLost', 'could not be written: free the disk'),
  },
];

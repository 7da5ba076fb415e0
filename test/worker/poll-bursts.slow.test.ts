import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { completeSettings } from '../../src/base/settings.js';
import type { GatewayClient } from '../../src/gateway/gateway-client.js';
import type { StatusGateway } from '../../src/gateway/gateway.js';
import { silentLogger } from '../../src/base/logger.js';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { noObserver } from '../../src/worker/sender/worker-observer.js';
import { StatusJobs } from '../../src/worker/status-jobs.js';
import { openQueueRig, type QueueRig } from '../queues/support/queue-rig.js';
import { testRedisUrl } from '../support/account.js';
import { until } from '../support/until.js';

const RATE = 10;
const PAYOUTS = 60;

let rig: QueueRig;
let redis: RedisClient[];
let workers: StatusJobs[];
let polledAt: number[];

beforeEach(() => {
  rig = openQueueRig();
  [redis, workers, polledAt] = [[], [], []];
});
afterEach(async () => {
  await Promise.all(workers.map(async (worker) => worker.close()));
  await Promise.all(redis.map(closeRedis));
  await rig.close();
});

const getStatus: StatusGateway['getStatus'] = async () => {
  polledAt.push(performance.now());
  return Promise.resolve({ kind: 'pending' });
};

/** A process that polls. */
function start(): void {
  const { ledger } = rig.account;
  const client = connectRedis(testRedisUrl(), 'queue');
  redis.push(client);
  workers.push(
    new StatusJobs({
      ...{ queueRedis: client, queues: rig.queues, ledger, polledLedger: ledger, audience: 'test' },
      ...{ clock: systemClock, observer: noObserver, logger: silentLogger, control: undefined },
      gateway: { getStatus } as unknown as GatewayClient,
      settings: completeSettings({ pollMinMs: 600_000, pollMaxMs: 600_000, pollRate: RATE }),
    }),
  );
}

/** The most polls that came within a second. */
function mostInASecond(): number {
  return Math.max(...polledAt.map((from) => polledAt.filter((at) => at >= from && at < from + 1_000).length));
}

it('polls that became due while no worker ran are made at the rate, also by several processes', async () => {
  const payoutIds = Array.from({ length: PAYOUTS }, (_, index) => `p${index}`);
  await rig.enqueue(payoutIds);
  for (const payoutId of payoutIds) await rig.accept(payoutId);
  // As after an outage: all are due, and wait since an hour.
  const delayed = rig.queues.transactionstatus.toKey('delayed');
  const longAgo = (Date.now() - 3_600_000) * 0x1000;
  for (const payoutId of payoutIds) await rig.account.redis.zadd(delayed, longAgo, `${payoutId}~0`);
  start();
  start();
  await until('a part is polled', () => polledAt.length > PAYOUTS / 3);
  // One of them takes over all: this is no cause for a burst either.
  await workers[0]?.close();
  await until('all are polled', () => polledAt.length >= PAYOUTS, 30_000);
  // The limiter counts whole seconds: the end of one and the beginning of the next may be in the same second.
  expect(mostInASecond()).toBeLessThanOrEqual(2 * RATE);
  const [first = 0, last = 0] = [polledAt[0], polledAt.at(-1)];
  expect(last - first).toBeGreaterThan(((PAYOUTS - 2 * RATE) / RATE) * 1_000);
  expect(last - first).toBeLessThan(((2 * PAYOUTS) / RATE) * 1_000);
}, 60_000);

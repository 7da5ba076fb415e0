import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/logger.js';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { completeSettings } from '../../src/base/settings.js';
import { GatewayUnavailableError } from '../../src/gateway/gateway.js';
import type { GatewayClient } from '../../src/gateway/gateway-client.js';
import { noObserver } from '../../src/worker/sender/worker-observer.js';
import { longestPollDelayMs, StatusJobs } from '../../src/worker/status-jobs.js';
import { openQueueRig, type QueueRig } from '../queues/support/queue-rig.js';
import { testRedisUrl } from '../support/account.js';
import { until } from '../support/until.js';

const [FAILED_POLLS, POLLS] = [8, 16];
const POLL_MAX_MS = 40;

let rig: QueueRig;
let redis: RedisClient;
let jobs: StatusJobs;
let polls: number;

beforeEach(() => {
  rig = openQueueRig();
  redis = connectRedis(testRedisUrl(), 'queue');
  polls = 0;
  const { ledger } = rig.account;
  const getStatus: GatewayClient['getStatus'] = async () => {
    polls += 1;
    if (polls <= FAILED_POLLS) throw new GatewayUnavailableError('The gateway is down');
    return Promise.resolve({ kind: 'pending' });
  };
  jobs = new StatusJobs({
    ...{ queueRedis: redis, queues: rig.queues, ledger, polledLedger: ledger, audience: 'test' },
    ...{ clock: systemClock, observer: noObserver, logger: silentLogger, control: undefined },
    gateway: { getStatus } as unknown as GatewayClient,
    settings: completeSettings({ pollMinMs: 10, pollMaxMs: POLL_MAX_MS, pollRate: 200 }),
  });
});
afterEach(async () => {
  await jobs.close();
  await closeRedis(redis);
  await rig.close();
});

it('a payout is polled until it is final, also after errors, and no pause is longer than the longest', async () => {
  await rig.enqueue(['p']);
  await rig.accept('p');
  await until('it was polled often', () => polls >= POLLS, 60_000);
  await jobs.close();
  const job = await rig.queues.transactionstatus.getJob('p~0');
  expect(await job?.getState()).toBe('delayed');
  expect(job?.delay).toBeGreaterThan(0);
  expect(job?.delay).toBeLessThanOrEqual(longestPollDelayMs(POLL_MAX_MS));
});

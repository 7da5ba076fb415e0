import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { systemClock, type Clock } from '../../../src/base/clock.js';
import { createPayoutWorker, type PayoutWorker } from '../../../src/control/payout-worker.js';
import { noObserver } from '../../../src/worker/sender/worker-observer.js';
import { openWorld, type PayoutWorld } from '../support/payout-world.js';
import { until } from '../../support/until.js';

const TICK_MS = 50;

/** Shows every 50th millisecond only: a wait of 1000 ms may end after 20 ticks, one of 1001 ms after 21 at the earliest. */
const COARSE_CLOCK: Clock = {
  now: () => Math.floor(systemClock.now() / TICK_MS) * TICK_MS,
  wallNow: () => systemClock.wallNow(),
  sleep: async (ms, signal) => systemClock.sleep(ms, signal),
};

let world: PayoutWorld;
let worker: PayoutWorker;

beforeEach(async () => {
  world = await openWorld();
});

afterEach(async () => {
  await worker.stop();
  await world.close();
});

it('a worker whose interval is set to 1000 ms keeps more than that', async () => {
  const gaps: number[] = [];
  await world.enqueue(4);
  worker = await createPayoutWorker({
    redisUrl: world.redisUrl,
    journalDir: `${world.dir}/journal`,
    clock: COARSE_CLOCK,
    observe: () => ({ ...noObserver, sendGap: (gapMs) => void gaps.push(gapMs) }),
    accounts: [
      {
        platformId: world.platformId,
        baseUrl: world.sandbox.url,
        secretKey: 'k-test-0123456789',
        intervalMs: 1_000,
        leaseMs: 500,
        quarantineMs: 0,
      },
    ],
  });
  await until('all are sent', () => gaps.length === 3);
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1_000 + TICK_MS);
});

import { expect, it } from '@jest/globals';
import { until } from '../support/until.js';
import { expectPromisesKept, worldOfTest } from './support/payout-world.js';

const PAYOUTS = 60;
const INTERVAL_MS = 1_010;

it('sends 60 payouts through jitter: never under 1000 ms apart, and a period of interval + T', async () => {
  const sandbox = { latencyBeforeMs: { min: 0, max: 300 }, latencyAfterMs: { min: 20, max: 80 } };
  const world = await worldOfTest({ sandbox });
  await world.enqueue(PAYOUTS);
  const worker = world.startWorker();
  await until('all are completed', async () => (await world.producer.stats()).completed === PAYOUTS, 180_000);
  await expectPromisesKept(world);
  // T as the sender measured it: from the first byte to the whole response.
  const sends = worker.log().matchAll(/"kind":"accepted".*?"durationMs":([\d.]+)/g);
  const durations = Array.from(sends, ([, ms]) => Number(ms));
  expect(durations).toHaveLength(PAYOUTS);
  const meanT = durations.reduce((sum, ms) => sum + ms, 0) / durations.length;
  // What scripts and syncs of the disk add is for `npm run bench`; a sender that waited for another interval would show here.
  expect(world.sandbox.stats().meanGapMs).toBeLessThanOrEqual(1.25 * (INTERVAL_MS + meanT));
}, 240_000);

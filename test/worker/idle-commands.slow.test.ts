import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { until } from '../support/until.js';
import { closeAfterTest } from './support/close-after-test.js';
import { countCommands } from './support/command-counter.js';
import { startOwnRedis } from './support/own-redis.js';
import { untilSettled, worldOfTest } from './support/payout-world.js';

/** A heartbeat a second, and some two more; more than that is a loop that asks without a cause. */
const SENT_A_SECOND = 4;
/** One that stands by looks at the lease once a second. */
const SENT_BY_STANDBY = 3;
const READS_OF_THE_CLOCK = 1.3;
const MEASURED_MS = 25_000;
/** What comes of a start or of a payout is over by then. */
const SETTLE_MS = 12_000;

it('an account without payouts asks Redis for next to nothing, and so does a worker that stands by', async () => {
  const redis = closeAfterTest(await startOwnRedis());
  const world = await worldOfTest({ redis });
  // Opens the connections of the test itself.
  await world.producer.stats();
  const counter = closeAfterTest(await countCommands(redis.url));
  /** What is sent a second without payouts: reads of the clock of Redis, and all else. */
  const measure = async (): Promise<{ readonly time: number; readonly rest: number }> => {
    await delay(SETTLE_MS);
    counter.take();
    await delay(MEASURED_MS);
    const { time = 0, ...others } = Object.fromEntries(counter.take());
    return { time, rest: Object.values(others).reduce((sum, rate) => sum + rate, 0) };
  };
  const start = (): void => void world.startWorker({ environment: { LEASE_MS: '10000' } });
  start();
  await until('it sends', async () => (await world.producer.stats()).sender !== null);
  await world.enqueue(2);
  await untilSettled(world, 2);
  const one = await measure();
  expect(one.rest).toBeLessThan(SENT_A_SECOND);
  expect(one.time).toBeLessThan(READS_OF_THE_CLOCK);
  start();
  const two = await measure();
  expect(two.rest - one.rest).toBeLessThan(SENT_BY_STANDBY);
  expect(two.time).toBeLessThan(2 * READS_OF_THE_CLOCK);
}, 180_000);

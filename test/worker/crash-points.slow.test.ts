import { expect, it } from '@jest/globals';
import { expectPromisesKept, openWorld, untilSettled } from './support/payout-world.js';

/** Where a worker is killed, what becomes of the payout whose send was cut off, and how often the gateway saw it. */
const POINTS = [
  ['before-begin', 'completed', 1],
  ['after-begin', 'unknown', 0],
  ['after-journal', 'unknown', 0],
  ['during-request', 'unknown', 1],
  ['before-finish', 'unknown', 1],
  ['after-outcome', 'completed', 1],
  ['after-finish', 'completed', 1],
] as const;

/** Kills a worker there, and lets another continue. */
async function killAt(point: string): Promise<[point: string, state: string | undefined, arrivals: number]> {
  const world = await openWorld({ sandbox: { latencyBeforeMs: 200 } });
  try {
    const [, cutOff = ''] = await world.enqueue(3);
    expect(await world.startWorker({ crashAt: point }).ended).toBe('SIGKILL');
    world.startWorker();
    await untilSettled(world, 3);
    const payout = await world.producer.get(cutOff);
    await expectPromisesKept(world);
    const arrived = world.sandbox.payments().filter(({ addressTo }) => addressTo === payout?.addressTo);
    return [point, payout?.state, arrived.length];
  } finally {
    await world.close();
  }
}

// One test, in which all wait at the same time: Jest refuses modules that a concurrent test loads between two tests.
it('a worker that is killed sends nothing twice, loses nothing and keeps the pace, wherever it is killed', async () => {
  const became = await Promise.allSettled(POINTS.map(async ([point]) => killAt(point)));
  expect(became).toEqual(POINTS.map((value) => ({ status: 'fulfilled', value })));
}, 120_000);

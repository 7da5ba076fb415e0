import { describe, expect, it } from '@jest/globals';
import { expectPromisesKept, openWorld, untilSettled } from './support/payout-world.js';

/** What becomes of the payout whose send was cut off, and how often the gateway saw it. */
const POINTS = [
  { point: 'before-begin', state: 'completed', arrivals: 1 },
  { point: 'after-begin', state: 'unknown', arrivals: 0 },
  { point: 'after-journal', state: 'unknown', arrivals: 0 },
  { point: 'during-request', state: 'unknown', arrivals: 1 },
  { point: 'before-finish', state: 'unknown', arrivals: 1 },
  { point: 'after-outcome', state: 'completed', arrivals: 1 },
  { point: 'after-finish', state: 'completed', arrivals: 1 },
];

/** Kills a worker there, and lets another continue. @returns what became of the payout whose send was cut off */
async function killAt(point: string) {
  const world = await openWorld({ sandbox: { latencyBeforeMs: 200 } });
  try {
    const [, cutOff = ''] = await world.enqueue(3);
    const killed = world.startWorker({ crashAt: point });
    expect(await killed.ended).toBe('SIGKILL');

    world.startWorker();
    await untilSettled(world, 3);
    const payout = await world.producer.get(cutOff);
    await expectPromisesKept(world);
    const arrived = world.sandbox.payments().filter(({ addressTo }) => addressTo === payout?.addressTo);
    return { point, state: payout?.state, arrivals: arrived.length };
  } finally {
    await world.close();
  }
}

describe('a worker that is killed', () => {
  // One test, in which all wait at the same time: Jest refuses modules that a concurrent test loads between two tests.
  it('sends nothing twice, loses nothing and keeps the pace, wherever it is killed', async () => {
    const became = await Promise.allSettled(POINTS.map(async ({ point }) => killAt(point)));
    expect(became).toEqual(POINTS.map((value) => ({ status: 'fulfilled', value })));
  }, 120_000);
});

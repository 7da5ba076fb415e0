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

describe('a worker that is killed', () => {
  it.concurrent.each(POINTS)(
    '$point: sends nothing twice, loses nothing, keeps the pace; the payout becomes $state',
    async ({ point, state, arrivals }) => {
      const world = await openWorld({ sandbox: { latencyBeforeMs: 200 } });
      try {
        const [, cutOff = ''] = await world.enqueue(3);
        const killed = world.startWorker({ crashAt: point });
        expect(await killed.ended).toBe('SIGKILL');

        world.startWorker();
        await untilSettled(world, 3);
        const payout = await world.producer.get(cutOff);
        expect(payout).toMatchObject({ state });
        expect(world.sandbox.payments().filter(({ addressTo }) => addressTo === payout?.addressTo)).toHaveLength(
          arrivals,
        );
        await expectPromisesKept(world);
      } finally {
        await world.close();
      }
    },
    120_000,
  );
});

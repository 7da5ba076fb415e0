import { createFakeClock, type FakeClock } from '../../doubles/fake-clock.js';
import type { Rig } from '../support/rig.js';
import { told, type Way } from '../way.js';

const DAY_MS = 24 * 60 * 60 * 1_000;

const clocks = new WeakMap<Rig, FakeClock>();

/** The wall clock of the worker's machine; needs libfaketime. */
export const CLOCK_WAYS: readonly Way[] = [
  {
    name: 'The wall clock is three days ahead',
    prepare: async (rig) => {
      const clock = await createFakeClock(rig.world.dir, 'clock');
      clocks.set(rig, clock);
      Object.assign(rig.environment, clock.environment);
    },
    happens: async (rig) => clocks.get(rig)?.set(3 * DAY_MS),
    told: told(
      'idle',
      ['PayoutsClockOff'],
      [200, 'ahead of the clock of Redis'],
      [0, 'system clock', 'ahead of the clock of Redis'],
      'clock',
    ),
  },
];

import { equal } from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { type Scene, scene } from '../scene.js';
import { FORGET_REPLICA_S, type Layout, type SplitWorld } from '../support/split-world.js';
import { cut, heal, SENTINELS, settle, startSending, STAYS_MS } from './steps.js';

/** A cut between a master with its worker and the rest, and what is restarted meanwhile. */

/** Before the cut, within it before and after the other side promotes a replica, and once the network is back. */
type Phase = 'before' | 'cut' | 'promoted' | 'healed';
const PHASES: readonly Phase[] = ['before', 'cut', 'promoted', 'healed'];

type Restart = (world: SplitWorld) => Promise<void>;

/** In this order on their hosts: the master and one replica on host 1, two replicas on host 2. */
const RESTARTS: Readonly<Record<string, Restart>> = {
  'the cut-off worker': async (world) => world.restartWorker(1),
  'the other worker': async (world) => world.restartWorker(2),
  'the cut-off master': async (world) => world.restart(0),
  'the cut-off replica': async (world) => world.restart(1),
  'a replica of the other side': async (world) => world.restart(2),
  'the server that is promoted, or may be': async (world) => world.restart(await world.findLeader([2, 3])),
  'the cut-off Sentinel': async (world) => world.restartSentinel(0),
  'a Sentinel of the other side': async (world) => world.restartSentinel(1),
  'all of the cut-off host': async (world) => {
    await Promise.all([world.restart(0), world.restart(1), world.restartSentinel(0), world.restartWorker(1)]);
  },
};

const PAYOUTS = 10;

/** @param near, far - replicas on the side of the master, and on the other */
const layoutOf = (near: number, far: number): Layout => ({
  redis: [1, ...Array.from({ length: near }, () => 1), ...Array.from({ length: far }, () => 2)],
  sentinels: SENTINELS,
});

async function runCut(world: SplitWorld, near: number, far: number, restart?: Restart, phases: readonly Phase[] = []) {
  const at = async (phase: Phase) => {
    if (phases.includes(phase)) await restart?.(world);
  };
  await startSending(world, PAYOUTS);
  await at('before');
  await world.untilWhole();
  const arrivals = await cut(world, async () => at('cut'));
  await world.untilPromoted(Array.from({ length: far }, (_, index) => 1 + near + index));
  await delay(FORGET_REPLICA_S * 1_000 + 2_000);
  await at('promoted');
  await delay(STAYS_MS);
  equal(world.stats.arrivals, arrivals, 'nothing is sent while a replica is missing');
  await heal(world, async () => at('healed'));
  return settle(world, PAYOUTS);
}

const SIDES = [
  [0, 1],
  [0, 2],
  [0, 3],
  [1, 1],
  [1, 2],
  [1, 3],
  [2, 1],
  [2, 2],
  [2, 3],
  [3, 1],
  [3, 2],
  [3, 3],
] as const;

export const CUTS: readonly Scene[] = [
  scene(
    'a cut of a master, its worker and a replica from two pays nothing twice, whatever of its side is restarted',
    'short',
    layoutOf(1, 2),
    async (world) => runCut(world, 1, 2, RESTARTS['all of the cut-off host'], ['cut', 'promoted']),
  ),
  scene(
    'a cut of a master and its worker from its only replica pays nothing twice, though both are restarted',
    'short',
    layoutOf(0, 1),
    async (world) =>
      runCut(
        world,
        0,
        1,
        async () => {
          await world.restart(0);
          await world.restartWorker(1);
        },
        ['cut', 'promoted'],
      ),
  ),
  ...SIDES.map(([near, far]) =>
    scene(
      `a cut with ${near} replicas on the side of the master and ${far} on the other pays nothing twice`,
      'long',
      layoutOf(near, far),
      async (world) => runCut(world, near, far),
    ),
  ),
  ...Object.entries(RESTARTS).flatMap(([what, restart]) => [
    ...PHASES.map((phase) =>
      scene(`a cut pays nothing twice while ${what} is restarted: ${phase}`, 'long', layoutOf(1, 2), async (world) =>
        runCut(world, 1, 2, restart, [phase]),
      ),
    ),
    scene(`a cut pays nothing twice while ${what} is restarted in every phase`, 'long', layoutOf(1, 2), async (world) =>
      runCut(world, 1, 2, restart, PHASES),
    ),
  ]),
];

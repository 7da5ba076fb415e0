import { equal, match, notEqual } from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../../support/until.js';
import { type Scene, scene } from '../scene.js';
import { FORGET_REPLICA_S, type Layout, type SplitWorld } from '../support/split-world.js';
import { cut, expectKept, heal, SENTINELS, startSending, STAYS_MS, WALLET } from './steps.js';

/** Signed payouts under a policy, whose caps, approvals and rejections no failover forgets. */

const CAP = 9;
const PAYOUTS = 14;
const REDIS = { redis: [1, 1, 2, 2], sentinels: SENTINELS };
const CAPPED: Layout = {
  ...REDIS,
  rules: `  - { name: flood, cap: { count: '${CAP}', within: 24h }, over: wait }`,
};
const APPROVED: Layout = {
  ...REDIS,
  rules:
    "  - { name: large, cap: { amount: '500' }, when: { paymentId: ['6'] }, over: { approve: { by: finance, quorum: 2 } } }",
};

async function failOverAndBack(world: SplitWorld) {
  await world.failOver();
  await world.untilWhole();
}

/** Nothing more is sent, although a worker could take over. */
async function expectCap(world: SplitWorld) {
  await delay(STAYS_MS);
  equal(world.stats.arrivals, CAP);
  expectKept(world);
}

const isHeld = async (world: SplitWorld, payoutId: string) => (await world.stateOf(payoutId, 2)) === 'held';

async function enqueueLarge(world: SplitWorld, payoutId: string, amount: string) {
  const payment = ['--payment-id', '6', '--amount', amount, '--address-to', WALLET];
  await world.done(1, 'enqueue', '--payout-id', payoutId, ...payment);
  await until(`${payoutId} waits for approval`, async () => isHeld(world, payoutId));
}

const decide = async (world: SplitWorld, host: number, what: string, person: string, payoutId: string) =>
  world.payouts(host, what, payoutId, '--key', world.keyOf(person), '--yes', '--reason', 'looked at');

export const POLICED: readonly Scene[] = [
  scene(
    'a cap of sends holds over a cut, restarts and failovers, and what fits is sent',
    'short',
    CAPPED,
    async (world) => {
      await startSending(world, PAYOUTS);
      const arrivals = await cut(world, async () => world.restartWorker(1));
      await world.untilPromoted([2, 3]);
      await delay(FORGET_REPLICA_S * 1_000 + 2_000);
      await Promise.all([world.restart(0), world.restartWorker(1), world.restartWorker(2)]);
      await delay(STAYS_MS);
      equal(world.stats.arrivals, arrivals);
      await heal(world);
      await world.untilSent(CAP);
      await failOverAndBack(world);
      await Promise.all([world.restartWorker(1), world.restartWorker(2)]);
      await expectCap(world);
      return undefined;
    },
  ),
  scene(
    'an approval that was acknowledged counts once after a failover, and a rejection stays',
    'short',
    APPROVED,
    async (world) => {
      await startSending(world, 6);
      for (const [index, id] of ['one', 'two', 'three'].entries()) await enqueueLarge(world, id, String(1_000 + index));
      for (const [what, person, id] of [
        ['approve', 'ann', 'one'],
        ['approve', 'ann', 'two'],
        ['reject', 'bob', 'two'],
      ] as const) {
        const { code, text } = await decide(world, 1, what, person, id);
        equal(code, 0, text);
      }
      await cut(world);
      await delay(FORGET_REPLICA_S * 1_000 + 2_000);
      for (const [what, person] of [
        ['approve', 'bob'],
        ['reject', 'bob'],
      ] as const) {
        const { code, text } = await decide(world, 1, what, person, 'three');
        notEqual(code, 0, `${what}: ${text}`);
      }
      await heal(world);
      const { arrivals } = world.stats;
      // The same person again is still one of two, and what bob rejected stays, also if others approve it.
      await decide(world, 2, 'approve', 'ann', 'one');
      await world.payouts(2, 'release', 'one', 'two', '--yes', '--reason', 'again');
      await delay(STAYS_MS);
      equal(await isHeld(world, 'one'), true);
      equal(await isHeld(world, 'two'), true);
      equal(world.stats.arrivals <= Math.max(arrivals, 6), true, 'nothing else is sent');
      const { code, text } = await decide(world, 2, 'approve', 'bob', 'one');
      equal(code, 0, text);
      await failOverAndBack(world);
      await until('what two people approved is sent', async () => (await world.stateOf('one', 2)) === 'completed');
      match((await world.payouts(2, 'get', 'two')).text, /held/);
      expectKept(world);
      return undefined;
    },
  ),
];

import { equal, match, ok } from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../../support/until.js';
import { type Scene, scene } from '../scene.js';
import { type Layout, type SplitWorld } from '../support/split-world.js';
import { expectKept, SENTINELS, settle, startSending, STAYS_MS, WALLET } from './steps.js';

/** Failovers without a cut, bad links, and replicas that are lost. */

const THREE_HOSTS: Layout = { redis: [1, 2, 3], sentinels: [1, 2, 3] };
const PARTED: Layout = { redis: [1, 2, 1, 2], sentinels: SENTINELS };
const REFUSES = /nothing is sent, because Redis may lose it/;

type StandStill = (world: SplitWorld, signal: 'SIGSTOP' | 'SIGCONT') => void;

const STANDS_STILL: readonly (readonly [what: string, stop: StandStill])[] = [
  [
    'a master',
    (world, signal) => {
      world.standStill(0, signal);
    },
  ],
  [
    'a worker',
    (world, signal) => {
      world.workerStandsStill(1, signal);
    },
  ],
  [
    'a master with its worker',
    (world, signal) => {
      world.standStill(0, signal);
      world.workerStandsStill(1, signal);
    },
  ],
];

/** Enqueues one payout after the other until the end. @returns what was acknowledged, and how many were tried */
function keepEnqueueing(world: SplitWorld, host: number) {
  const acknowledged: string[] = [];
  const ended = new AbortController();
  let tried = 0;
  const running = (async () => {
    while (!ended.signal.aborted) {
      tried += 1;
      const id = `more-${tried}`;
      const payment = ['--payment-id', '6', '--amount', String(1_000 + tried), '--address-to', WALLET];
      const { code } = await world.payouts(host, 'enqueue', '--payout-id', id, ...payment);
      if (code === 0) acknowledged.push(id);
    }
  })();
  return async () => {
    ended.abort();
    await running;
    return { acknowledged, tried };
  };
}

async function runPlanned(world: SplitWorld, times: number) {
  await startSending(world, 8);
  const end = keepEnqueueing(world, 3);
  for (let failovers = 0; failovers < times; failovers += 1) {
    await delay(6_000);
    await world.failOver();
    await delay(7_000);
  }
  const { acknowledged, tried } = await end();
  await world.untilWhole();
  ok(acknowledged.length > 0);
  for (const id of acknowledged) ok((await world.stateOf(id, 3)) !== '', `${id} was acknowledged, and is gone`);
  const unknown = await settle(world, 8 + acknowledged.length, 8 + tried);
  return [`${acknowledged.length} payouts acknowledged in ${times} failovers`, unknown].filter(Boolean).join('; ');
}

export const FAILOVERS: readonly Scene[] = [
  scene(
    'planned failovers 13 s apart lose no payout that was acknowledged, and no send',
    'short',
    { ...THREE_HOSTS, minReplicasToWrite: 0 },
    async (world) => runPlanned(world, 2),
  ),
  ...[1, 2, 3, 4, 5].map((number) =>
    scene(
      `planned failovers 13 s apart, run ${number}`,
      'long',
      { ...THREE_HOSTS, minReplicasToWrite: 0 },
      async (world) => runPlanned(world, 4),
    ),
  ),
  scene(
    'a link that comes and goes several times a second sends late, and nothing twice',
    'short',
    PARTED,
    async (world) => {
      await startSending(world, 12);
      await world.hosts.flap(1, 25_000);
      await world.untilWhole();
      return settle(world, 12);
    },
  ),
  scene('a link that loses 30 % of its packets sends late, and nothing twice', 'short', PARTED, async (world) => {
    await startSending(world, 12);
    await world.hosts.layBadLine(1, { loss: 0.3, minDelayMs: 5, maxDelayMs: 60 });
    await delay(25_000);
    await world.failOver();
    await delay(15_000);
    await world.hosts.endBadLine(1);
    await world.untilWhole();
    return settle(world, 12);
  }),
  ...STANDS_STILL.map(([what, stop]) =>
    scene(
      `${what} that stands still while a replica is promoted, and then goes on, pays nothing twice`,
      'long',
      PARTED,
      async (world) => {
        await startSending(world, 12);
        stop(world, 'SIGSTOP');
        await world.failOver();
        await world.untilPromoted([1, 2, 3]);
        await delay(STAYS_MS);
        stop(world, 'SIGCONT');
        await world.untilWhole();
        return settle(world, 12);
      },
    ),
  ),
  scene(
    'the least advanced replica, promoted by hand, has every send that began',
    'short',
    { redis: [1, 2, 3], sentinels: [] },
    async (world) => {
      await startSending(world, 12);
      world.hosts.cut(2);
      await until('the worker refuses', () => REFUSES.test(world.workerLog(1)));
      const { arrivals } = world.stats;
      await delay(5_000);
      equal(world.stats.arrivals, arrivals);
      await world.kill(0);
      world.hosts.heal(2);
      await world.ask(1, 'REPLICAOF', 'NO', 'ONE');
      await world.promote(1);
      await world.untilWhole();
      return settle(world, 12);
    },
  ),
  scene(
    'after a failover by hand the former master is missing, by name, until it is back',
    'short',
    { redis: [1, 2, 3], sentinels: [] },
    async (world) => {
      await startSending(world, 10);
      await world.kill(0);
      await world.promote(1, [2]);
      await until('readyz names it', async () =>
        /"Replicas missing".*10\.88\.0\.1:6379 is missing, since .*payouts redis-replicas 1/.test(
          await world.readyz(1),
        ),
      );
      const { arrivals } = world.stats;
      match((await world.payouts(1, 'doctor')).text, /not 10\.88\.0\.1:6379 since /);
      await delay(5_000);
      equal(world.stats.arrivals, arrivals);
      await world.promote(1);
      await world.untilWhole();
      return settle(world, 10);
    },
  ),
  scene(
    'a replica that is back lets the next payout go within seconds, and one that is gone is given up by an operator alone',
    'short',
    THREE_HOSTS,
    async (world) => {
      await startSending(world, 30);
      await world.kill(2);
      await until('the worker refuses', () => REFUSES.test(world.workerLog(1)));
      const told = /"Replicas missing".*10\.88\.0\.3:6381 is missing, since .*payouts redis-replicas 1/;
      await until('readyz names it', async () => told.test(await world.readyz(1)));
      // Longer than the back-off takes to grow.
      await delay(20_000);
      world.start(2);
      await world.untilWhole();
      const [{ arrivals }, wholeAt] = [world.stats, performance.now()];
      await world.untilSent(arrivals + 1);
      const lateMs = performance.now() - wholeAt;
      ok(lateMs < 8_000, `the next send came after ${lateMs} ms`);

      await world.kill(2);
      const giveUp = async () => world.payouts(1, 'redis-replicas', '1', '--yes', '--reason', 'host 3 burnt down');
      await until('the worker refuses again', async () => (await world.readyz(1)).includes('Replicas missing'));
      const refused = await giveUp();
      match(refused.text, /still lists 10\.88\.0\.3:6381/);
      equal(refused.code, 4);
      await world.resetSentinels();
      const given = await giveUp();
      match(given.text, /waits for 1 replica of Redis instead of 2: in Redis and in the send journal/);
      const after = world.stats.arrivals;
      await world.untilSent(after + 2);
      match((await world.payouts(1, 'activity')).text, /fewer replicas.*1 remain: host 3 burnt down/);
      expectKept(world);
      return `next send ${Math.round(lateMs)} ms after the replica was back`;
    },
  ),
];

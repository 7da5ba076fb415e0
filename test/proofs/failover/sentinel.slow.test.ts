import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { until } from '../../support/until.js';
import { closeAfterTest } from '../../worker/support/close-after-test.js';
import { FORGET_REPLICA_S, type Layout, SplitWorld } from './support/split-world.js';

/** Failovers of Sentinel between hosts whose network is cut, with real processes. Counted at the gateway. */

const KEPT = { paidTwice: 0, tooClose: false };
/** Redis 0 leads on host 1; two of three Sentinels are on host 2, so that its side promotes a replica. */
const SENTINELS = [1, 2, 2];
const THREE_REPLICAS: Layout = { redis: [1, 2, 1, 2], sentinels: SENTINELS };
const TWO_REPLICAS: Layout = { redis: [1, 2, 1], sentinels: SENTINELS };
const ONE_REPLICA: Layout = { redis: [1, 2], sentinels: SENTINELS };
/** Longer than a takeover with its quarantine. */
const STAYS_CUT_MS = 18_000;
const WITHIN_MS = 420_000;

async function startWorld(layout: Layout, payouts: number) {
  const world = closeAfterTest(await SplitWorld.start(layout));
  await world.import(payouts);
  world.startWorker(1);
  await world.untilSent(2);
  world.startWorker(2);
  await until('the other worker stands by', () => world.workerLog(2).includes('worker started'));
  await world.untilSent(4);
  return world;
}

/** From here on nobody may send: no side has every replica. */
async function cut(world: SplitWorld) {
  world.hosts.cut(1);
  for (const host of [1, 2]) {
    await until(
      () => `host ${host} refuses:\n${world.logs()}`,
      () => /nothing is sent, because Redis may lose it/.test(world.workerLog(host)),
    );
  }
  return world.stats.arrivals;
}

async function healAndSettle(world: SplitWorld, payouts: number) {
  world.hosts.heal(1);
  await world.untilWhole();
  await world.untilSent(payouts);
  expect(world.broken).toEqual(KEPT);
}

describe('a cut between a master with its worker and the rest pays nothing twice', () => {
  it.each<[string, Layout, (world: SplitWorld) => unknown]>([
    ['its worker', THREE_REPLICAS, async (world) => world.restartWorker(1)],
    ['the cut-off master', THREE_REPLICAS, async (world) => world.restart(0)],
    ['the cut-off replica', THREE_REPLICAS, async (world) => world.restart(2)],
    ['the cut-off Sentinel', THREE_REPLICAS, async (world) => world.restartSentinel(0)],
    ['its worker, of two replicas', TWO_REPLICAS, async (world) => world.restartWorker(1)],
    [
      'the master and its worker, of one replica',
      ONE_REPLICA,
      async (world) => {
        await world.restart(0);
        await world.restartWorker(1);
      },
    ],
  ])(
    'while %s is restarted, before and after the master forgot its replicas',
    async (_, layout, restart) => {
      const world = await startWorld(layout, 12);
      const arrivals = await cut(world);
      await restart(world);
      await delay(FORGET_REPLICA_S * 1_000 + 2_000);
      await restart(world);
      await delay(STAYS_CUT_MS);
      expect(world.stats.arrivals).toBe(arrivals);
      await healAndSettle(world, 12);
    },
    WITHIN_MS,
  );
});

it(
  'a command on the wrong side of a cut is not acknowledged, and one that is acknowledged stays',
  async () => {
    const world = await startWorld(TWO_REPLICAS, 16);
    expect((await world.payouts(1, 'cancel', 'p16', '--reason', 'fraud')).code).toBe(0);
    await cut(world);
    await delay(FORGET_REPLICA_S * 1_000 + 2_000);
    const wallet = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
    const payment = ['--payment-id', '6', '--amount', '777', '--address-to', wallet];
    for (const command of [
      ['cancel', 'p14', '--reason', 'fraud'],
      ['pause', '--reason', 'fraud'],
      ['enqueue', '--payout-id', 'late', ...payment],
    ]) {
      const { code, text } = await world.payouts(1, ...command);
      expect(text).toMatch(/only \d of 2 replicas acknowledged it|replicas|NOREPLICAS/);
      expect([command[0], code]).not.toEqual([command[0], 0]);
    }
    world.hosts.heal(1);
    await world.untilWhole();
    await world.untilSent(13);
    expect((await world.payouts(2, 'enqueue', '--payout-id', 'late', ...payment)).code).toBe(0);
    await until('what waits is sent', async () =>
      /"queued": ?0\b/.test((await world.payouts(2, 'stats', '--json')).text),
    );
    expect(await world.stateOf('p16')).toBe('cancelled');
    expect(world.broken).toEqual(KEPT);
  },
  WITHIN_MS,
);

it(
  'planned failovers lose no payout that was acknowledged, and no send',
  async () => {
    const world = await startWorld({ redis: [1, 2, 3], sentinels: [1, 2, 3], minReplicasToWrite: 0 }, 8);
    const acknowledged: string[] = [];
    const ended = new AbortController();
    const enqueueing = (async () => {
      for (let number = 1; !ended.signal.aborted; number += 1) {
        const id = `more-${number}`;
        const amount = ['--amount', String(1_000 + number), '--address-to', 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf'];
        const { code } = await world.payouts(3, 'enqueue', '--payout-id', id, '--payment-id', '6', ...amount);
        if (code === 0) acknowledged.push(id);
      }
    })();
    for (let times = 0; times < 2; times += 1) {
      await delay(6_000);
      await world.failOver();
      await delay(7_000);
    }
    ended.abort();
    await enqueueing;
    await world.untilWhole();
    expect(acknowledged.length).toBeGreaterThan(0);
    const states = await Promise.all(acknowledged.map(async (id) => world.stateOf(id, 3)));
    expect(states.filter((state) => state === '')).toEqual([]);
    await world.untilSent(8 + acknowledged.length);
    expect(world.broken).toEqual(KEPT);
  },
  WITHIN_MS,
);

it(
  'a link that comes and goes several times a second sends late, and nothing twice',
  async () => {
    const world = await startWorld(THREE_REPLICAS, 14);
    await world.hosts.flap(1, 30_000);
    await world.untilWhole();
    await world.untilSent(14);
    expect(world.broken).toEqual(KEPT);
  },
  WITHIN_MS,
);

it(
  'the least advanced replica, promoted by hand, has every send that began',
  async () => {
    const world = await startWorld({ redis: [1, 2, 3], sentinels: [] }, 12);
    world.hosts.cut(2);
    await until('the worker refuses', () => /nothing is sent, because Redis may lose it/.test(world.workerLog(1)));
    const { arrivals } = world.stats;
    await delay(5_000);
    expect(world.stats.arrivals).toBe(arrivals);
    await world.kill(0);
    world.hosts.heal(2);
    await world.ask(1, 'REPLICAOF', 'NO', 'ONE');
    await world.promote(1);
    await world.untilWhole();
    await world.untilSent(12);
    expect(world.broken).toEqual(KEPT);
  },
  WITHIN_MS,
);

it(
  'a replica that is back lets the next payout go within seconds, and one that is gone is given up by an operator alone',
  async () => {
    const world = await startWorld({ redis: [1, 2, 3], sentinels: [1, 2, 3] }, 30);
    await world.kill(2);
    await until('the worker refuses', () => /nothing is sent, because Redis may lose it/.test(world.workerLog(1)));
    const told = /"Replicas missing".*10\.88\.0\.3:6381 is missing, since .*payouts redis-replicas 1/;
    await until('readyz names it', async () => told.test(await world.readyz(1)));
    // Longer than the back-off takes to grow.
    await delay(20_000);
    world.start(2);
    await world.untilWhole();
    const [{ arrivals }, wholeAt] = [world.stats, performance.now()];
    await world.untilSent(arrivals + 1);
    const lateMs = performance.now() - wholeAt;
    process.stderr.write(`the next send came ${Math.round(lateMs)} ms after the replica was back\n`);
    expect(lateMs).toBeLessThan(8_000);

    await world.kill(2);
    const giveUp = async () => world.payouts(1, 'redis-replicas', '1', '--yes', '--reason', 'host 3 burnt down');
    await until('the worker refuses again', async () => (await world.readyz(1)).includes('Replicas missing'));
    const refused = await giveUp();
    expect(refused.text).toMatch(/still lists 10\.88\.0\.3:6381/);
    expect(refused.code).toBe(4);
    await world.resetSentinels();
    const given = await giveUp();
    expect(given.text).toMatch(/waits for 1 replica of Redis instead of 2: in Redis and in the send journal/);
    const after = world.stats.arrivals;
    await world.untilSent(after + 2);
    expect((await world.payouts(1, 'activity')).text).toMatch(/fewer replicas.*1 remain: host 3 burnt down/);
    expect(world.broken).toEqual(KEPT);
  },
  WITHIN_MS,
);

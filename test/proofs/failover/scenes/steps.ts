import { deepEqual, ok } from 'node:assert/strict';
import { until } from '../../../support/until.js';
import type { SplitWorld } from '../support/split-world.js';

/** Redis 0 leads on host 1; two of three Sentinels are on host 2, so that its side promotes a replica. */
export const SENTINELS = [1, 2, 2];

/** Longer than a takeover with its quarantine. */
export const STAYS_MS = 18_000;

export const WALLET = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';

const REFUSES = 'nothing is sent, because Redis may lose it';

/** Imports payouts; the worker of host 1 sends, that of host 2 stands by. */
export async function startSending(world: SplitWorld, payouts: number): Promise<void> {
  await world.import(payouts);
  world.startWorker(1);
  await world.untilSent(2);
  world.startWorker(2);
  await until('the other worker stands by', () => world.workerLog(2).includes('worker started'));
  await world.untilSent(4);
}

/** Cuts host 1 off. From the end of this on nobody may send: no side has every replica. @returns what was sent */
export async function cut(world: SplitWorld, next: () => Promise<void> = async () => Promise.resolve()) {
  const before = new Map([1, 2].map((host) => [host, world.workerLog(host).length]));
  world.hosts.cut(1);
  await next();
  for (const [host, length] of before) {
    await until(
      () => `host ${host} refuses:\n${world.logs()}`,
      () => world.workerLog(host).slice(length).includes(REFUSES),
    );
  }
  return world.stats.arrivals;
}

export async function heal(world: SplitWorld, next: () => Promise<void> = async () => Promise.resolve()) {
  world.hosts.heal(1);
  await next();
  await world.untilWhole();
}

export function expectKept(world: SplitWorld): void {
  deepEqual(world.broken, { paidTwice: 0, tooClose: false });
}

/** Longer than takeovers, and than the longest wait before a payout is tried again. */
const SETTLED_WITHIN_MS = 180_000;

/**
 * Nothing waits any more: each payout was sent once, or is `unknown`, if a failover showed its begin and not that it was
 * put back.
 * @param most - with those that were accepted and not acknowledged
 * @returns how many are unknown, if any
 */
export async function settle(world: SplitWorld, payouts: number, most = payouts): Promise<string | undefined> {
  let stats: Readonly<Record<string, unknown>> = {};
  const isSettled = async () => {
    const { code, text } = await world.payouts(2, 'stats', '--json');
    if (code === 0) stats = JSON.parse(text) as typeof stats;
    return code === 0 && stats['queued'] === 0 && stats['sending'] === 0;
  };
  await until(() => `nothing waits:\n${JSON.stringify(stats)}\n${world.logs()}`, isSettled, SETTLED_WITHIN_MS);
  const [{ arrivals }, unknown] = [world.stats, Number(stats['unknown'])];
  ok(arrivals <= most && arrivals + unknown >= payouts, `${arrivals} sent and ${unknown} unknown of ${payouts}`);
  expectKept(world);
  return unknown === 0 ? undefined : `${unknown} unknown`;
}

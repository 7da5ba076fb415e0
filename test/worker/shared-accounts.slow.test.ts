import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { until } from '../support/until.js';
import { openSharedAccounts, type SharedAccounts } from './support/shared-accounts.js';
import { endAllWorkers, type WorkerProcess } from './support/worker-process.js';

/** Twelve accounts, three real processes with one accounts file. */
const ACCOUNTS = 12;
const PAYOUTS = 45;

let shared: SharedAccounts;
let workers: WorkerProcess[];

beforeEach(async () => {
  shared = await openSharedAccounts(ACCOUNTS);
  workers = [];
});
afterEach(async () => {
  await endAllWorkers();
  await shared.close();
});

const start = (): WorkerProcess => {
  const worker = shared.startWorker();
  workers.push(worker);
  return worker;
};

async function sharesOf(pids: readonly number[]): Promise<number[]> {
  const holders = [...(await shared.holders()).values()];
  return pids.map((pid) => holders.filter((holder) => holder === pid).length);
}

async function untilShared(shares: readonly number[]): Promise<void> {
  const pids = workers.map(({ pid }) => pid);
  let found: readonly number[] = [];
  await until(
    () => `the leases are held ${shares.join(', ')}; they are ${found.join(', ')}`,
    async () => (found = await sharesOf(pids)).join() === shares.join(),
  );
}

async function accountsOf({ pid }: WorkerProcess): Promise<number[]> {
  return [...(await shared.holders())].filter(([, holder]) => holder === pid).map(([platformId]) => platformId);
}

/** The longest time between two arrivals of an account since then, in ms. */
function longestGapMs(platformId: number, since: number): number {
  const [, ...gaps] = shared.sandbox.arrivals(platformId).slice(Math.max(0, since - 1));
  return Math.max(...gaps.map(({ gapMs }) => gapMs ?? 0));
}

const arrivalsOf = (platformId: number): number => shared.sandbox.arrivals(platformId).length;

it('processes share accounts out as they come and go, and no account waits for another', async () => {
  await shared.enqueue(PAYOUTS);
  for (let index = 0; index < 3; index += 1) start();
  await untilShared([4, 4, 4]);
  await until('all are sent for', () => shared.platformIds.every((platformId) => arrivalsOf(platformId) > 2));

  const [first, second, third] = workers as [WorkerProcess, WorkerProcess, WorkerProcess];
  const moving = await accountsOf(first);
  const staying = [...(await accountsOf(second)), ...(await accountsOf(third))];
  const epochs = await Promise.all(staying.map(async (platformId) => shared.epochOf(platformId)));
  const arrived = new Map(shared.platformIds.map((platformId) => [platformId, arrivalsOf(platformId)]));
  first.kill('SIGKILL');
  await untilShared([0, 6, 6]);
  const sendsAgain = (platformId: number): boolean => arrivalsOf(platformId) > (arrived.get(platformId) ?? 0) + 2;
  await until('what moved is sent for again', () => moving.every(sendsAgain));
  expect(await Promise.all(staying.map(async (platformId) => shared.epochOf(platformId)))).toEqual(epochs);
  const gapOf = (platformId: number): number => longestGapMs(platformId, arrived.get(platformId) ?? 0);
  expect(Math.max(...staying.map(gapOf))).toBeLessThan(Math.min(...moving.map(gapOf)));

  // Longer than the lease: others take over, and it finds that out when it continues.
  second.kill('SIGSTOP');
  await delay(5_000);
  second.kill('SIGCONT');
  await untilShared([0, 6, 6]);

  start();
  await untilShared([0, 4, 4, 4]);

  const leaving = await accountsOf(third);
  third.kill('SIGTERM');
  expect(await third.ended).toBe(0);
  const before = leaving.map(arrivalsOf);
  await until('others send for its accounts', () =>
    leaving.every((platformId, index) => arrivalsOf(platformId) > (before[index] ?? 0)),
  );
  await untilShared([0, 6, 0, 6]);

  await until('all is settled', async () => shared.isSettled(PAYOUTS), 120_000);
  shared.expectPromisesKept();
}, 300_000);

import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { until } from '../support/until.js';
import { closeAfterTest } from './support/close-after-test.js';
import { openSharedAccounts } from './support/shared-accounts.js';
import type { WorkerProcess } from './support/worker-process.js';

const PAYOUTS = 45;

it('processes share accounts out as they come and go, and no account waits for another', async () => {
  const shared = closeAfterTest(await openSharedAccounts(12));
  const { platformIds, sandbox } = shared;
  const workers: WorkerProcess[] = [];
  const accountsOf = async ({ pid }: WorkerProcess): Promise<number[]> =>
    [...(await shared.holders())].filter(([, holder]) => holder === pid).map(([platformId]) => platformId);
  const untilShared = async (...shares: readonly number[]): Promise<void> => {
    let found = '';
    const isShared = async (): Promise<boolean> => {
      found = (await Promise.all(workers.map(accountsOf))).map(({ length }) => length).join();
      return found === shares.join();
    };
    await until(() => `the leases are held ${shares.join()}; they are ${found}`, isShared);
  };
  const arrivalsOf = (platformId: number): number => sandbox.arrivals(platformId).length;
  const epochsOf = async (ids: readonly number[]): Promise<number[]> =>
    Promise.all(ids.map(async (id) => shared.epochOf(id)));

  await shared.enqueue(PAYOUTS);
  for (let index = 0; index < 3; index += 1) workers.push(shared.startWorker());
  await untilShared(4, 4, 4);
  await until('all are sent for', () => platformIds.every((platformId) => arrivalsOf(platformId) > 2));

  const [first, second, third] = workers as [WorkerProcess, WorkerProcess, WorkerProcess];
  const moving = await accountsOf(first);
  const staying = [...(await accountsOf(second)), ...(await accountsOf(third))];
  const epochs = await epochsOf(staying);
  const before = new Map(moving.map((platformId) => [platformId, arrivalsOf(platformId)]));
  first.kill('SIGKILL');
  await untilShared(0, 6, 6);
  await until('what moved is sent for again', () => moving.every((id) => arrivalsOf(id) > (before.get(id) ?? 0) + 2));
  expect(await epochsOf(staying)).toEqual(epochs);
  // Longer than the lease: others take over, and it finds that out when it continues.
  second.kill('SIGSTOP');
  await delay(5_000);
  second.kill('SIGCONT');
  await untilShared(0, 6, 6);
  workers.push(shared.startWorker());
  await untilShared(0, 4, 4, 4);

  const leaving = await accountsOf(third);
  third.kill('SIGTERM');
  expect(await third.ended).toBe(0);
  const left = leaving.map(arrivalsOf);
  const isTaken = (): boolean => leaving.every((id, index) => arrivalsOf(id) > (left[index] ?? 0));
  await until('others send for its accounts', isTaken);
  await untilShared(0, 6, 0, 6);
  await until('all is settled', async () => shared.isSettled(PAYOUTS), 120_000);
  shared.expectPromisesKept();
}, 300_000);

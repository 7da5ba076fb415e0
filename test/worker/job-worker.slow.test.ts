import { expect, it, jest } from '@jest/globals';
import type { Worker } from 'bullmq';
import { systemClock, type Clock } from '../../src/base/clock.js';
import { until } from '../support/until.js';
import { internals, JobRig, queuesOfTest, startPolls } from './support/job-rig.js';

const SPEED = 10;
/** Ten times as fast for what watches the worker; BullMQ has the machine's. */
const fastClock: Clock = {
  ...systemClock,
  now: () => systemClock.now() * SPEED,
  sleep: async (ms, signal) => systemClock.sleep(ms / SPEED, signal),
};

/** A worker of the withdraw queue. Its first BullMQ worker hangs in the method until `goOn`; those after it do not. */
function startHanging(method: keyof typeof internals, jobs: JobRig) {
  const original = internals[method];
  const callers = new Set<Worker>();
  let goOn = (): void => undefined;
  const told = new Promise<void>((resolve) => (goOn = resolve));
  jest.spyOn(internals, method).mockImplementation(async function (this: Worker, ...args: unknown[]) {
    callers.add(this);
    const [first] = callers;
    if (first === this) await told;
    return original.apply(this, args);
  });
  const worker = jobs.start({ concurrency: 1, ratePerSecond: 100 }, fastClock);
  return { worker, goOn, untilHung: async () => until('it hangs', () => callers.size > 0) };
}

it('a worker that was replaced and comes back with a job leaves it to the one in its place', async () => {
  const jobs = new JobRig();
  await jobs.rig.enqueue(Array.from({ length: 20 }, (_, index) => `p${index}`));
  const { goOn, untilHung } = startHanging('moveToActive', jobs);
  await untilHung();
  await until('the other one runs', () => jobs.ran.length >= 2);
  goOn();
  await until('all ran', () => jobs.ran.length === 20);
  expect(new Set(jobs.ran).size).toBe(20);
  expect(jobs).toMatchObject({ replaced: ['withdraw'], mostRunning: 1 });
  expect(await jobs.rig.queues.withdraw.getFailedCount()).toBe(0);
});

it('a worker of a paused queue is left alone, and closes in time although it hangs', async () => {
  const jobs = new JobRig();
  await jobs.rig.queues.withdraw.pause();
  const { worker, untilHung } = startHanging('waitForJob', jobs);
  await untilHung();
  await jobs.rig.enqueue(['p']);
  await systemClock.sleep(6_000);
  expect(jobs).toMatchObject({ ran: [], replaced: [] });
  const startedAt = performance.now();
  await worker.close();
  expect(performance.now() - startedAt).toBeLessThan(6_000);
});

it('polls that became due while no worker ran are made at the rate, also by several processes', async () => {
  const [RATE, PAYOUTS] = [10, 60];
  const rig = queuesOfTest();
  const polledAt: number[] = [];
  const payoutIds = Array.from({ length: PAYOUTS }, (_, index) => `p${index}`);
  await rig.enqueue(payoutIds);
  for (const payoutId of payoutIds) await rig.accept(payoutId);
  // As after an outage: all are due, and wait since an hour.
  const delayed = rig.queues.transactionstatus.toKey('delayed');
  const longAgo = (Date.now() - 3_600_000) * 0x1000;
  for (const payoutId of payoutIds) await rig.account.redis.zadd(delayed, longAgo, `${payoutId}~0`);
  const start = () =>
    startPolls(rig, { pollMinMs: 600_000, pollMaxMs: 600_000, pollRate: RATE }, async () => {
      polledAt.push(performance.now());
      return Promise.resolve({ kind: 'pending' });
    });
  const first = start();
  start();
  await until('a part is polled', () => polledAt.length > PAYOUTS / 3);
  // One of them takes over all: this is no cause for a burst either.
  await first.close();
  await until('all are polled', () => polledAt.length >= PAYOUTS, 30_000);
  // The limiter counts whole seconds: the end of one and the beginning of the next may be in the same second.
  const inASecond = polledAt.map((from) => polledAt.filter((at) => at >= from && at < from + 1_000).length);
  expect(Math.max(...inASecond)).toBeLessThanOrEqual(2 * RATE);
  const tookMs = (polledAt.at(-1) ?? 0) - (polledAt[0] ?? 0);
  expect(tookMs).toBeGreaterThan(((PAYOUTS - 2 * RATE) / RATE) * 1_000);
  expect(tookMs).toBeLessThan(((2 * PAYOUTS) / RATE) * 1_000);
});

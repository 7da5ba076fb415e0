import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Worker } from 'bullmq';
import { systemClock, type Clock } from '../../src/base/clock.js';
import type { StatusGateway } from '../../src/gateway/gateway.js';
import { until } from '../support/until.js';
import { afterTest } from './support/close-after-test.js';
import { internals, JobRig, queuesOfTest, startPolls } from './support/job-rig.js';

const SPEED = 10;
/** Ten times as fast for what watches the worker; BullMQ has the machine's. */
const fastClock: Clock = {
  ...systemClock,
  now: () => systemClock.now() * SPEED,
  sleep: async (ms, signal) => systemClock.sleep(ms / SPEED, signal),
};

describe('a worker of the withdraw queue', () => {
  let jobs: JobRig;
  let goOn: () => void;
  beforeEach(() => {
    jobs = new JobRig();
    goOn = () => undefined;
  });

  const start = () => {
    const worker = jobs.start({ concurrency: 1, ratePerSecond: 100 }, fastClock);
    afterTest(() => {
      goOn();
    });
    return worker;
  };

  /** The first worker that calls it hangs in it until it is told to go on (`goOn`); those after it do not. */
  function hangFirst(method: keyof typeof internals): () => boolean {
    const original = internals[method];
    const callers = new Set<Worker>();
    const told = new Promise<void>((resolve) => (goOn = resolve));
    jest.spyOn(internals, method).mockImplementation(async function (this: Worker, ...args: unknown[]) {
      callers.add(this);
      const [first] = callers;
      if (first === this) await told;
      return original.apply(this, args);
    });
    return () => callers.size > 0;
  }

  it('is replaced where its wait for a job never ends, and the jobs run', async () => {
    const isHung = hangFirst('waitForJob');
    start();
    await until('it waits for a job', isHung);
    await jobs.rig.enqueue(['p', 'q']);
    await until('both ran', () => jobs.ran.length === 2);
    expect(jobs).toMatchObject({ ran: ['p', 'q'], replaced: ['withdraw'], mostRunning: 1 });
  });

  it('that was replaced and comes back with a job runs it no more: the job is for the one in its place', async () => {
    const isHung = hangFirst('moveToActive');
    await jobs.rig.enqueue(Array.from({ length: 20 }, (_, index) => `p${index}`));
    start();
    await until('it hangs', isHung);
    await until('the other one runs', () => jobs.ran.length >= 2);
    goOn();
    await until('all ran', () => jobs.ran.length === 20);
    expect(new Set(jobs.ran).size).toBe(20);
    expect(jobs).toMatchObject({ replaced: ['withdraw'], mostRunning: 1 });
    expect(await jobs.rig.queues.withdraw.getFailedCount()).toBe(0);
  });

  it('closes in time although it hangs', async () => {
    const isHung = hangFirst('waitForJob');
    const worker = start();
    await until('it waits for a job', isHung);
    const startedAt = performance.now();
    await worker.close();
    expect(performance.now() - startedAt).toBeLessThan(6_000);
    // BullMQ would open a connection again.
    goOn = () => undefined;
  });

  const AGES_MS = 100 * 365 * 24 * 3_600_000;
  it.each<[string, () => Promise<unknown>, isHung: boolean]>([
    [
      'has a job whose time has not come',
      async () => jobs.rig.queues.withdraw.add('p', { payoutId: 'p' } as never, { delay: AGES_MS }),
      true,
    ],
    ['may not run a job because the queue is paused', async () => jobs.rig.queues.withdraw.pause(), true],
    // As where another process takes all that the rate allows.
    [
      'gets none because of the rate',
      async () => jobs.rig.account.redis.set(jobs.rig.queues.withdraw.toKey('limiter'), '1000', 'EX', 60),
      false,
    ],
  ])('is left alone that does nothing because it %s', async (_, prepare, hangs) => {
    const isHung = hangs ? hangFirst('waitForJob') : () => true;
    await prepare();
    if (!hangs) await jobs.rig.enqueue(['p']);
    start();
    await until('it waits for a job', isHung);
    if (await jobs.rig.queues.withdraw.isPaused()) await jobs.rig.enqueue(['p']);
    await systemClock.sleep(6_000);
    expect(jobs).toMatchObject({ ran: [], replaced: [] });
  });

  it('asks one command at a time while its queue is empty', async () => {
    const { redis: own } = jobs.rig.account.connection;
    const [asked, counted] = [jest.spyOn(own, 'exists'), jest.spyOn(own, 'pipeline')];
    start();
    await until('it has asked twice', () => asked.mock.calls.length === 2);
    expect(counted).not.toHaveBeenCalled();
    await jobs.rig.queues.withdraw.pause();
    await jobs.rig.enqueue(['p']);
    await until('it counts what may be due', () => counted.mock.calls.length > 0);
  });
});

it('polls that became due while no worker ran are made at the rate, also by several processes', async () => {
  const [RATE, PAYOUTS] = [10, 60];
  const rig = queuesOfTest();
  const polledAt: number[] = [];
  const getStatus: StatusGateway['getStatus'] = async () => {
    polledAt.push(performance.now());
    return Promise.resolve({ kind: 'pending' });
  };
  const payoutIds = Array.from({ length: PAYOUTS }, (_, index) => `p${index}`);
  await rig.enqueue(payoutIds);
  for (const payoutId of payoutIds) await rig.accept(payoutId);
  // As after an outage: all are due, and wait since an hour.
  const delayed = rig.queues.transactionstatus.toKey('delayed');
  const longAgo = (Date.now() - 3_600_000) * 0x1000;
  for (const payoutId of payoutIds) await rig.account.redis.zadd(delayed, longAgo, `${payoutId}~0`);
  const start = () => startPolls(rig, { pollMinMs: 600_000, pollMaxMs: 600_000, pollRate: RATE }, getStatus);
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

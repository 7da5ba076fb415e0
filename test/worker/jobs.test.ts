import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, jest } from '@jest/globals';
import { systemClock, type Clock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/logger.js';
import { GatewayUnavailableError } from '../../src/gateway/gateway.js';
import { LostJobAlarm, restoreLostJobs } from '../../src/worker/restore-lost-jobs.js';
import { noObserver } from '../../src/worker/sender/worker-observer.js';
import { longestPollDelayMs } from '../../src/worker/status-jobs.js';
import { until } from '../support/until.js';
import { afterTest } from './support/close-after-test.js';
import { internals, JobRig, queuesOfTest, startPolls } from './support/job-rig.js';

/** BullMQ looks for jobs that wait without a marker only after twenty seconds. */
const AT_ONCE_MS = 3_000;

const ids = (count: number): string[] => Array.from({ length: count }, (_, index) => `p${index}`);

describe('a worker of the withdraw queue', () => {
  it('takes every job that is due at once, up to as many as may run together, and asks once for each', async () => {
    const jobs = new JobRig();
    const asked = jest.spyOn(internals, 'moveToActive');
    const waited = jest.spyOn(internals, 'waitForJob');
    jobs.held = new Set(ids(60));
    await jobs.rig.enqueue(ids(60));
    jobs.start({ concurrency: 20 });
    await until('as many as may run together run', () => jobs.running.size === 20, AT_ONCE_MS);
    expect(asked.mock.calls.length).toBeLessThan(25);
    expect(waited.mock.calls.length).toBeLessThan(10);
    jobs.held.delete('p0');
    await until('the next runs', () => jobs.running.has('p20'), AT_ONCE_MS);
  });

  it('takes a job at once that comes while another one runs', async () => {
    const jobs = new JobRig();
    jobs.held = new Set(['long']);
    await jobs.rig.enqueue(['long']);
    jobs.start({ concurrency: 20 });
    await until('it runs', () => jobs.running.has('long'), AT_ONCE_MS);
    for (const payoutId of ['p', 'q', 'r']) {
      await jobs.rig.enqueue([payoutId]);
      await until('the new one ran', () => jobs.ran.includes(payoutId), AT_ONCE_MS);
    }
  });

  it('takes all that is left once the rate allows it', async () => {
    const jobs = new JobRig();
    await jobs.rig.enqueue(ids(12));
    jobs.start({ concurrency: 20, ratePerSecond: 4 });
    await until('all ran', () => jobs.ran.length === 12, 4 * AT_ONCE_MS);
  });
});

it('a payout is polled until it is final, also after errors, and no pause is longer than the longest', async () => {
  const rig = queuesOfTest();
  let polls = 0;
  const jobs = startPolls(rig, { pollMinMs: 10, pollMaxMs: 40, pollRate: 200 }, async () => {
    polls += 1;
    if (polls <= 8) throw new GatewayUnavailableError('The gateway is down');
    return Promise.resolve({ kind: 'pending' });
  });
  await rig.enqueue(['p']);
  await rig.accept('p');
  await until('it was polled often', () => polls >= 16);
  await jobs.close();
  const job = await rig.queues.transactionstatus.getJob('p~0');
  expect(await job?.getState()).toBe('delayed');
  expect(job?.delay).toBeGreaterThan(0);
  expect(job?.delay).toBeLessThanOrEqual(longestPollDelayMs(40));
});

describe('jobs that are lost', () => {
  /** A look every 0.1 s, and an hour of 18 s. */
  const QUICK = 200;

  /** What watches the jobs of a rig. */
  function restore(rig = queuesOfTest()) {
    const seen = { warnings: [] as [object, string][], recreated: [] as [string, number][], checks: [] as string[] };
    const stop = new AbortController();
    const start = (speed = QUICK): void => {
      const clock: Clock = {
        ...systemClock,
        now: () => performance.now() * speed,
        sleep: async (ms, signal) => systemClock.sleep(ms / speed, signal),
      };
      const observer = { ...noObserver, jobsRecreated: (...args: [string, number]) => void seen.recreated.push(args) };
      const logger = { ...silentLogger, warn: (...args: [object, string]) => void seen.warnings.push(args) };
      const watching = restoreLostJobs(
        { clock, ledger: rig.account.ledger, queues: rig.queues, observer, logger },
        {
          reconcile: async (state, signal) => {
            const count = await rig.reconciler.reconcile(state, signal);
            seen.checks.push(state);
            return count;
          },
        },
        stop.signal,
      );
      afterTest(async () => {
        stop.abort();
        await watching;
      });
    };
    const untilRepaired = async (count = 1): Promise<void> =>
      until('it is repaired', () => seen.recreated.length === count);
    return { ...seen, rig, redis: rig.account.redis, wait: rig.queues.withdraw.toKey('wait'), start, untilRepaired };
  }

  it('are added again at the start, which is told; then what is well is left alone', async () => {
    const { rig, redis, wait, start, untilRepaired, recreated, warnings, checks } = restore();
    await rig.enqueue(['p', 'q']);
    await rig.accept('q');
    await redis.del(wait, rig.queues.transactionstatus.toKey('delayed'));
    start();
    await untilRepaired(2);
    expect(Object.fromEntries(recreated)).toEqual({ in_progress: 1, queued: 1 });
    expect(warnings.map(([, text]) => text)).toEqual(Array(2).fill('re-created missing jobs'));
    expect(warnings.map(([fields]) => fields)).toContainEqual({ state: 'queued', count: 1 });
    expect(await rig.places(rig.queues.withdraw)).toEqual(['wait p~0']);
    // Ten looks.
    await delay(1_000);
    expect(checks).toHaveLength(2);
  });

  it('later are found by the counts alone, and that state only is checked', async () => {
    const { rig, redis, wait, start, untilRepaired, recreated, checks } = restore();
    await rig.enqueue(['p', 'q', 'r']);
    start();
    await until('the first checks are over', () => checks.length === 2);
    await redis.lrem(wait, 0, 'q~0');
    await untilRepaired();
    expect([recreated, checks.slice(2)]).toEqual([[['queued', 1]], ['queued']]);
  });

  it('are found within an hour, also where the counts fit', async () => {
    const { rig, redis, start, untilRepaired, recreated, checks } = restore();
    await rig.enqueue(['p']);
    start(10 * QUICK);
    await until('the first checks are over', () => checks.length >= 2);
    const before = checks.length;
    await redis.del(rig.queues.withdraw.toKey('p~0'));
    await untilRepaired();
    expect(checks.length).toBeGreaterThan(before);
    expect(recreated).toEqual([['queued', 1]]);
  });

  it('are found also after an error, of one state as of the other', async () => {
    const { rig, redis, wait, start, untilRepaired, warnings, checks } = restore();
    await rig.enqueue(['p']);
    // No list: what reads it fails.
    await redis.rename(wait, `${wait}-elsewhere`);
    await redis.set(wait, 'nonsense');
    start();
    await until('it has failed', () => warnings.some(([, text]) => text.includes('failed')));
    await until('the other state was checked', () => checks.includes('in_progress'));
    await redis.del(wait);
    await untilRepaired();
  });

  it.each<[string, readonly (number | readonly [recreated: number, lost: number])[], string]>([
    ['at two looks in a row', [3, 0, 5, 0, 1, 1], '.....!'],
    ['until an exact check was made', [2, 2, 2, [2, 0], 0, 2, 2], '.!! ..!'],
    [
      'but not for what a check found nothing behind',
      [4, 3, [0, 3], 3, 3, 4, 4, [1, 3], 3, 3, [0, 3], 1, 2, 2],
      '.! ...! .! ..!',
    ],
    // Behind payouts that have left the queue. At the end one of the five jobs had its turn.
    ['for one more', [[0, -5], -5, -4, -4, [1, -5], -5, -5, -6, -4, -4, [0, -4], -4, -4], ' ..! ....! ..'],
    ['for damage that comes during a check', [[0, 7], 7, 7], ' .!'],
  ])('are an alarm %s', (_, looks, alarms) => {
    const alarm = new LostJobAlarm();
    const found = looks.map((look) => {
      if (typeof look === 'number') return alarm.isDue(look) ? '!' : '.';
      alarm.noteCheck(...look);
      return ' ';
    });
    expect(found.join('')).toBe(alarms);
  });
});

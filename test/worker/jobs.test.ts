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

it('takes every job that is due at once, as many as may run together, and asks once for each', async () => {
  const jobs = new JobRig();
  const asked = jest.spyOn(internals, 'moveToActive');
  const payoutIds = Array.from({ length: 60 }, (_, index) => `p${index}`);
  jobs.held = new Set(payoutIds);
  await jobs.rig.enqueue(payoutIds);
  jobs.start({ concurrency: 20 });
  await until('as many as may run together run', () => jobs.running.size === 20, AT_ONCE_MS);
  expect(asked.mock.calls.length).toBeLessThan(25);
  jobs.held.delete('p0');
  await until('the next runs', () => jobs.running.has('p20'), AT_ONCE_MS);
});

it('polls a payout until it is final, also after errors, and pauses no longer than the longest', async () => {
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

  async function restore() {
    const rig = queuesOfTest();
    const recreated: [state: string, count: number][] = [];
    const [warnings, checks]: [string[], string[]] = [[], []];
    await rig.enqueue(['p', 'q']);
    await rig.accept('q');
    const stop = new AbortController();
    const start = (speed = QUICK): void => {
      const clock: Clock = {
        ...systemClock,
        now: () => performance.now() * speed,
        sleep: async (ms, signal) => systemClock.sleep(ms / speed, signal),
      };
      const observer = { ...noObserver, jobsRecreated: (...args: [string, number]) => void recreated.push(args) };
      const logger = { ...silentLogger, warn: (_: object, message: string) => void warnings.push(message) };
      const reconcile: typeof rig.reconciler.reconcile = async (state, signal) => {
        const count = await rig.reconciler.reconcile(state, signal);
        checks.push(state);
        return count;
      };
      const { account, queues } = rig;
      const runtime = { clock, ledger: account.ledger, queues, observer, logger };
      const watching = restoreLostJobs(runtime, { reconcile }, stop.signal);
      afterTest(async () => {
        stop.abort();
        await watching;
      });
    };
    const untilChecked = async (): Promise<void> => until('the first checks are over', () => checks.length >= 2);
    const untilRepaired = async (count = 1): Promise<void> => until('repaired', () => recreated.length === count);
    const wait = rig.queues.withdraw.toKey('wait');
    return { rig, redis: rig.account.redis, wait, start, untilChecked, untilRepaired, warnings, recreated, checks };
  }

  it('are added again at the start, which is told; then what is well is left alone', async () => {
    const { rig, redis, wait, start, untilRepaired, recreated, warnings, checks } = await restore();
    await redis.del(wait, rig.queues.transactionstatus.toKey('delayed'));
    start();
    await untilRepaired(2);
    expect(Object.fromEntries(recreated)).toEqual({ in_progress: 1, queued: 1 });
    expect(warnings).toEqual(Array(2).fill('re-created missing jobs'));
    expect(await rig.places(rig.queues.withdraw)).toEqual(['wait p~0']);
    // Ten looks.
    await delay(1_000);
    expect(checks).toHaveLength(2);
  });

  it('later are found by the counts alone, and that state only is checked', async () => {
    const { redis, wait, start, untilChecked, untilRepaired, recreated, checks } = await restore();
    start();
    await untilChecked();
    await redis.lrem(wait, 0, 'p~0');
    await untilRepaired();
    expect([recreated, checks.slice(2)]).toEqual([[['queued', 1]], ['queued']]);
  });

  it('are found within an hour, also where the counts fit', async () => {
    const { rig, redis, start, untilChecked, untilRepaired, recreated } = await restore();
    start(10 * QUICK);
    await untilChecked();
    await redis.del(rig.queues.withdraw.toKey('p~0'));
    await untilRepaired();
    expect(recreated).toEqual([['queued', 1]]);
  });

  it('are found also after an error, of one state as of the other', async () => {
    const { redis, wait, start, untilRepaired, warnings, checks } = await restore();
    // No list: what reads it fails.
    await redis.rename(wait, `${wait}-elsewhere`);
    await redis.set(wait, 'nonsense');
    start();
    await until('it has failed', () => warnings.some((text) => text.includes('failed')));
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

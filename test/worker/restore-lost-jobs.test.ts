import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { systemClock, type Clock } from '../../src/base/clock.js';
import { silentLogger, type Logger } from '../../src/base/logger.js';
import { restoreLostJobs } from '../../src/worker/restore-lost-jobs.js';
import { noObserver } from '../../src/worker/sender/worker-observer.js';
import { openQueueRig, type QueueRig } from '../queues/support/queue-rig.js';
import { until } from '../support/until.js';

/** A look every 0.1 s, and an hour of 18 s. */
const QUICK = 200;

function fastClock(speed: number): Clock {
  return {
    ...systemClock,
    now: () => performance.now() * speed,
    sleep: async (ms, signal) => systemClock.sleep(ms / speed, signal),
  };
}

let rig: QueueRig;
let warnings: [object, string][];
let recreated: [string, number][];
let checks: string[];
let stop: AbortController;
let watching: Promise<void>;

beforeEach(() => {
  rig = openQueueRig();
  [warnings, recreated, checks] = [[], [], []];
  stop = new AbortController();
});

afterEach(async () => {
  stop.abort();
  await watching;
  await rig.close();
});

function start(speed = QUICK): void {
  const { account, queues, reconciler } = rig;
  const logger: Logger = { ...silentLogger, warn: (fields, text) => void warnings.push([fields, text]) };
  watching = restoreLostJobs(
    {
      clock: fastClock(speed),
      ledger: account.ledger,
      queues,
      observer: { ...noObserver, jobsRecreated: (state, count) => void recreated.push([state, count]) },
      logger,
    },
    {
      reconcile: async (state, signal) => {
        const count = await reconciler.reconcile(state, signal);
        checks.push(state);
        return count;
      },
    },
    stop.signal,
  );
}

const waitingKey = (): string => rig.queues.withdraw.toKey('wait');

it('checks at the start, notifies its listeners, and then leaves what is well alone', async () => {
  await rig.enqueue(['p', 'q']);
  await rig.accept('q');
  await rig.account.redis.del(waitingKey(), rig.queues.transactionstatus.toKey('delayed'));
  start();
  await until('both are repaired', () => recreated.length === 2);
  expect([...recreated].sort()).toEqual([
    ['in_progress', 1],
    ['queued', 1],
  ]);
  expect(warnings.map(([, text]) => text)).toEqual(['re-created missing jobs', 're-created missing jobs']);
  expect(warnings.map(([fields]) => fields)).toContainEqual({ state: 'queued', count: 1 });
  expect(await rig.places(rig.queues.withdraw)).toEqual(['wait p~0']);
  // Ten looks.
  await delay(1_000);
  expect(checks).toHaveLength(2);
});

it('finds what is lost later by the counts alone, and checks that state only', async () => {
  await rig.enqueue(['p', 'q', 'r']);
  start();
  await until('the first checks are over', () => checks.length === 2);
  await rig.account.redis.lrem(waitingKey(), 0, 'q~0');
  await until('it is repaired', () => recreated.length === 1);
  expect([recreated, checks.slice(2)]).toEqual([[['queued', 1]], ['queued']]);
});

it('checks all of it every hour, also where the counts fit', async () => {
  await rig.enqueue(['p']);
  start(10 * QUICK);
  await until('the first checks are over', () => checks.length >= 2);
  const before = checks.length;
  await rig.account.redis.del(rig.queues.withdraw.toKey('p~0'));
  await until('it is repaired', () => recreated.length === 1);
  expect(checks.length).toBeGreaterThan(before);
  expect(recreated).toEqual([['queued', 1]]);
});

it('continues after an error, of one state as of the other', async () => {
  await rig.enqueue(['p']);
  // No list: what reads it fails.
  await rig.account.redis.rename(waitingKey(), `${waitingKey()}-elsewhere`);
  await rig.account.redis.set(waitingKey(), 'nonsense');
  start();
  await until('it has failed', () => warnings.some(([, text]) => text.includes('failed')));
  await until('the other state was checked', () => checks.includes('in_progress'));
  await rig.account.redis.del(waitingKey());
  await until('it is repaired', () => recreated.length === 1);
});

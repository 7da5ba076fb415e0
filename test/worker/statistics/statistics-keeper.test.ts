import { beforeEach, expect, it } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { DAY_MS, systemClock } from '../../../src/base/clock.js';
import type { LedgerConnection } from '../../../src/ledger/ledger-connection.js';
import { readBatches } from '../../../src/ledger/reads/batches.js';
import type { StateEvent } from '../../../src/ledger/reads/state-events.js';
import type { PayoutState } from '../../../src/ledger/states.js';
import { removePayouts } from '../../ledger/support/remove-payouts.js';
import { estimateEnd, MINUTE_MS, readStatistics, saveStatistics } from '../../../src/ledger/reads/statistics.js';
import { silentLogger } from '../../../src/base/logger.js';
import { RedisUnavailableError } from '../../../src/base/errors.js';
import {
  type Counters,
  countEvent,
  dropOldMinutes,
  emptyCounters,
  parseFields,
  toFields,
} from '../../../src/worker/statistics/counters.js';
import { recount } from '../../../src/worker/statistics/recount.js';
import { StatisticsKeeper } from '../../../src/worker/statistics/statistics-keeper.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { openTestAccount, type TestAccount } from '../../ledger/support/test-account.js';
import { Bustle, catchUp, intercepted, losing, NEVER, openKeeper, sumPayouts } from './support/statistics-rig.js';
import { closeAfterTest } from '../support/close-after-test.js';

let account: TestAccount;
/** Events carry Redis's time, so statistics are read by the real date. */
let connection: LedgerConnection;
beforeEach(() => {
  account = closeAfterTest(openTestAccount());
  connection = { ...account.connection, clock: systemClock };
});

const open = (given = connection) => openKeeper(given);
const bustleOf = async (seed: number, steps: number) => {
  const bustle = new Bustle(account, seed);
  await bustle.run(steps);
  return bustle;
};
const expectSums = async () => {
  expect((await readStatistics(connection)).sums).toEqual(await sumPayouts(account));
};
const deleteKey = async (key: 'statistics' | 'events') => account.redis.del(account.connection.keys[key]);
const remove = async (count: number) =>
  removePayouts(account.connection, 'cancelled', account.clock.wallNow() + 1, count);

async function expectTrue() {
  const sums = await sumPayouts(account);
  await catchUp(open());
  await expectBatches();
  const told = await readStatistics(connection);
  expect(told.sums).toEqual(sums);
  await deleteKey('statistics');
  await catchUp(open());
  expect(told).toEqual(await readStatistics(connection));
  await expectBatches();
}

async function expectBatches() {
  const some = (sums: object): object =>
    Object.fromEntries(Object.entries(sums).filter(([, list]) => (list as unknown[]).length > 0));
  for (const { name, sums } of (await readBatches(connection, 100)).batches) {
    expect(some(sums)).toEqual(some(await sumPayouts(account, name)));
  }
}

it('statistics follow the events every five seconds, and every fifteen once there were none', async () => {
  const slept: number[] = [];
  const stop = new AbortController();
  const sleep = async (ms: number) => {
    slept.push(ms);
    if (slept.length === 2) await account.ledger.enqueue([aPayout('q')]);
    if (slept.length === 4) stop.abort();
  };
  await account.ledger.enqueue([aPayout('p')]);
  await new StatisticsKeeper({ ...connection, clock: { ...systemClock, sleep } }, silentLogger).run(stop.signal);
  expect(slept).toEqual([200, 15_000, 5_000, 15_000]);
  expect((await readStatistics(connection)).sums.queued).toMatchObject([{ count: 2 }]);
});

it('statistics have the gaps that this process measured, also after a new count', async () => {
  const at = Date.now();
  const gaps = [{ at, gapMs: 1_011, hadToWait: true }];
  const keeper = new StatisticsKeeper(connection, silentLogger, () => gaps.splice(0));
  await account.ledger.enqueue([aPayout('p')]);
  await catchUp(keeper);
  gaps.push({ at, gapMs: 1_020, hadToWait: true }, { at, gapMs: 2_500, hadToWait: false });
  await catchUp(keeper);
  const expectGaps = async () => {
    const { minutes, pace } = await readStatistics(connection);
    expect(minutes).toContainEqual(expect.objectContaining({ smallestGapMs: 1_011, largestGapMs: 2_500 }));
    expect(pace).toEqual([1_011, 1_020]);
  };
  await expectGaps();
  // Events were lost: the keeper counts all of them again.
  await deleteKey('events');
  await account.ledger.enqueue([aPayout('q')]);
  await catchUp(keeper);
  await expectSums();
  await expectGaps();
});

it('statistics are those of the ledger after any changes, which two keepers count at once', async () => {
  const keepers = [open(), open()];
  const bustle = new Bustle(account, 4);
  for (let round = 0; round < 30; round += 1) {
    await Promise.all([bustle.run(10), ...keepers.map(async (keeper) => keeper.step(NEVER))]);
  }
  await catchUp(open());
  expect((await readBatches(connection, 100)).batches.map(({ name }) => name).sort()).toEqual(['b', 'c']);
  await expectTrue();
});

it('statistics are those of a Redis that came back older, whether its keeper ended or goes on counting', async () => {
  const { redis, ledger } = account;
  const keepers = [open(), open()];
  const prefix = account.connection.keys.prefix;
  await ledger.enqueue([aPayout('kept', { amount: '1.5' }), aPayout('other')]);
  for (const keeper of keepers) await catchUp(keeper);
  const keys = await redis.keys(`${prefix}:*`);
  const contents = await Promise.all(keys.map(async (key) => redis.dumpBuffer(key)));
  await ledger.change({ payoutId: 'kept', from: 'queued', to: 'sending' });
  await ledger.enqueue([aPayout('forgotten', { amount: '7' })]);
  for (const keeper of keepers) await catchUp(keeper);
  await redis.unlink(...(await redis.keys(`${prefix}:*`)));
  for (const [index, key] of keys.entries()) await redis.restore(key, 0, contents[index] ?? '');
  // As an adoption does.
  await ledger.change({ payoutId: 'kept', from: 'queued', to: 'unknown' });
  await ledger.enqueue([aPayout('later', { amount: '2' })]);
  for (const keeper of [...keepers, open()]) await catchUp(keeper);
  await expectSums();
  await expectTrue();
});

it.each([
  ['before', false],
  ['after', false],
  ['before', true],
  ['after', true],
] as const)(
  'statistics count all once when the keeper ends %s any of its steps; from the beginning: %s',
  async (side, isFirstCount) => {
    const bustle = await bustleOf(5, 20);
    await catchUp(open());
    for (let at = 1, reached = true; reached; at += 1) {
      await bustle.run(6);
      if (isFirstCount) await deleteKey('statistics');
      const lost = losing(connection, at, side);
      await catchUp(open(lost.connection)).catch(() => undefined);
      reached = lost.steps() >= at;
      await catchUp(open());
      await expectSums();
    }
    await expectTrue();
  },
);

it('the amount of a payout on its way is read once', async () => {
  let reads = 0;
  const counting = intercepted(connection, async (work, name) => {
    reads += Number(name === 'hmget');
    return work();
  });
  const keeper = openKeeper(counting);
  await account.ledger.enqueue([aPayout('p')]);
  await catchUp(keeper);
  reads = 0;
  await account.ledger.enqueue([aPayout('q')]);
  await catchUp(keeper);
  expect(reads).toBe(1);
  await account.ledger.change({ payoutId: 'q', from: 'queued', to: 'cancelled' });
  await catchUp(keeper);
  expect(reads).toBe(1);
  await expectSums();
});

it('amounts are read again after an error, since Redis may have come back older', async () => {
  let [reads, isFailing] = [0, false];
  const failing = intercepted(connection, async (work, name) => {
    if (isFailing) throw new RedisUnavailableError('gone');
    reads += Number(name === 'hmget');
    return work();
  });
  const keeper = openKeeper(failing);
  await account.ledger.enqueue([aPayout('first')]);
  await catchUp(keeper);
  await account.ledger.enqueue([aPayout('p')]);
  await catchUp(keeper);
  isFailing = true;
  await expect(catchUp(keeper)).rejects.toThrow('gone');
  isFailing = false;
  await catchUp(keeper);
  reads = 0;
  await account.ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled' });
  await catchUp(keeper);
  expect(reads).toBe(1);
  await expectSums();
});

it('payouts that retention removes leave the sums, also during the first count', async () => {
  // With this seed none of the removed ones was rejected today: a count from the beginning could not sum it any more.
  await bustleOf(17, 200);
  const keeper = open();
  const removeTwo = async () => keeper.countRemoval('cancelled', async () => remove(2));
  const removing = delay(60).then(removeTwo);
  await catchUp(keeper);
  expect(await removing).toBe(2);
  expect(await removeTwo()).toBe(2);
  await expectSums();
  await expectTrue();
});

it('a count of the whole ledger fits although payouts change between its steps', async () => {
  const bustle = new Bustle(account, 1);
  bustle.adopts = false;
  await bustle.run(200);
  const moving = intercepted(connection, async (work) => {
    await bustle.run(10);
    return work();
  });
  const counters = await recount(moving, undefined, true, NEVER);
  if (counters === undefined) throw new Error('it did not fit');
  await saveStatistics(connection, { revision: '', statistics: {}, batches: {} }, toFields(counters));
  await catchUp(open());
  await expectSums();
});

it('a count fits no index that names a payout without a record, unless allowed', async () => {
  await bustleOf(6, 30);
  await account.redis.zadd(account.connection.keys.state('queued'), 1.5, 'nobody');
  expect(await recount(connection, undefined, true, NEVER)).toBeUndefined();
  expect(await recount(connection, undefined, false, NEVER)).toBeDefined();
  expect(await open().step(NEVER)).toBe(false);
});

const START = Date.parse('2030-01-01T00:00:00Z');
const FACTS = { paymentId: 6, symbol: undefined, amount: '1.5' };

function change(at: number, payoutId: string, from: PayoutState | undefined, to: PayoutState): StateEvent {
  return { eventId: `${START + at}-0`, at: START + at, change: { payoutId, from, to } };
}

function count(events: readonly StateEvent[], counters = emptyCounters()): Counters {
  for (const event of events) countEvent(counters, event, FACTS);
  return counters;
}

function send(at: number, payoutId: string, outcome: PayoutState, tookMs = 100): StateEvent[] {
  return [change(at, payoutId, 'queued', 'sending'), change(at + tookMs, payoutId, 'sending', outcome)];
}

it('the minutes have sends, in the minute of their begin, and no gap that only begins show', () => {
  const { minutes, lastSendAt } = count([
    ...['p', 'q', 'r', 's'].map((payoutId) => change(0, payoutId, undefined, 'queued')),
    ...send(1_000, 'p', 'in_progress'),
    ...send(2_020, 'q', 'rejected'),
    ...send(59_900, 'r', 'unknown', 5_000),
    ...send(66_000, 's', 'in_progress'),
    change(70_000, 'p', 'in_progress', 'completed'),
  ]);
  expect([...minutes.values()]).toMatchObject([
    { at: START, sent: 3, smallestGapMs: undefined, completed: 0, rejected: 1, unknown: 0, backlog: 1 },
    { at: START + MINUTE_MS, sent: 1, largestGapMs: undefined, completed: 1, rejected: 0, unknown: 1, backlog: 0 },
  ]);
  expect(lastSendAt).toBe(START + 66_000);
});

it('the minutes are kept for a day, by whole hours', () => {
  const counters = count([change(0, 'p', undefined, 'queued'), change(3_600_000, 'q', undefined, 'queued')]);
  count([change(DAY_MS + 3_600_000, 'r', undefined, 'queued')], counters);
  dropOldMinutes(counters);
  expect([...counters.minutes.values()].map(({ at }) => at - START)).toEqual([3_600_000, DAY_MS + 3_600_000]);
});

it('the day has what was sent, completed, rejected and failed, until midnight UTC', () => {
  const counters = count([
    ...['p', 'q'].map((payoutId) => change(0, payoutId, undefined, 'queued')),
    ...send(1_000, 'p', 'in_progress'),
    change(5_000, 'p', 'in_progress', 'completed'),
    change(DAY_MS - 50, 'q', 'queued', 'sending'),
  ]);
  expect(counters.today.tallies.completed.list()).toEqual([{ ...FACTS, count: 1 }]);
  count([change(DAY_MS + 50, 'q', 'sending', 'rejected')], counters);
  expect(counters.today.tallies.sent.list()).toEqual([{ ...FACTS, count: 1 }]);
  expect(counters.today.tallies.rejected.count).toBe(1);
  expect(counters.today.tallies.completed.count).toBe(0);
  const read = parseFields(toFields(counters));
  expect(read === undefined ? undefined : toFields(read)).toEqual(toFields(counters));
});

it.each(['5', '{"queued":5}', '{"day":1,"sent":5}', '{'])(
  'all is counted again where someone altered a field to %s',
  (text) => {
    const { statistics, batches } = toFields(emptyCounters());
    for (const field of ['position', 'sums', 'today'])
      expect(parseFields({ statistics: { ...statistics, [field]: text }, batches })).toBeUndefined();
  },
);

it('the end of a backlog is estimated from the last sends, once the gateway became slow', () => {
  const stats = { queued: 100, paused: false, objections: [], sender: { owner: 'a', epoch: 1, heartbeat: 1 } };
  const endsAfter = (pace: readonly number[]) =>
    (estimateEnd({ minutes: [], pace, lastSendAt: 0 }, stats, 0).endsAt ?? 0) / 100;
  const gaps = (quick: number, slow: number) => [
    ...Array<number>(quick).fill(1_000),
    ...Array<number>(slow).fill(11_000),
  ];
  expect(endsAfter(gaps(20, 0))).toBe(1_000);
  // Twelve slow ones of twenty that are kept, and one standstill.
  expect(endsAfter(gaps(8, 12))).toBe(11_000);
  expect(endsAfter([...gaps(19, 0), 600_000])).toBe(1_000);
});

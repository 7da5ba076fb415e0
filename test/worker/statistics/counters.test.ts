import { describe, expect, it } from '@jest/globals';
import type { StateEvent } from '../../../src/ledger/reads/state-events.js';
import type { PayoutState } from '../../../src/ledger/states.js';
import { DAY_MS, MINUTE_MS } from '../../../src/ledger/reads/statistics.js';
import {
  type Counters,
  countEvent,
  countGap,
  dropOldMinutes,
  emptyCounters,
  parseFields,
  toFields,
} from '../../../src/worker/statistics/counters.js';

/** Midnight, UTC. */
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

describe('the minutes', () => {
  it('have sends, in the minute of their begin, and no gap that only begins show', () => {
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

  it('have the gaps that the sender measured between its writes', () => {
    const counters = count([...send(1_000, 'p', 'in_progress'), ...send(1_998, 'q', 'in_progress')]);
    for (const gapMs of [1_012, 1_011, 30_000])
      countGap(counters, { at: START + 3_000, gapMs, hadToWait: gapMs < 30_000 });
    countGap(counters, { at: START + MINUTE_MS, gapMs: 1_020, hadToWait: true });
    expect([...counters.minutes.values()]).toMatchObject([
      { at: START, sent: 2, smallestGapMs: 1_011, largestGapMs: 30_000 },
      { at: START + MINUTE_MS, sent: 0, smallestGapMs: 1_020, largestGapMs: 1_020 },
    ]);
    expect(counters.pace).toEqual([1_012, 1_011, 1_020]);
  });

  it('are kept for a day, by whole hours', () => {
    const counters = count([change(0, 'p', undefined, 'queued'), change(3_600_000, 'q', undefined, 'queued')]);
    count([change(DAY_MS + 3_600_000, 'r', undefined, 'queued')], counters);
    dropOldMinutes(counters);
    expect([...counters.minutes.values()].map(({ at }) => at - START)).toEqual([3_600_000, DAY_MS + 3_600_000]);
  });
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

it.each(['5', '[1]', '"x"', '{"queued":5}', '{"day":1,"sent":5}', '{'])(
  'all is counted again where someone altered a field to %s',
  (text) => {
    const { statistics, batches } = toFields(emptyCounters());
    for (const field of ['position', 'sums', 'today'])
      expect(parseFields({ statistics: { ...statistics, [field]: text }, batches })).toBeUndefined();
  },
);

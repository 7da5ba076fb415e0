import { DAY_MS, isAborted } from '../../base/clock.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { readIndexPage, readPaymentFacts } from '../../ledger/payment-facts.js';
import {
  countPayouts,
  type LedgerCounts,
  readEventsAfter,
  readStateEvents,
  type StateEvent,
  STREAM_BEGINNING,
  timeOfEvent,
} from '../../ledger/reads/state-events.js';
import { FINAL_STATES, PAYOUT_STATES, type PayoutState } from '../../ledger/states.js';

import { tallyStates } from '../../ledger/reads/currency-tallies.js';
import { type Counters, countEvent, emptyCounters, isCountedByDay, tally, type Tallies } from './counters.js';

/** Small steps, so that counting a large ledger does not delay the sender. */
const PAGE = 500;
const PAUSE_MS = 50;

/**
 * Counts the ledger and the last day's events afresh.
 * @param former - counters with possibly wrong sums; their minutes are right and continue
 * @param mustFit - the sums must match the ledger's own counts, which they never do if an index names a payout without a
 * record
 * @returns undefined if it was stopped or the ledger changed too much beside it: retry
 */
export async function recount(
  connection: LedgerConnection,
  former: Counters | undefined,
  mustFit: boolean,
  signal: AbortSignal,
): Promise<Counters | undefined> {
  const target = await countPayouts(connection);
  const tallies = await sumStates(connection, target, signal);
  if (tallies === undefined) return undefined;
  const { sums } = tallies;
  if (mustFit && PAYOUT_STATES.some((state) => sums[state].count !== target.counts[state])) return undefined;
  const counters = await replay(connection, former, target.newestEventId, signal);
  if (counters === undefined) return undefined;
  const queued = sums.queued.count;
  // Without a former count, the day's first backlog was unknown.
  if (former === undefined) for (const minute of counters.minutes.values()) minute.backlog += queued - counters.queued;
  return { ...counters, ...tallies, position: target.newestEventId, queued };
}

/** Sums the states as of the target's event, while payouts continue to change. */
async function sumStates(
  connection: LedgerConnection,
  { newestEventId, seq }: LedgerCounts,
  signal: AbortSignal,
): Promise<Tallies | undefined> {
  const tallies = { sums: tallyStates(), batches: new Map() };
  // Final states may have millions of payouts. These stay, so none needs to be remembered.
  const counted = new Map<string, PayoutState>();
  for (const state of PAYOUT_STATES) {
    let after: string | undefined = '';
    while (after !== undefined) {
      const page = await readIndexPage(connection, connection.keys.stateIndex(state), {
        after,
        upTo: seq,
        limit: PAGE,
      });
      for (const { payoutId, state: actual, facts } of page.payouts) {
        if (actual !== state) continue;
        tally(tallies, state, facts, 1);
        if (!FINAL_STATES.includes(state)) counted.set(payoutId, state);
      }
      after = page.next;
      if (after !== undefined) await connection.clock.sleep(PAUSE_MS, signal);
      if (isAborted(signal)) return undefined;
    }
  }
  const isFollowed = await takeBack(connection, { tallies, counted, since: newestEventId }, signal);
  return isFollowed ? tallies : undefined;
}

/** Puts payouts that changed since the event back into their former state. */
async function takeBack(
  connection: LedgerConnection,
  { tallies, counted, since }: { tallies: Tallies; counted: ReadonlyMap<string, PayoutState>; since: string },
  signal: AbortSignal,
): Promise<boolean> {
  const before = new Map<string, PayoutState | undefined>();
  const note = (events: readonly StateEvent[]): void => {
    for (const { change } of events) {
      if (change !== undefined && !before.has(change.payoutId)) before.set(change.payoutId, change.from);
    }
  };
  const isWhole = await visitEvents(connection, { after: since }, note, signal);
  if (!isWhole) return false;
  const moved = [...before].filter(([payoutId, from]) => from !== counted.get(payoutId));
  for (let start = 0; start < moved.length; start += PAGE) {
    const page = moved.slice(start, start + PAGE);
    const facts = await readPaymentFacts(
      connection,
      page.map(([payoutId]) => payoutId),
    );
    for (const [index, [payoutId, from]] of page.entries()) {
      const known = facts[index];
      if (known === undefined || (from !== undefined && FINAL_STATES.includes(from))) return false;
      const as = counted.get(payoutId);
      if (as !== undefined) tally(tallies, as, known, -1);
      if (from !== undefined) tally(tallies, from, known, 1);
    }
  }
  return true;
}

/** Counts the events up to one; without a former count, those of the last 24 hours. Its sums of states are useless. */
async function replay(
  connection: LedgerConnection,
  former: Counters | undefined,
  end: string,
  signal: AbortSignal,
): Promise<Counters | undefined> {
  const counters = former ?? emptyCounters();
  if (end === STREAM_BEGINNING) return counters;
  const today = Math.floor(timeOfEvent(end) / DAY_MS);
  const count = async (events: readonly StateEvent[]): Promise<void> => {
    const summed = events.flatMap(({ at, change }) =>
      change !== undefined && isCountedByDay(change) && Math.floor(at / DAY_MS) === today ? [change.payoutId] : [],
    );
    const facts = await readPaymentFacts(connection, summed);
    const byId = new Map(summed.map((payoutId, index) => [payoutId, facts[index]]));
    for (const event of events) countEvent(counters, event, byId.get(event.change?.payoutId ?? ''));
  };
  const [first] = await readStateEvents(connection, String(timeOfEvent(end) - DAY_MS), 1);
  if (former === undefined && first !== undefined) await count([first]);
  const after = former?.position ?? first?.eventId ?? STREAM_BEGINNING;
  return (await visitEvents(connection, { after, end }, count, signal)) ? counters : undefined;
}

/**
 * Visits events page by page, with a pause after each.
 * @param after - the event before the first
 * @param end - the last event; undefined for the newest
 * @returns false if it was stopped or the stream lacks some
 */
async function visitEvents(
  connection: LedgerConnection,
  { after, end }: { readonly after: string; readonly end?: string },
  visit: (events: readonly StateEvent[]) => Promise<void> | void,
  signal: AbortSignal,
): Promise<boolean> {
  for (let last = after; last !== end;) {
    const page = await readEventsAfter(connection, last, PAGE);
    if (page === undefined || isAborted(signal)) return false;
    const endsAt = page.findIndex(({ eventId }) => eventId === end);
    const events = endsAt === -1 ? page : page.slice(0, endsAt + 1);
    await visit(events);
    last = events.at(-1)?.eventId ?? last;
    if (page.length < PAGE) return end === undefined || last === end;
    await connection.clock.sleep(PAUSE_MS, signal);
  }
  return true;
}

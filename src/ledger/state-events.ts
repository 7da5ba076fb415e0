import { ask, type LedgerConnection } from './ledger-connection.js';
import { pairsToRecord } from './payout-record.js';
import { isPayoutState, PAYOUT_STATES, type PayoutState } from './states.js';

export interface StateEvent {
  readonly eventId: string;
  /** By Redis's clock, ms. */
  readonly at: number;
  /** Undefined if the event is not a payout's change of state. */
  readonly change: StateChange | undefined;
}

/** `from` is undefined for a payout that was accepted, or put in by an adoption. */
export interface StateChange {
  readonly payoutId: string;
  readonly from: PayoutState | undefined;
  readonly to: PayoutState;
}

export const STREAM_BEGINNING = '0-0';

/** By Redis's clock, ms. */
export function timeOfEvent(eventId: string): number {
  return Number(eventId.split('-')[0]);
}

/**
 * Reads events in order.
 * @param start - the first event's id, included, or a time in ms
 */
export async function readStateEvents(
  { redis, keys }: LedgerConnection,
  start: string,
  limit: number,
): Promise<StateEvent[]> {
  const entries = await ask(redis.xrange(keys.events, start, '+', 'COUNT', limit));
  return entries.map(([eventId, pairs]) => {
    const { type, payoutId = '', from = '', to = '' } = pairsToRecord(pairs);
    const isChange = type === 'state' && isPayoutState(to);
    return {
      eventId,
      at: timeOfEvent(eventId),
      change: isChange ? { payoutId, from: isPayoutState(from) ? from : undefined, to } : undefined,
    };
  });
}

/**
 * Reads at most `limit` events after one.
 * @returns undefined if the stream has lost `after`, and therefore perhaps later events too
 */
export async function readEventsAfter(
  connection: LedgerConnection,
  after: string,
  limit: number,
): Promise<StateEvent[] | undefined> {
  if (after === STREAM_BEGINNING) return readStateEvents(connection, '-', limit);
  const [first, ...events] = await readStateEvents(connection, after, limit + 1);
  return first?.eventId === after ? events : undefined;
}

/** Negative if the first is older, 0 if they are the same. */
export function compareEventIds(one: string, other: string): number {
  const [oneMs, oneSeq] = one.split('-').map(Number);
  const [otherMs, otherSeq] = other.split('-').map(Number);
  return (oneMs ?? 0) - (otherMs ?? 0) || (oneSeq ?? 0) - (otherSeq ?? 0);
}

export interface LedgerCounts {
  /** {@link STREAM_BEGINNING} without an event. */
  readonly newestEventId: string;
  /** Index entries up to this score were made up to that event. */
  readonly seq: string;
  readonly counts: Readonly<Record<PayoutState, number>>;
}

/** At one moment. */
export async function countPayouts({ run }: LedgerConnection): Promise<LedgerCounts> {
  const [newestEventId, seq, ...counts] = (await run('count-payouts', PAYOUT_STATES)) as [string, string, ...number[]];
  return {
    newestEventId,
    seq,
    counts: Object.fromEntries(PAYOUT_STATES.map((state, index) => [state, counts[index]])) as LedgerCounts['counts'],
  };
}

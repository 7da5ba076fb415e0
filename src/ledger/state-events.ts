import { ask, type LedgerConnection } from './ledger-connection.js';
import { pairsToRecord } from './payout-record.js';
import { isPayoutState, PAYOUT_STATES, type PayoutState } from './states.js';

/** A payout's change of state, as the event stream has it. */
export interface StateEvent {
  readonly eventId: string;
  /** By Redis's clock, ms. */
  readonly at: number;
  /** Undefined where the event is not a payout's change of state. */
  readonly change: StateChange | undefined;
}

/** `from` is undefined for a payout that was accepted, or put in by an adoption. */
export interface StateChange {
  readonly payoutId: string;
  readonly from: PayoutState | undefined;
  readonly to: PayoutState;
}

/** The place before every event. */
export const STREAM_BEGINNING = '0-0';

/** By Redis's clock, ms. */
export function timeOfEvent(eventId: string): number {
  return Number(eventId.split('-')[0]);
}

/**
 * Reads events in their order.
 * @param start - the first event's id, itself included, or a time in ms
 * @throws RedisUnavailableError
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
 * Reads the events behind one.
 * @returns at most `limit`, none at the end; undefined when the stream does not have `after` any more, so that some behind
 * it may be gone as well
 * @throws RedisUnavailableError
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

/** Below zero where the first is older, 0 where they are the same. */
export function compareEventIds(one: string, other: string): number {
  const [oneMs, oneSeq] = one.split('-').map(Number);
  const [otherMs, otherSeq] = other.split('-').map(Number);
  return (oneMs ?? 0) - (otherMs ?? 0) || (oneSeq ?? 0) - (otherSeq ?? 0);
}

/** How the ledger stands right after an event. */
export interface LedgerCounts {
  /** {@link STREAM_BEGINNING} where there is none. */
  readonly newestEventId: string;
  /** Entries of indexes up to this score came into them up to that event. */
  readonly seq: string;
  readonly counts: Readonly<Record<PayoutState, number>>;
}

/** Counts the payouts of each state at one moment. @throws RedisUnavailableError */
export async function countPayouts({ run }: LedgerConnection): Promise<LedgerCounts> {
  const [newestEventId, seq, ...counts] = (await run('count-payouts', PAYOUT_STATES)) as [string, string, ...number[]];
  return {
    newestEventId,
    seq,
    counts: Object.fromEntries(PAYOUT_STATES.map((state, index) => [state, counts[index]])) as LedgerCounts['counts'],
  };
}

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

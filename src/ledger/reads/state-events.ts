import { UnreadableRecordError } from '../../base/errors.js';
import { replyCode } from '../../base/redis-errors.js';
import { ask, type LedgerConnection } from '../ledger-connection.js';
import { pairsToRecord, type PayoutRecord } from '../payout-record.js';
import { isPayoutState, PAYOUT_STATES, type PayoutState } from '../states.js';

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

const SEARCHED_EVENTS = 5_000;
const EVENTS_PER_READ = 1_000;

/**
 * Searches events backwards. A page may be short or empty and still have a next one.
 * @param before - the event to begin behind; undefined for the newest
 * @param parse - returns undefined for an event that is not wanted
 * @returns `next` is the next page's `before`; undefined at the end
 */
export async function searchEvents<Found>(
  { redis, keys }: LedgerConnection,
  before: string | undefined,
  limit: number,
  parse: (eventId: string, fields: PayoutRecord) => Found | undefined,
): Promise<{ readonly found: readonly Found[]; readonly next: string | undefined }> {
  const found: Found[] = [];
  let place = before;
  for (let searched = 0; searched < SEARCHED_EVENTS; searched += EVENTS_PER_READ) {
    const start = place === undefined ? '+' : `(${place}`;
    const events = await ask(redis.xrevrange(keys.events, start, '-', 'COUNT', EVENTS_PER_READ));
    for (const [eventId, pairs] of events) {
      place = eventId;
      const each = parse(eventId, pairsToRecord(pairs));
      if (each === undefined) continue;
      found.push(each);
      if (found.length === limit) return { found, next: place };
    }
    if (events.length < EVENTS_PER_READ) return { found, next: undefined };
  }
  return { found, next: place };
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
  const [newestEventId, seq, ...counts] = (await run('count-payouts', {}, [], PAYOUT_STATES)) as [
    string,
    string,
    ...number[],
  ];
  return {
    newestEventId,
    seq,
    counts: Object.fromEntries(PAYOUT_STATES.map((state, index) => [state, counts[index]])) as LedgerCounts['counts'],
  };
}

/** The group of an account's events that `payouts notify` reads. */
export const NOTIFY_GROUP = 'payouts-notify';

/** A longer lag needs an operator: `payouts doctor` and `/readyz` warn, as does the alert PayoutsNotificationsLate. */
export const NOTIFICATIONS_LATE_MS = 5 * 60_000;

/**
 * How long the oldest event has waited that `payouts notify` has not handled, even if no such process runs.
 * @returns ms on the clock of Redis; 0 if there is none; undefined if notifications were never started
 */
export async function readNotificationLag({ redis, keys }: LedgerConnection): Promise<number | undefined> {
  const lastDelivered = await readLastDelivered({ redis, keys });
  if (lastDelivered === undefined) return undefined;
  const [pending, unread, [seconds, microseconds]] = await Promise.all([
    ask(redis.xpending(keys.events, NOTIFY_GROUP, '-', '+', 1)) as Promise<[eventId: string][]>,
    ask(redis.xrange(keys.events, `(${lastDelivered}`, '+', 'COUNT', 1)),
    ask(redis.time()),
  ]);
  const eventId = pending[0]?.[0] ?? unread[0]?.[0];
  const now = Number(seconds) * 1_000 + Number(microseconds) / 1_000;
  return eventId === undefined ? 0 : Math.max(0, now - Number.parseInt(eventId, 10));
}

async function readLastDelivered({
  redis,
  keys,
}: Pick<LedgerConnection, 'redis' | 'keys'>): Promise<string | undefined> {
  let groups: unknown[][];
  try {
    groups = (await ask(redis.xinfo('GROUPS', keys.events))) as unknown[][];
  } catch (error) {
    // The one that it has: there is no stream.
    if (replyCode(error) === 'ERR' || error instanceof UnreadableRecordError) return undefined;
    throw error;
  }
  const facts = groups.map((pairs) => new Map(pairs.map((value, index) => [value, pairs[index + 1]])));
  const group = facts.find((each) => each.get('name') === NOTIFY_GROUP);
  return group?.get('last-delivered-id') as string | undefined;
}

/** Starts the group with future events: a ledger's history is not notified. An existing group stays. */
export async function startNotifyGroup({ redis, keys }: LedgerConnection): Promise<void> {
  try {
    await ask(redis.xgroup('CREATE', keys.events, NOTIFY_GROUP, '$', 'MKSTREAM'));
  } catch (error) {
    if (replyCode(error) !== 'BUSYGROUP') throw error;
  }
}

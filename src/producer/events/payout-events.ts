import { isAborted } from '../../base/clock.js';
import { duplicateForWaiting, type RedisClient } from '../../base/redis.js';
import { APPROVAL_DECISIONS, type ApprovalDecision } from '../../ledger/control-record.js';
import { ask, type LedgerConnection } from '../../ledger/ledger-connection.js';
import { pairsToRecord } from '../../ledger/payout-record.js';
import { isFinal, isPayoutState, type PayoutState } from '../../ledger/states.js';

/** Types of events other than a payout's change of state. */
export const ACCOUNT_EVENTS = [
  'paused',
  'resumed',
  'objection',
  'ledger_adopted',
  'declared_new',
  'replicas_lowered',
  'late_payment',
  'tampering',
  'other_payment',
  'approval',
  'balance_dropped',
  'drop_accepted',
  'policy_loaded',
  'journal_head',
] as const;

/**
 * What happened.
 * - `state`: a payout changed its state.
 * - `late_payment`: a payment was proved after its payout could no longer take it, see `Payout.lateGatewayId`.
 * - `tampering`: a payout is held because its data in Redis was altered.
 * - `other_payment`: the gateway has another payment with an order id of this payout.
 * - `approval`: the key named in `by` approved or rejected a payout. A worker decides whether that counts.
 * - `balance_dropped`: the gateway's balance fell without a payout that explains it.
 * - `drop_accepted`: an operator has looked at that.
 * - `declared_new`: an operator stated that no process sends for the account.
 * - `replicas_lowered`: an operator stated that a replica of Redis is gone for good.
 * - `policy_loaded`: a worker applies the policy of this `hash`, from its start or SIGHUP on.
 * - `journal_head`: the send journal ends with the line of this `hash`. It is published at the start of sending and
 *   every ten minutes.
 * - `objection`: a send journal contradicts the ledger.
 *
 * The others are the account's.
 */
export type PayoutEventType = 'state' | (typeof ACCOUNT_EVENTS)[number];

/** A payout's new state, or the account's event. */
export type PayoutEventName = PayoutState | Exclude<PayoutEventType, 'state'>;

/** One change of a payout, or of the account. */
export interface PayoutEvent {
  /**
   * The identity of what happened, to handle it only once: the payout, its attempt and its state, such as
   * `invoice-77#1#completed`. After a failover of Redis the same event may come again at another place in the stream.
   */
  readonly id: string;
  /** The place in the stream: events come in the order of their places. */
  readonly eventId: string;
  readonly type: PayoutEventType;
  /** Absent for an event of the account. */
  readonly payoutId?: string;
  /** Of the payout: 0 before its first send. */
  readonly attempt?: number;
  readonly from?: PayoutState;
  readonly to?: PayoutState;
  /** Whether `to` is final, see `Payout.final`; absent without `to`. */
  readonly final?: boolean;
  readonly decision?: ApprovalDecision;
  /** Of `policy_loaded` and `journal_head`: SHA-256, hexadecimal. */
  readonly hash?: string;
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly by?: string;
  readonly reason?: string;
}

/** A place in the stream: behind an event, or at a time (ms since 1970, inclusive). */
export type EventPosition = { readonly afterEventId: string } | { readonly sinceMs: number };

/** The first `limit` events from a position on. @throws RedisUnavailableError */
export async function readEvents(
  { redis, keys }: LedgerConnection,
  position: EventPosition,
  limit: number,
): Promise<PayoutEvent[]> {
  const start = 'sinceMs' in position ? String(position.sinceMs) : `(${position.afterEventId}`;
  const entries = await ask(redis.xrange(keys.events, start, '+', 'COUNT', limit));
  return entries.map(([eventId, pairs]) => parseEvent(eventId, pairs));
}

/** The place behind the newest event. @throws RedisUnavailableError */
export async function findEventsEnd({ redis, keys }: LedgerConnection): Promise<{ afterEventId: string }> {
  const [newest] = await ask(redis.xrevrange(keys.events, '+', '-', 'COUNT', 1));
  return { afterEventId: newest?.[0] ?? '0-0' };
}

export function parseEvent(eventId: string, pairs: readonly string[]): PayoutEvent {
  const fields = pairsToRecord(pairs);
  const { type = '', payoutId = '', from = '', to = '', at = '', by = '', reason = '', attempt = '' } = fields;
  const decision = APPROVAL_DECISIONS.find((known) => type === 'approval' && known === to);
  return {
    id: identify({ type, payoutId, attempt, from, to, at, by, reason }),
    eventId,
    type: ACCOUNT_EVENTS.find((other) => other === type) ?? 'state',
    ...(payoutId === '' ? {} : { payoutId, attempt: Number(attempt) }),
    ...(isPayoutState(from) ? { from } : {}),
    ...(isPayoutState(to) ? { to, final: isFinal(to) } : {}),
    ...(decision === undefined ? {} : { decision }),
    ...(type === 'policy_loaded' || type === 'journal_head' ? { hash: to } : {}),
    at: toTime(at, eventId),
    ...(by === '' ? {} : { by }),
    ...(reason === '' ? {} : { reason }),
  };
}

type EventFields = Readonly<Record<'type' | 'payoutId' | 'attempt' | 'from' | 'to' | 'at' | 'by' | 'reason', string>>;

/** Survives a failover, which can change an event's place in the stream and the time of what is done again. */
function identify({ type, payoutId, attempt, from, to, at, by, reason }: EventFields): string {
  if (payoutId === '') return `${type}#${at}`;
  const ofAttempt = `${payoutId}#${attempt}`;
  if (type === 'late_payment') return `${ofAttempt}#${type}#${reason}`;
  if (type === 'approval') return `${ofAttempt}#${type}#${by}#${at}`;
  if (type !== 'state') return `${ofAttempt}#${type}#${at}`;
  // A payout may be held, and queued again, several times in one attempt.
  const isRepeatable = to === 'held' || (to === 'queued' && from !== '');
  return isRepeatable ? `${ofAttempt}#${to}#${at}` : `${ofAttempt}#${to}`;
}

/** A time that someone wrote, and that is none, must not hide the events behind it: Redis itself dated the event. */
function toTime(at: string, eventId: string): string {
  const [given, stored] = [new Date(at === '' ? NaN : Number(at)), new Date(parseInt(eventId, 10))];
  return (Number.isNaN(given.getTime()) ? stored : given).toISOString();
}

/** Waits at the end of an account's event stream, on a connection of its own. */
export class EventTail {
  readonly #connection: LedgerConnection;
  readonly #waitMs: number;
  #redis: RedisClient | undefined;
  readonly #closed = new AbortController();

  constructor(connection: LedgerConnection, waitMs: number) {
    this.#connection = connection;
    this.#waitMs = waitMs;
  }

  /**
   * @returns the first of the events behind this one; none after the time limit or a close
   * @throws RedisUnavailableError
   */
  async read(afterEventId: string, limit: number): Promise<PayoutEvent[]> {
    if (isAborted(this.#closed.signal)) return [];
    this.#redis ??= duplicateForWaiting(this.#connection.redis, this.#waitMs);
    const { events } = this.#connection.keys;
    const waiting = this.#redis.xread('COUNT', limit, 'BLOCK', this.#waitMs, 'STREAMS', events, afterEventId);
    try {
      const [stream] = (await ask(waiting)) ?? [];
      return (stream?.[1] ?? []).map(([eventId, pairs]) => parseEvent(eventId, pairs));
    } catch (error) {
      if (isAborted(this.#closed.signal)) return [];
      throw error;
    }
  }

  close(): void {
    this.#closed.abort();
    this.#redis?.disconnect();
  }
}

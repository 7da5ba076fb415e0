import { APPROVAL_DECISIONS, type ApprovalDecision } from '../../ledger/control-record.js';
import { ask, type LedgerConnection } from '../../ledger/ledger-connection.js';
import { pairsToRecord } from '../../ledger/payout-record.js';
import { isPayoutState, type PayoutState } from '../../ledger/states.js';

/** What is not a payout's change of state. */
export const ACCOUNT_EVENTS = [
  'paused',
  'resumed',
  'objection',
  'ledger_adopted',
  'declared_new',
  'late_payment',
  'tampering',
  'approval',
  'balance_dropped',
  'drop_accepted',
  'policy_loaded',
  'journal_head',
] as const;

/**
 * What happened. `state`: a payout changed its state. `late_payment`: a payment was proved when its payout had no place for it
 * any more, see `Payout.lateTxhash`. `tampering`: a payout is held because somebody altered what is in Redis.
 * `approval`: `by`, the name of a key, approved or rejected a payout; whether that counts, a worker decides.
 * `balance_dropped`: the gateway's balance fell without a payout that explains it; `drop_accepted`: an operator has looked at that.
 * `declared_new`: an operator stated that no process sends for the account.
 * `policy_loaded`: a worker judges by the policy of this `hash`, from its start or SIGHUP on. `journal_head`: the send journal ends with the line of this `hash`,
 * told when a worker begins to send and every ten minutes. The others are the account's; `objection`: a send journal contradicts the ledger.
 */
export type PayoutEventType = 'state' | (typeof ACCOUNT_EVENTS)[number];

/** The state that a payout came into, or what happened to the account. */
export type PayoutEventName = PayoutState | Exclude<PayoutEventType, 'state'>;

/** One change of a payout, or of the account. */
export interface PayoutEvent {
  /** Its place in the stream: events come in the order of their ids. */
  readonly eventId: string;
  readonly type: PayoutEventType;
  /** Absent where the event is the account's. */
  readonly payoutId?: string;
  readonly from?: PayoutState;
  readonly to?: PayoutState;
  /** Of an `approval`. */
  readonly decision?: ApprovalDecision;
  /** Of `policy_loaded` and `journal_head`: SHA-256, hexadecimal. */
  readonly hash?: string;
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly by?: string;
  readonly reason?: string;
}

/** A place in the stream: right after an event, or at a time (ms since 1970, events of that very time included). */
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

/** Reads one entry of the stream. */
export function parseEvent(eventId: string, pairs: readonly string[]): PayoutEvent {
  const { type = '', payoutId = '', from = '', to = '', at = '', by = '', reason = '' } = pairsToRecord(pairs);
  const decision = APPROVAL_DECISIONS.find((known) => type === 'approval' && known === to);
  return {
    eventId,
    type: ACCOUNT_EVENTS.find((other) => other === type) ?? 'state',
    ...(payoutId === '' ? {} : { payoutId }),
    ...(isPayoutState(from) ? { from } : {}),
    ...(isPayoutState(to) ? { to } : {}),
    ...(decision === undefined ? {} : { decision }),
    ...(type === 'policy_loaded' || type === 'journal_head' ? { hash: to } : {}),
    at: new Date(Number(at)).toISOString(),
    ...(by === '' ? {} : { by }),
    ...(reason === '' ? {} : { reason }),
  };
}

import { hash } from 'node:crypto';
import { gatewayIdKey } from '../base/fields.js';
import { ENDED_STATES, PAYOUT_STATES, type PayoutState } from './states.js';

export interface PayoutIndex {
  readonly key: string;
  /** Else a sorted set. */
  readonly isStream: boolean;
}

/**
 * The names of all Redis keys of an account. The braces keep an account in one slot of a Redis Cluster, so that a
 * script may change several keys at once.
 *
 * | key | type | holds |
 * |---|---|---|
 * | `ledger` | hash | the ledger's id and format, the transition counter, the pauses, the breaker's counts, the number of people's acts, and of those that a send journal has, time and payoutId of the last tampering, and of the last payment that was found to be another one |
 * | `sender` | hash | the lease, the number of sends begun, the token of the last one, the attempt without a response |
 * | `payout:<payoutId>` | hash | one payout with its history and comments |
 * | `state:<state>` | sorted set; stream for a state that is never left, at a quarter of the size | payoutIds in the order in which they entered the state |
 * | `batch:<batch>` | sorted set | payoutIds in the order of acceptance |
 * | `gatewayId:<bucket>` | hash | {@link shortGatewayId} → payoutId, spread over small hashes, which Redis stores compactly |
 * | `removed:<bucket>` | hash | payoutId → the final state of a payout that retention removed, spread the same way |
 * | `scheduled` | sorted set | `<notBefore> <payoutId>` of queued payouts with a `notBefore`, in the order of these texts |
 * | `outbox` | sorted set | `<state> <payoutId>` of payouts whose BullMQ job has yet to be added, by the time of the change |
 * | `events` | stream | every change, for applications and for `payouts events` |
 * | `activity` | stream | acts of operators and automatic stops: who, when and why; about the newest 10,000 |
 * | `journals` | hash | journalId → that send journal's place and last entry (JSON), of all that have sends |
 * | `objections` | hash | journalId → why that journal contradicts this ledger (JSON) |
 * | `spent` | stream | what each send counts for in a policy, and its outcome; for about the longest window |
 * | `late` | sorted set | payoutIds whose payment was proved too late, by the time of the proof |
 * | `recheck` | set | payoutIds with a new approval or rejection, whose hold the worker must check again |
 * | `unkept` | sorted set | payouts that were cancelled or written off, and rejections by people (`FIELD PAYOUTID`), that no send journal has yet, by the time of that |
 * | `unreceipted` | sorted set | payouts that ended without a receipt, because the signer gave none, by the time of the last try |
 * | `lookUps` | sorted set | payouts that may be `unknown` and that the gateway is asked for by order id, by the time of the next question |
 * | `statistics` | hash | counters derived from the events, with the last event counted; may be deleted at any time |
 * | `batches` | hash | batch → its sums by state (JSON), up to the same event, which the field '' names; may be deleted at any time |
 * | `gateway` | hash | the gateway's last data on currencies and balance, and how the balance compares with the payouts; may be deleted at any time |
 * | `policy` | string | the sending worker's report of its policy: windows, and what it holds (JSON); may be deleted at any time |
 * | `workers` | hash | worker process → its status (JSON), written every few seconds; may be deleted at any time |
 *
 * BullMQ's own keys have the same prefix.
 */
export class LedgerKeys {
  /** Of all keys of this account, including BullMQ's. */
  readonly prefix: string;

  constructor(platformId: number) {
    this.prefix = `{payouts:${platformId}}`;
  }

  get ledger(): string {
    return `${this.prefix}:ledger`;
  }

  get sender(): string {
    return `${this.prefix}:sender`;
  }

  get outbox(): string {
    return `${this.prefix}:outbox`;
  }

  get scheduled(): string {
    return `${this.prefix}:scheduled`;
  }

  get events(): string {
    return `${this.prefix}:events`;
  }

  get activity(): string {
    return `${this.prefix}:activity`;
  }

  get journals(): string {
    return `${this.prefix}:journals`;
  }

  get objections(): string {
    return `${this.prefix}:objections`;
  }

  get late(): string {
    return `${this.prefix}:late`;
  }

  get spent(): string {
    return `${this.prefix}:spent`;
  }

  get recheck(): string {
    return `${this.prefix}:recheck`;
  }

  get unkept(): string {
    return `${this.prefix}:unkept`;
  }

  get unreceipted(): string {
    return `${this.prefix}:unreceipted`;
  }

  get lookUps(): string {
    return `${this.prefix}:lookUps`;
  }

  get statistics(): string {
    return `${this.prefix}:statistics`;
  }

  get batches(): string {
    return `${this.prefix}:batches`;
  }

  get gateway(): string {
    return `${this.prefix}:gateway`;
  }

  get policy(): string {
    return `${this.prefix}:policy`;
  }

  get workers(): string {
    return `${this.prefix}:workers`;
  }

  payout(payoutId: string): string {
    return `${this.prefix}:payout:${payoutId}`;
  }

  state(state: PayoutState): string {
    return `${this.prefix}:state:${state}`;
  }

  /** In the order in which they entered the state. */
  stateIndex(state: PayoutState): PayoutIndex {
    return { key: this.state(state), isStream: ENDED_STATES.includes(state) };
  }

  /** In the order of acceptance. */
  batchIndex(batch: string): PayoutIndex {
    return { key: this.batch(batch), isStream: false };
  }

  batch(batch: string): string {
    return `${this.prefix}:batch:${batch}`;
  }

  /** The small hash that may have a payment. */
  gatewayIdBucket(gatewayId: string): string {
    return `${this.prefix}:gatewayId:${bucketOf(gatewayIdKey(gatewayId))}`;
  }

  removedBucket(payoutId: string): string {
    return `${this.prefix}:removed:${bucketOf(payoutId)}`;
  }

  get removedBuckets(): readonly string[] {
    const buckets = Array.from({ length: 16 ** BUCKET_DIGITS }, (_, bucket) =>
      bucket.toString(16).padStart(BUCKET_DIGITS, '0'),
    );
    return buckets.map((bucket) => `${this.prefix}:removed:${bucket}`);
  }

  /** The keys of every script: in the order of {@link KEY_CONSTANTS}, then of the states. */
  get ofEveryScript(): readonly string[] {
    return [
      ...KEY_CONSTANTS.map((name) => this[name.toLowerCase() as Lowercase<typeof name>]),
      ...PAYOUT_STATES.map((state) => this.state(state)),
    ];
  }
}

export const KEY_CONSTANTS = [
  'LEDGER',
  'SENDER',
  'OUTBOX',
  'EVENTS',
  'ACTIVITY',
  'JOURNALS',
  'OBJECTIONS',
  'LATE',
  'SPENT',
  'RECHECK',
  'UNKEPT',
  'SCHEDULED',
] as const;

/** 4096 buckets. */
function bucketOf(text: string): string {
  return sha1(text).slice(0, BUCKET_DIGITS);
}

const BUCKET_DIGITS = 3;

/** A gatewayId in its bucket: prelude/outcome.lua writes it, and says why it is enough. */
export function shortGatewayId(gatewayId: string): string {
  return sha1(gatewayIdKey(gatewayId)).slice(BUCKET_DIGITS, 23);
}

function sha1(text: string): string {
  return hash('sha1', text);
}

/**
 * The Redis keys that belong to no account. They too begin with `{payouts:`, for which the Redis user has rights.
 *
 * | key | type | holds |
 * |---|---|---|
 * | `{payouts:members}` | hash | worker process with several accounts → its heartbeat; may be deleted at any time |
 * | `{payouts:members}:reports` | hash | the same process → its accounts and what it does for them (JSON); may be deleted at any time |
 * | `{payouts:accounts}` | set | accounts that payouts were accepted for: workers of others then say if nobody serves one |
 */
export const SHARED_KEYS = {
  members: '{payouts:members}',
  memberReports: '{payouts:members}:reports',
  accounts: '{payouts:accounts}',
} as const;

import { createHash } from 'node:crypto';
import { txhashSpellings } from '../fields.js';
import { PAYOUT_STATES, type PayoutState } from './states.js';
import { ENDED_STATES } from './transitions.js';

/** Where payouts are listed, in an order. */
export interface PayoutIndex {
  readonly sortedSet: string;
  /** What comes after the sorted set; undefined where all is in that. */
  readonly stream: string | undefined;
}

/**
 * The names of all Redis keys of an account. The braces make Redis Cluster keep an account in one slot, so that a
 * script may change several of them at once.
 *
 * | key | type | holds |
 * |---|---|---|
 * | `ledger` | hash | the ledger's id and format, the transition counter, the pause, the breaker's counts |
 * | `sender` | hash | the lease, the number of sends begun, the token of the last one, the attempt that has no response |
 * | `payout:<payoutId>` | hash | one payout with its history |
 * | `state:<state>` | sorted set | payoutIds in the order in which they came into the state |
 * | `ended:<state>` | stream | the same of states that are never left, since the ledger is of format 4: a quarter of a sorted set's size |
 * | `batch:<batch>` | sorted set | payoutIds in the order in which they were accepted |
 * | `batch-counts:<batch>` | string | payouts of a large batch by state, with the last event that is counted (JSON); for a day, and may be deleted at any time |
 * | `txhash:<bucket>` | hash | {@link shortTxhash} of the txhash's key → payoutId, spread over small hashes, which Redis stores compactly; the whole key before format 4 |
 * | `removed:<bucket>` | hash | payoutId → the final state of a payout that retention removed, spread the same way |
 * | `outbox` | sorted set | `<state> <payoutId>` of payouts whose BullMQ job has yet to be added, by the time of the change |
 * | `events` | stream | every change, for applications and for `payouts events` |
 * | `activity` | stream | what operators did, and what stopped the account: who, when and why; about the newest 10,000 |
 * | `journals` | hash | journalId → where that send journal is, and its last entry (JSON), of all that have sends |
 * | `objections` | hash | journalId → why that journal contradicts this ledger (JSON) |
 * | `spent` | stream | what each send counts for where a policy counts, and what came of it; about as long as the longest window |
 * | `late` | sorted set | payoutIds of which a payment was proved too late, by the time of the proof |
 * | `recheck` | set | payoutIds that got an approval or a rejection: the worker is to judge their hold again |
 * | `statistics` | hash | counters derived from the events, with the last event that is counted; may be deleted at any time |
 * | `gateway` | hash | what the gateway said last of its currencies and the balance, and how the balance compares with the payouts; may be deleted at any time |
 * | `policy` | string | what the worker that sends says of its policy: windows, and what it holds (JSON); may be deleted at any time |
 * | `workers` | hash | worker process → what it is doing (JSON), written every few seconds; may be deleted at any time |
 *
 * BullMQ's own keys begin with the same prefix.
 */
export class LedgerKeys {
  /** The prefix of everything of this account, also BullMQ's. */
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

  get statistics(): string {
    return `${this.prefix}:statistics`;
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

  /** The index of a state that is never left, beside {@link state}, which has what came into it before format 4. */
  ended(state: PayoutState): string {
    return `${this.prefix}:ended:${state}`;
  }

  /** The payouts of a state, in the order in which they came into it. */
  stateIndex(state: PayoutState): PayoutIndex {
    return { sortedSet: this.state(state), stream: ENDED_STATES.includes(state) ? this.ended(state) : undefined };
  }

  /** The payouts of a batch, in the order in which they were accepted. */
  batchIndex(batch: string): PayoutIndex {
    return { sortedSet: this.batch(batch), stream: undefined };
  }

  batch(batch: string): string {
    return `${this.prefix}:batch:${batch}`;
  }

  batchCounts(batch: string): string {
    return `${this.prefix}:batch-counts:${batch}`;
  }

  /** The small hashes in which a transaction may stand: one for each of {@link txhashSpellings}. */
  txhashBuckets(txhash: string): string[] {
    return txhashSpellings(txhash).map((spelling) => `${this.prefix}:txhash:${bucketOf(spelling)}`);
  }

  /** The small hash in which the id of a removed payout stands. */
  removedBucket(payoutId: string): string {
    return `${this.prefix}:removed:${bucketOf(payoutId)}`;
  }

  /** What every script is given, in the order of {@link KEY_CONSTANTS}, then of the states, then of those that are never left. */
  get ofEveryScript(): readonly string[] {
    return [
      ...KEY_CONSTANTS.map((name) => this[name.toLowerCase() as Lowercase<typeof name>]),
      ...PAYOUT_STATES.map((state) => this.state(state)),
      ...ENDED_STATES.map((state) => this.ended(state)),
    ];
  }
}

/** How scripts call the account's keys. */
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
] as const;

/** 4096 buckets. */
function bucketOf(text: string): string {
  return sha1(text).slice(0, BUCKET_DIGITS);
}

const BUCKET_DIGITS = 3;

/** How a txhash stands in its bucket: prelude/outcome.lua writes it, and says why it is enough. */
export function shortTxhash(txhash: string): string {
  return ` ${sha1(txhash).slice(BUCKET_DIGITS, 23)}`;
}

function sha1(text: string): string {
  return createHash('sha1').update(text).digest('hex');
}

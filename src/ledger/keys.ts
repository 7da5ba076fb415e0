import type { PayoutState } from './states.js';

/**
 * The names of all Redis keys of an account. The braces make Redis Cluster keep an account in one slot, so that a
 * script may change several of them at once.
 *
 * | key | type | holds |
 * |---|---|---|
 * | `ledger` | hash | the ledger's id, the transition counter, the pause, the breaker's counts |
 * | `sender` | hash | the lease, the number of sends begun, the attempt that has no answer |
 * | `payout:<payoutId>` | hash | one payout with its history |
 * | `state:<state>` | sorted set | payoutIds in the order in which they came into the state |
 * | `batch:<batch>` | sorted set | payoutIds in the order in which they were accepted |
 * | `txhash:<bucket>` | hash | txhash → payoutId, spread over small hashes, which Redis stores compactly |
 * | `removed:<bucket>` | hash | payoutId → the final state of a payout that retention removed, spread the same way |
 * | `outbox` | sorted set | `<state> <payoutId>` of payouts whose BullMQ job has yet to be added, by the time of the change |
 * | `events` | stream | every change, for applications and for `payouts events` |
 *
 * BullMQ's own keys begin with the same prefix. The Lua scripts build the same names from the `ledger` key.
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

  payout(payoutId: string): string {
    return `${this.prefix}:payout:${payoutId}`;
  }

  state(state: PayoutState): string {
    return `${this.prefix}:state:${state}`;
  }

  batch(batch: string): string {
    return `${this.prefix}:batch:${batch}`;
  }
}

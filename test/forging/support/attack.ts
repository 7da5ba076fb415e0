import type { PayoutInput } from '../../../src/ledger/payout.js';
import type { ForgedAccount } from './forged-account.js';
import type { Reason } from './outcome.js';
import type { SignOptions } from './signers.js';

/** What an attack is aimed at: a payout that an honest producer signed, for an amount and an address of its own. */
export interface Target {
  readonly account: ForgedAccount;
  /** Another account of the same Redis, with a payout of its own of the same id. */
  readonly other: ForgedAccount;
  readonly payoutId: string;
  readonly input: PayoutInput;
}

/** How far the payout was when the attacker came. */
export type Reached = 'queued' | 'cancelled' | 'completed' | 'failed' | 'rejected' | 'unknown' | 'not sent';

/**
 * - `held`: the payout, or what the attacker made of it, is held and was not sent (again)
 * - `paid once as signed`: what was altered is not signed and moves no money
 * - `waits`: it is not sent, and not held: the attacker made it wait
 * - `stopped`: the account sends nothing more until an operator has looked
 */
export type Expected = 'held' | 'paid once as signed' | 'waits' | 'stopped';

export interface Attack {
  readonly name: string;
  /** @defaultValue `queued` */
  readonly from?: Reached;
  /** What the honest producer enqueues beside the usual. */
  readonly input?: Partial<PayoutInput>;
  readonly sign?: SignOptions;
  /** @returns the payoutId that the attacker wants to be paid, where it is another than the target's */
  attack(target: Target): Promise<unknown>;
  readonly expect: Expected;
  /** The word that a hold has; or that a journal objects, where the account stops. */
  readonly reason?: Reason | 'objection';
  /** Whether an event `tampering` says so. */
  readonly isTampering?: boolean;
}

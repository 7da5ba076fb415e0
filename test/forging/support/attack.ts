import type { PayoutInput } from '../../../src/ledger/payout.js';
import type { ForgedAccount } from './forged-account.js';
import type { ForgingWorld } from './forging-world.js';
import type { SignOptions } from './signers.js';

/** Why an attacked payout is held. */
export type Reason =
  | ('unsigned' | 'fields' | 'wrong_audience' | 'no_audience' | 'unknown_key' | 'wrong_role' | 'revoked_key')
  | ('key_not_valid' | 'bad_signature' | 'issued_in_future' | 'expired' | 'lifetime' | 'before_birth' | 'forgotten')
  | 'sent_before';

/** That a payout is held, why, and whether there is an event `tampering` for it. */
export interface Held {
  readonly held: Reason;
  readonly isTampering: boolean;
}

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

export interface Attack {
  readonly name: string;
  /** @defaultValue `queued` */
  readonly from?: Reached;
  /** What the honest producer enqueues beside the usual. */
  readonly input?: Partial<PayoutInput>;
  readonly sign?: SignOptions;
  /** @returns the payoutId that the attacker wants to be paid, where it is another than the target's */
  attack(target: Target): Promise<unknown>;
  /**
   * - `held`: the payout, or what the attacker made of it, is held and was not sent (again)
   * - `paid once as signed`: what was altered is not signed and moves no money
   * - `waits`: it is not sent, and not held: the attacker made it wait
   * - `stopped`: the account sends nothing more until an operator has looked
   */
  readonly expect: 'held' | 'paid once as signed' | 'waits' | 'stopped';
  /** The word that a hold has; or that a journal objects, where the account stops. */
  readonly reason?: Reason | 'objection';
  /** Whether an event `tampering` says so. */
  readonly isTampering?: boolean;
}

/** What is held as tampering. */
export const tampered = (reason: Reason) => ({ expect: 'held', isTampering: true, reason }) as const;

/** Where an attack on a whole account takes place. Its payout `first` was paid before, `after` is enqueued behind it. */
export interface Scene {
  readonly world: ForgingWorld;
  readonly account: ForgedAccount;
  readonly other: ForgedAccount;
}

export interface AccountAttack {
  readonly name: string;
  attack(scene: Scene): Promise<unknown>;
  /** `continues`: what is signed is still paid, once; `stopped`: nothing more; `either`: as it comes, nothing forged is paid. */
  readonly expect: 'continues' | 'stopped' | 'either';
  /** What the worker says of a signature, where it does. */
  readonly refusal?: Reason | 'resume';
}

/** A time as statements have it, from now. */
export const time = (offsetMs: number): string => new Date(Date.now() + offsetMs).toISOString();

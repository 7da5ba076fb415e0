import type { SignatureFault } from '../../../src/control/intents/verify-signature.js';
import type { PayoutInput } from '../../../src/ledger/payout.js';
import type { ForgedAccount, SignOptions } from './forged-account.js';
import type { ForgingWorld } from './forging-world.js';

export type Reason =
  SignatureFault['fault'] | 'unsigned' | 'fields' | 'before_birth' | 'forgotten' | 'sent_before' | 'ended_before';

/** Whether an event `tampering` says so: all else can come about in good faith, by a wrong configuration. */
export const isTampering = (reason: string) =>
  ['fields', 'bad_signature', 'wrong_role', 'sent_before'].includes(reason);

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
  /**
   * - a reason: the payout, or what the attacker made of it, is held for it and was not sent (again)
   * - `paid as signed`: once; what was altered is not signed and moves no money
   * - `waits`: it is not sent, and not held: the attacker made it wait
   * - `stopped`: the account sends nothing more until an operator has looked, because a journal objects
   */
  readonly expect: Reason | 'paid as signed' | 'waits' | 'stopped';
  /** @returns the payoutId that the attacker wants to be paid, where it is another than the target's */
  attack(target: Target): Promise<unknown>;
  readonly from?: Reached;
  /** What the honest producer enqueues beside the usual. */
  readonly input?: Partial<PayoutInput>;
  readonly sign?: SignOptions;
}

/** What makes attacks on payouts that have something in common. */
export const rowOf =
  (common: Pick<Attack, 'from' | 'input' | 'sign'>) =>
  (name: string, expect: Attack['expect'], attack: Attack['attack']): Attack => ({ name, expect, attack, ...common });
export const row = rowOf({});

/** Where an attack on a whole account takes place. Its payout `first` was paid before, `after` is enqueued behind it. */
export interface Scene {
  readonly world: ForgingWorld;
  readonly account: ForgedAccount;
}

export const time = (offsetMs: number) => new Date(Date.now() + offsetMs).toISOString();

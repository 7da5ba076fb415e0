import type { ForgottenSend } from './adopt-ledger.js';
import type { Payout } from './payout.js';
import type { Refusal } from './refusal.js';

/** The ledger as the sender needs it. Narrow, so that the sending rules also run on a simulated ledger. */

/** What a process sees of the lease. Two equal views in a row mean that the holder gave no sign of life between them. */
export interface LeaseView {
  readonly owner: string;
  readonly epoch: number;
  /** Raised by the holder about every second. */
  readonly beat: number;
  /** The holder gave the lease back after its last answer. */
  readonly released: boolean;
}

/** The right to send, as long as the ledger agrees: a newer epoch ends it. */
export interface Lease {
  readonly owner: string;
  readonly epoch: number;
}

export interface SenderView {
  readonly ledgerId: string;
  /** Undefined when no process ever held the lease, or the key is gone. */
  readonly lease: LeaseView | undefined;
  /** How many sends this ledger has seen begin. It never falls, so a smaller number is an older copy. */
  readonly sends: number;
  /** A request may still be on its way: the last attempt has no answer of the gateway. */
  readonly unanswered: boolean;
  /** Why the account is paused; undefined when it is not. */
  readonly pausedReason: string | undefined;
}

/** One attempt of one payout, under one lease. */
export interface SendAttempt {
  readonly payoutId: string;
  readonly attempt: number;
  readonly epoch: number;
}

export interface BeginSend {
  readonly lease: Lease;
  readonly ledgerId: string;
  /** The number of sends that the sender believes this ledger has seen. */
  readonly sends: number;
  readonly payoutId: string;
  /** The number of the new attempt. */
  readonly attempt: number;
}

export type BeginResult = { readonly kind: 'begun'; readonly sends: number } | Refusal;

/** What is recorded of an attempt. */
export type SendResult =
  | { readonly kind: 'accepted'; readonly txhash: string }
  | { readonly kind: 'rejected'; readonly message: string }
  | { readonly kind: 'unknown'; readonly reason: string };

/** When the account is to be paused in the same step. */
export interface BreakerRule {
  readonly maxRejectionsInARow: number;
  readonly maxUnknownsInARow: number;
  /** Set when the gateway's message looks like a block of the account. */
  readonly blockedReason?: string;
}

export interface FinishResult {
  /** False when the attempt was recorded before, or a person has decided in the meantime. */
  readonly recorded: boolean;
  /** Set when this result paused the account. */
  readonly pausedReason?: string;
}

export interface SenderLedger {
  readSender(): Promise<SenderView>;
  /** @returns the new epoch, or undefined when the lease is no longer as it was seen */
  acquireLease(owner: string, seen: LeaseView | undefined): Promise<number | undefined>;
  /** @returns false when the lease is lost */
  beatLease(lease: Lease): Promise<boolean>;
  releaseLease(lease: Lease): Promise<void>;
  readPayout(payoutId: string): Promise<Payout | undefined>;
  /** Those of the sends that the ledger does not know of, in the order given. */
  findForgottenSends<Send extends SendAttempt>(sends: readonly Send[]): Promise<readonly ForgottenSend<Send>[]>;
  /** Resolves once the beginning is as durable as the ledger can make it. */
  beginSend(begin: BeginSend): Promise<BeginResult>;
  /** Puts back an attempt that is proved not to have been sent. Without effect when it never began. */
  revertSend(attempt: SendAttempt, reason: string): Promise<void>;
  finishSend(attempt: SendAttempt, result: SendResult, rule: BreakerRule): Promise<FinishResult>;
  /**
   * Turns what earlier holders left in `sending` into `unknown`.
   * @returns the payouts that were changed, or undefined when the lease is lost
   */
  recoverSends(lease: Lease, reason: string): Promise<readonly string[] | undefined>;
}

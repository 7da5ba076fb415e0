import type { JudgedSend, SignedSend } from '../../journal/journal-line.js';
import type { Hold } from '../../ledger/hold.js';
import type { Payout } from '../../ledger/payout.js';

/**
 * What decides, besides the ledger, whether a payout may be sent: signatures, which Redis can neither make nor alter, and
 * a policy. A port, so that the rules of sending know nothing of either.
 */
export interface SendAuthority {
  /**
   * Judges the very object that is sent. Asked before a connection is opened, and again right before the send begins; never
   * gives up the event loop.
   */
  permit(payout: Payout): SendPermit;
  /**
   * Writes down what refusals rest on that Redis may forget. Called before anything comes of a refusal.
   * @throws Error when the journal cannot be written
   */
  keepRejections?(): Promise<void>;
}

/** Decides whether a pause that this worker keeps has ended. */
export interface ResumeAuthority {
  /**
   * Judges the act with which an operator resumed the account.
   * @param act - as the ledger has it, JSON
   * @param pausedAt - when this worker saw the pause, wall clock, ms
   */
  judgeResume(act: string | undefined, pausedAt: number): ResumeVerdict;
}

export type SendPermit = GrantedSend | RefusedSend;

export interface RefusedSend {
  readonly kind: 'refused';
  readonly hold: Hold;
}

export interface GrantedSend {
  readonly kind: 'granted';
  /** What the journal notes of the signature; absent where none is asked for. */
  readonly signed?: SignedSend | undefined;
  /** What the journal and the ledger note for the caps of a policy; absent without one. */
  readonly counted?: CountedPermit | undefined;
}

export interface CountedPermit {
  readonly judged: JudgedSend;
  /** For how long the ledger has to remember spends, ms. */
  readonly keepMs: number;
}

export type ResumeVerdict =
  { readonly kind: 'accepted'; readonly actHash: string } | { readonly kind: 'refused'; readonly message: string };

import type { JudgedSend, SignedSend } from '../../journal/journal-line.js';
import type { Hold, Payout } from '../../ledger/payout.js';

/**
 * Decides, besides the ledger, whether a payout may be sent: by signatures, which Redis can neither make nor alter, and
 * a policy. A port: the rules of sending know nothing of either.
 */
export interface SendAuthority {
  /**
   * Checks the very object that is sent, before connecting and right before the begin. Never gives up the event loop.
   */
  permit(payout: Payout): SendPermit;
  /**
   * Journals people's rejections, and what takes them back, which Redis may forget: before a hold or a send.
   * @param payouts - whose decisions are looked at first
   * @throws Error if the journal cannot be written
   */
  keepRejections?(payouts?: readonly Payout[]): Promise<void>;
}

export interface ResumeAuthority {
  /**
   * @param act - with which an operator resumed the account, as the ledger has it, JSON
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
  /** For the journal; absent if no signature is required. */
  readonly signed?: SignedSend | undefined;
  /** For a policy's caps, in journal and ledger; absent without a policy. */
  readonly counted?: CountedPermit | undefined;
}

interface CountedPermit {
  readonly judged: JudgedSend;
  /** How long the ledger must remember spends. */
  readonly keepMs: number;
}

export type ResumeVerdict =
  { readonly kind: 'accepted'; readonly actHash: string } | { readonly kind: 'refused'; readonly message: string };

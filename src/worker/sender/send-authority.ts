import type { SignedSend } from '../../journal/journal-line.js';
import type { Hold } from '../../ledger/hold.js';
import type { Payout } from '../../ledger/payout.js';

/**
 * What decides, besides the ledger, whether a payout may be sent: signatures, which Redis can neither make nor alter. A
 * port, so that the rules of sending know nothing of keys.
 */
export interface SendAuthority {
  /**
   * Judges the very object that is sent. Asked before a connection is opened, and again right before the send begins; never
   * gives up the event loop.
   */
  permit(payout: Payout): SendPermit;
  /**
   * Judges the act with which an operator resumed the account.
   * @param act - as the ledger has it, JSON
   * @param pausedAt - when this worker saw the pause, wall clock, ms
   */
  judgeResume(act: string | undefined, pausedAt: number): ResumeVerdict;
}

export type SendPermit =
  /** With what the journal notes of the signature. */
  { readonly kind: 'granted'; readonly signed: SignedSend } | { readonly kind: 'refused'; readonly hold: Hold };

export type ResumeVerdict =
  { readonly kind: 'accepted'; readonly actHash: string } | { readonly kind: 'refused'; readonly message: string };

import type { WithdrawOutcome } from '../../gateway/withdraw-gateway.js';
import type { LedgerMismatch } from '../../journal/find-mismatch.js';
import type { PayoutState } from '../../ledger/states.js';

/** The result of one try to send a payout. */
export type SendReport =
  /** It was sent, and this is what is known. */
  | { readonly kind: 'sent'; readonly outcome: Exclude<WithdrawOutcome, { kind: 'not_sent' }> }
  /** Nothing was sent and it is still `queued`: try again later. */
  | { readonly kind: 'not_sent'; readonly reason: string }
  /** It is not `queued` any more; there is nothing to do. */
  | { readonly kind: 'skipped'; readonly state: PayoutState | undefined }
  /** Its `notBefore` (wall clock, ms) has not come, although its job has. */
  | { readonly kind: 'early'; readonly notBefore: number }
  | { readonly kind: 'paused'; readonly reason: string }
  /** A send journal, perhaps another one, contradicts the ledger: an operator must decide. */
  | { readonly kind: 'objected'; readonly reason: string }
  /** It was signed before this process's journal began, and others wait like it or another host may know: no hold helps. */
  | { readonly kind: 'unadopted'; readonly reason: string }
  /** The ledger is bound to another gateway: this process must not send for it. */
  | { readonly kind: 'other_gateway'; readonly audience: string }
  /** Another process is the sender now. */
  | { readonly kind: 'lease_lost' }
  /** The signal was aborted before the send began. */
  | { readonly kind: 'stopped' }
  /** This process's journal and the ledger contradict each other: an operator must decide. */
  | { readonly kind: 'ledger_mismatch'; readonly mismatch: LedgerMismatch };

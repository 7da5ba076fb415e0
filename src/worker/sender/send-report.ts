import type { ErrorCode } from '../../errors.js';
import type { WithdrawOutcome } from '../../gateway/withdraw-gateway.js';
import type { LedgerMismatch } from '../../journal/find-mismatch.js';
import type { PayoutState } from '../../ledger/states.js';

/** The result of one try to send a payout. */
export type SendReport =
  | { readonly kind: 'sent'; readonly outcome: Exclude<WithdrawOutcome, { kind: 'not_sent' }> }
  /** Nothing was sent and it is still `queued`: try again later. */
  | { readonly kind: 'not_sent'; readonly reason: string; readonly code?: ErrorCode | undefined }
  /** It is not `queued` any more; there is nothing to do. */
  | { readonly kind: 'skipped'; readonly state: PayoutState | undefined }
  /** Its job came before `notBefore` (wall clock, ms). */
  | { readonly kind: 'early'; readonly notBefore: number }
  | { readonly kind: 'paused'; readonly reason: string }
  /** A send journal, perhaps another one, contradicts the ledger: an operator must decide. */
  | { readonly kind: 'objected'; readonly reason: string }
  /** Signed before this process's journal began. Others like it wait, or another host may know: no hold helps. */
  | { readonly kind: 'unadopted'; readonly reason: string }
  /** The ledger is bound to another gateway. */
  | { readonly kind: 'other_gateway'; readonly audience: string }
  | { readonly kind: 'lease_lost' }
  /** Aborted before the send began. */
  | { readonly kind: 'stopped' }
  /** This process's journal contradicts the ledger: an operator must decide. */
  | { readonly kind: 'ledger_mismatch'; readonly mismatch: LedgerMismatch };

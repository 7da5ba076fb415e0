import { errorCode, type ErrorCode } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';
import type { WithdrawOutcome } from '../../gateway/gateway.js';
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

/** Nothing was sent, because of an error. */
export function toNotSent(error: unknown): Extract<SendReport, { kind: 'not_sent' }> {
  return { kind: 'not_sent', reason: (error as Error).message, code: errorCode(error) };
}

export type SenderStatus =
  | { readonly role: 'standby' }
  | { readonly role: 'sender'; readonly epoch: number }
  /** The reason says why and what to do. */
  | { readonly role: 'refused'; readonly reason: string; readonly cause?: 'disk' | 'gateway' };

/** A refusal is logged once. */
export class StatusTracker {
  readonly #logger: Logger;
  #status: SenderStatus = { role: 'standby' };

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  get status(): SenderStatus {
    return this.#status;
  }

  becomeSender(epoch: number): void {
    this.#status = { role: 'sender', epoch };
  }

  /**
   * @param hint - the operator's remedy; without it the reason was logged before
   * @param cause - undefined if what the journal holds is the reason
   */
  refuse(reason: string, hint?: string, cause?: 'disk' | 'gateway'): void {
    const isKnown = this.#status.role === 'refused' && this.#status.reason === reason;
    this.#status = { role: 'refused', reason, ...(cause && { cause }) };
    if (!isKnown && hint !== undefined) this.#logger.error({ reason }, hint);
  }

  /** A refusal remains until journal and ledger agree. */
  endSending(): void {
    if (this.#status.role === 'sender') this.#status = { role: 'standby' };
  }

  endRefusal(): void {
    if (this.#status.role === 'refused') this.#status = { role: 'standby' };
  }
}

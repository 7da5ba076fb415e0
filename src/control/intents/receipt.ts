import type { StoredReceipt, StoredSignature } from '../../ledger/control-record.js';
import { hashIntent } from './intent.js';
import { intentOf, type SignedFields } from './signed-payout.js';
import { formatStatement } from './statement.js';

/**
 * A worker's statement of a payout's final state: only a worker of the keyring can sign it. Times are ISO 8601, UTC.
 */
export interface Receipt {
  /** Undefined in version 1, which had no such line. */
  readonly audience?: string | undefined;
  readonly payoutId: string;
  /** Empty if the payout has none. */
  readonly intent: string;
  readonly state: string;
  readonly attempt: number;
  readonly txhash: string;
  readonly at: string;
}

/** The states that a worker signs: how the payment itself ended. The others are an operator's or the application's word. */
const RECEIPT_STATES = ['completed', 'failed'] as const;
export type ReceiptState = (typeof RECEIPT_STATES)[number];

export function hasReceipt(state: string): state is ReceiptState {
  return (RECEIPT_STATES as readonly string[]).includes(state);
}

export interface PaidPayout extends SignedFields {
  readonly attempt: number;
  readonly txhash?: string | undefined;
  readonly signed?: StoredSignature | undefined;
}

export function formatReceipt(platformId: number, receipt: Receipt): string {
  return formatStatement('receipt', receipt.audience, [
    ['platformId', String(platformId)],
    ['payoutId', receipt.payoutId],
    ['intent', receipt.intent],
    ['state', receipt.state],
    ['attempt', String(receipt.attempt)],
    ['txhash', receipt.txhash],
    ['at', receipt.at],
  ]);
}

export function receiptOf(
  platformId: number,
  payout: PaidPayout,
  state: string,
  { audience, at }: Pick<StoredReceipt, 'audience' | 'at'>,
): Receipt {
  const { payoutId, attempt, txhash = '', signed } = payout;
  const intent = signed === undefined ? '' : hashIntent(intentOf(platformId, payout, signed));
  return { audience, payoutId, intent, state, attempt, txhash, at };
}

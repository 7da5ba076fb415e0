import type { StoredReceipt, StoredSignature } from '../../ledger/control-record.js';
import { hashIntent } from './intent.js';
import { intentOf, type SignedFields } from './signed-payout.js';
import { formatStatement } from './statement.js';

/** What a worker signs of a payout that came into its last state: only a worker of the keyring can say so. */
export interface Receipt {
  /** The environment; undefined where a version before the line signed it. */
  readonly audience?: string | undefined;
  readonly payoutId: string;
  /** The hash of the intent that was carried out, or not; empty where the payout carries none. */
  readonly intent: string;
  readonly state: string;
  readonly attempt: number;
  /** Empty where there is no transaction. */
  readonly txhash: string;
  /** ISO 8601, UTC. */
  readonly at: string;
}

/** The states that a worker signs: how the payment itself ended. The others are an operator's or the application's word. */
const RECEIPT_STATES = ['completed', 'failed'] as const;
export type ReceiptState = (typeof RECEIPT_STATES)[number];

/** Whether a worker signs that a payout came into the state. */
export function hasReceipt(state: string): state is ReceiptState {
  return (RECEIPT_STATES as readonly string[]).includes(state);
}

/** What a receipt is over, of a payout. */
export interface PaidPayout extends SignedFields {
  readonly attempt: number;
  readonly txhash?: string | undefined;
  readonly signed?: StoredSignature | undefined;
}

/**
 * The nine lines that are signed.
 * @throws StatementError when a value cannot stand on one line
 */
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

/**
 * The receipt that says of a payout that it came into the state at the time.
 * @throws StatementError when a value cannot stand on one line
 */
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

import { formatStatement } from './statement.js';

/** What a worker signs of a payout that came into its last state: only a worker of the keyring can say so. */
export interface Receipt {
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

const RECEIPT_TYPE = 'payout-queue receipt v1';

/**
 * The eight lines that are signed.
 * @throws StatementError when a value cannot stand on one line
 */
export function formatReceipt(platformId: number, receipt: Receipt): string {
  return formatStatement(RECEIPT_TYPE, [
    ['platformId', String(platformId)],
    ['payoutId', receipt.payoutId],
    ['intent', receipt.intent],
    ['state', receipt.state],
    ['attempt', String(receipt.attempt)],
    ['txhash', receipt.txhash],
    ['at', receipt.at],
  ]);
}

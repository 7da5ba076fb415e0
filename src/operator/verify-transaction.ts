import { TransactionMismatchError } from '../errors.js';
import { comparePayment, describeDifferences } from '../gateway/compare-payment.js';
import { GatewayRejectedError } from '../gateway/errors.js';
import type { PaymentStatus, StatusGateway } from '../gateway/gateway.js';
import type { Payout } from '../ledger/payout.js';

/**
 * Verifies that the gateway names the payout's currency, address and amount for a transaction. Throws as
 * `PayoutOperator.resolve`.
 */
export async function verifyTransaction(gateway: StatusGateway, txhash: string, payout: Payout): Promise<void> {
  const status = await fetchStatus(gateway, txhash);
  const differences = comparePayment(status, payout);
  if (differences.length === 0) return;
  throw refusal(
    `Transaction ${txhash} is not the payment of payout ${payout.payoutId}: ${describeDifferences(differences)}.`,
    differences.map(({ field }) => field),
  );
}

async function fetchStatus(gateway: StatusGateway, txhash: string): Promise<PaymentStatus> {
  try {
    return await gateway.getStatus(txhash);
  } catch (error) {
    if (!(error instanceof GatewayRejectedError)) throw error;
    throw refusal(`The gateway has no status for transaction ${txhash}: ${error.gatewayMessage}.`, ['txhash']);
  }
}

function refusal(finding: string, fields: readonly string[]): TransactionMismatchError {
  return new TransactionMismatchError(`${finding} Nothing was changed`, fields);
}

import { TransactionMismatchError } from '../errors.js';
import { comparePayment, describeDifferences } from '../gateway/compare-payment.js';
import { GatewayRejectedError } from '../gateway/errors.js';
import type { PaymentStatus, StatusGateway } from '../gateway/gateway.js';
import type { Payout } from '../ledger/payout.js';

/**
 * Verifies that a transaction is the payment of a payout: same currency, address and amount, all three named by the gateway.
 * @throws TransactionMismatchError when the gateway does not know the transaction, or describes another payment
 * @throws InvalidInputError when the txhash names no transaction
 * @throws GatewayUnavailableError when no complete response came
 * @throws GatewayInvalidResponseError when the response is not as documented
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

import { TransactionMismatchError } from '../errors.js';
import { comparePayment, describeDifferences } from '../gateway/compare-payment.js';
import { GatewayRejectedError } from '../gateway/errors.js';
import type { GatewayClient } from '../gateway/gateway-client.js';
import type { TransactionStatus } from '../gateway/parse-responses.js';
import type { Payout } from '../ledger/payout.js';

/**
 * Makes sure that a transaction is the payment of a payout: same currency, address and amount, each of which the gateway
 * must name.
 * @throws TransactionMismatchError when the gateway does not know it, or says something else of it than the payout
 * @throws InvalidInputError, GatewayUnavailableError, GatewayInvalidResponseError
 */
export async function checkTransaction(gateway: GatewayClient, txhash: string, payout: Payout): Promise<void> {
  const status = await readStatus(gateway, txhash);
  const differences = comparePayment(status, payout);
  if (differences.length === 0) return;
  throw refusal(
    `Transaction ${txhash} is another payment than ${payout.payoutId}: ${describeDifferences(differences)}.`,
    differences.map(({ field }) => field),
  );
}

async function readStatus(gateway: GatewayClient, txhash: string): Promise<TransactionStatus> {
  try {
    return await gateway.transactionStatus({ txhash });
  } catch (error) {
    if (!(error instanceof GatewayRejectedError)) throw error;
    throw refusal(`The gateway has no status for transaction ${txhash}: ${error.gatewayMessage}.`, ['txhash']);
  }
}

function refusal(finding: string, fields: readonly string[]): TransactionMismatchError {
  return new TransactionMismatchError(`${finding} Nothing was changed`, fields);
}

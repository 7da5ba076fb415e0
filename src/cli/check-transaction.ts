import { ConflictError } from '../errors.js';
import { GatewayRejectedError } from '../gateway/errors.js';
import type { GatewayClient } from '../gateway/gateway-client.js';
import type { TransactionStatus } from '../gateway/read-answers.js';
import type { Payout } from '../ledger/payout.js';

/** Amounts are compared as strings: both sides are plain decimals in their one shortest form. */
const COMPARED_FIELDS = ['paymentId', 'addressTo', 'amount'] as const satisfies readonly (keyof Payout &
  keyof TransactionStatus)[];

/**
 * Makes sure that a transaction is the payment of a payout: same currency, address and amount.
 * @throws ConflictError when the gateway does not know it, or says something else of it than the payout
 * @throws InvalidInputError, GatewayUnavailableError, GatewayInvalidResponseError
 */
export async function checkTransaction(gateway: GatewayClient, txhash: string, payout: Payout): Promise<void> {
  const status = await readStatus(gateway, txhash);
  const fields = COMPARED_FIELDS.filter((field) => status[field] !== payout[field]);
  if (fields.length === 0) return;
  const differences = fields.map(
    (field) => `${field} is ${status[field] ?? 'not said'} there, ${payout[field]} in the payout`,
  );
  throw refusal(`Transaction ${txhash} is another payment than ${payout.payoutId}: ${differences.join('; ')}.`, fields);
}

async function readStatus(gateway: GatewayClient, txhash: string): Promise<TransactionStatus> {
  try {
    return await gateway.transactionStatus({ txhash });
  } catch (error) {
    if (!(error instanceof GatewayRejectedError)) throw error;
    throw refusal(`The gateway has no status for transaction ${txhash}: ${error.gatewayMessage}.`, ['txhash']);
  }
}

function refusal(finding: string, fields: readonly string[]): ConflictError {
  return new ConflictError(`${finding} Nothing was changed; --force takes the txhash unchecked`, fields);
}

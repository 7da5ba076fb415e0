import { PayoutError } from '../base/errors.js';
import { type FoundPayment, type Gateway, GatewayRejectedError, type PaymentDifference } from '../gateway/gateway.js';
import { type NamedAttempt, readOrderIds } from '../ledger/order-id.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { Payout } from '../ledger/payout.js';

/**
 * What the gateway answered for one attempt.
 *
 * - `found`: it has a payment with this order id. Without differences it is that of the payout; with one, something is
 *   wrong that should never be.
 * - `refused`: it does not know the order id, or refused for another reason. That is no evidence that nothing was paid:
 *   the API does not say from when on, and whether at all, it knows an order id.
 * - `failed`: it gave no answer that can be read.
 */
export type LookUp = NamedAttempt &
  (
    | { readonly kind: 'found'; readonly payment: FoundPayment; readonly differences: readonly PaymentDifference[] }
    | { readonly kind: 'refused' | 'failed'; readonly message: string }
  );

/** More were never needed, and each is a call. */
const MOST_ATTEMPTS = 20;

/**
 * Asks the gateway for the payment of each attempt of a payout, one after another, the newest first. Changes nothing.
 * @returns undefined if the gateway cannot look up by order id
 * @throws RedisUnavailableError
 */
export async function findPayments(
  { connection }: Pick<PayoutLedger, 'connection'>,
  gateway: Pick<Gateway, 'findPayment' | 'comparePayment'>,
  payout: Payout,
): Promise<LookUp[] | undefined> {
  if (gateway.findPayment === undefined) return undefined;
  const found: LookUp[] = [];
  for (const named of (await readOrderIds(connection, payout.payoutId)).slice(0, MOST_ATTEMPTS)) {
    found.push({ ...named, ...(await lookUp(gateway, named.orderId, payout)) });
  }
  return found;
}

async function lookUp(
  gateway: Pick<Gateway, 'findPayment' | 'comparePayment'>,
  orderId: string,
  payout: Payout,
): Promise<
  | { kind: 'found'; payment: FoundPayment; differences: readonly PaymentDifference[] }
  | { kind: 'refused' | 'failed'; message: string }
> {
  try {
    const payment = await gateway.findPayment?.(orderId);
    if (payment === undefined) return { kind: 'failed', message: 'the gateway cannot look up by order id' };
    return { kind: 'found', payment, differences: gateway.comparePayment(payment, payout) };
  } catch (error) {
    if (!(error instanceof PayoutError)) throw error;
    return { kind: error instanceof GatewayRejectedError ? 'refused' : 'failed', message: error.message };
  }
}

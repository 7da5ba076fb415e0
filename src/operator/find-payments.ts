import { PayoutError } from '../base/errors.js';
import {
  type ComparedPayment,
  type FoundPayment,
  type Gateway,
  GatewayRejectedError,
  type PaymentDifference,
} from '../gateway/gateway.js';
import { orderIdOf, readAttempts } from '../ledger/order-id.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { Payout } from '../ledger/payout.js';

/**
 * What the gateway answered for one order id.
 *
 * - `found`: it has a payment with this order id. Without differences it is that of the payout; with one, something is
 *   wrong that should never be.
 * - `refused`: it does not know the order id, or refused for another reason. That is no evidence that nothing was paid:
 *   the API does not say from when on, and whether at all, it knows an order id.
 * - `failed`: it gave no answer that can be read.
 */
export type LookUp =
  | { readonly kind: 'found'; readonly payment: FoundPayment; readonly differences: readonly PaymentDifference[] }
  | { readonly kind: 'refused' | 'failed'; readonly message: string };

/** What the gateway answered for an attempt, by the order id with which that was sent. */
export type LookUpOfAttempt = LookUp & { readonly attempt: number; readonly orderId: string };

/** More were never needed, and each is a call. */
export const MOST_ATTEMPTS = 20;

export type LookUpGateway = Pick<Gateway, 'findPayment' | 'comparePayment'>;

/**
 * Asks the gateway for the payment of each attempt of a payout, one after another, the newest first. Changes nothing.
 * @returns undefined if the gateway cannot look up by order id
 * @throws RedisUnavailableError
 */
export async function findPayments(
  { connection }: Pick<PayoutLedger, 'connection'>,
  gateway: LookUpGateway,
  payout: Payout,
): Promise<LookUpOfAttempt[] | undefined> {
  if (gateway.findPayment === undefined) return undefined;
  const found: LookUpOfAttempt[] = [];
  for (const attempt of (await readAttempts(connection, payout.payoutId)).slice(0, MOST_ATTEMPTS)) {
    const orderId = orderIdOf(attempt);
    found.push({ attempt: attempt.attempt, orderId, ...(await lookUp(gateway, orderId, payout)) });
  }
  return found;
}

/** Asks once, and compares the answer with the payment. */
export async function lookUp(gateway: LookUpGateway, orderId: string, expected: ComparedPayment): Promise<LookUp> {
  try {
    const payment = await gateway.findPayment?.(orderId);
    if (payment === undefined) return { kind: 'failed', message: 'the gateway cannot look up by order id' };
    return { kind: 'found', payment, differences: gateway.comparePayment(payment, expected) };
  } catch (error) {
    if (!(error instanceof PayoutError)) throw error;
    return { kind: error instanceof GatewayRejectedError ? 'refused' : 'failed', message: error.message };
  }
}

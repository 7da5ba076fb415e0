import type { PaymentStatus } from './gateway.js';
import type { WithdrawRequest } from './withdraw-gateway.js';

/** What identifies a payment. */
type PaymentField = 'paymentId' | 'addressTo' | 'amount';

/** A field in which the gateway's status of a transaction differs from the payout. */
export interface PaymentDifference {
  readonly field: PaymentField;
  /** Undefined if the gateway left it out, which contradicts nothing. */
  readonly actual: string | number | undefined;
  readonly expected: string | number;
}

/**
 * Compares the gateway's status of a transaction with the payout whose transaction it should be. Amounts are compared as
 * strings: both sides are normalised decimals.
 */
export function comparePayment(
  status: Pick<PaymentStatus, PaymentField>,
  payment: Pick<WithdrawRequest, PaymentField>,
): PaymentDifference[] {
  const isSame: Record<PaymentField, boolean> = {
    paymentId: status.paymentId === payment.paymentId,
    addressTo: status.addressTo !== undefined && isSameAddress(status.addressTo, payment.addressTo),
    amount: status.amount === payment.amount,
  };
  return (['paymentId', 'addressTo', 'amount'] as const)
    .filter((field) => !isSame[field])
    .map((field) => ({ field, actual: status[field], expected: payment[field] }));
}

/** @example amount is 7 at the gateway, 12.5 in the payout */
export function describeDifferences(differences: readonly PaymentDifference[]): string {
  return differences
    .map(
      ({ field, actual, expected }) => `${field} is ${actual ?? 'missing'} at the gateway, ${expected} in the payout`,
    )
    .join('; ');
}

/**
 * The API has one form of `address_to`, destination tag included (docs/gateway-api.md#fields), so nothing is left out or
 * added. Only hexadecimal digits are equal in either case: the case of an Ethereum address is a checksum, while that of a
 * Base58 address is part of it.
 */
export function isSameAddress(one: string, other: string): boolean {
  if (one === other) return true;
  return /^0x[0-9a-f]+$/i.test(one) && one.toLowerCase() === other.toLowerCase();
}

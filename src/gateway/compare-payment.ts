import type { PaymentStatus, WithdrawRequest } from './gateway.js';
import { isSameAddress } from './wallet.js';

type PaymentField = 'paymentId' | 'addressTo' | 'amount';

interface PaymentDifference {
  readonly field: PaymentField;
  /** Undefined if the gateway left it out, which contradicts nothing. */
  readonly actual: string | number | undefined;
  readonly expected: string | number;
}

/** With a symbol, the amount is not compared: the answer has it in the coin, and the payout perhaps in that currency. */
export function comparePayment(
  status: Pick<PaymentStatus, PaymentField | 'isAmountNumber'>,
  payment: Pick<WithdrawRequest, PaymentField> & { readonly symbol?: string | undefined },
): PaymentDifference[] {
  const isSame: Record<PaymentField, boolean> = {
    paymentId: status.paymentId === payment.paymentId,
    addressTo: status.addressTo !== undefined && isSameAddress(status.addressTo, payment.addressTo),
    amount:
      payment.symbol !== undefined ||
      (status.amount !== undefined && isSameAmount(status.amount, payment.amount, status.isAmountNumber === true)),
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
 * Compares normalised decimals as strings. Only a JSON number may have been a float, which PHP writes with 17 digits:
 * `12.300000000000001` is the float of `12.3`.
 * @param isNumber - whether the gateway wrote a JSON number
 */
export function isSameAmount(actual: string, expected: string, isNumber: boolean): boolean {
  return actual === expected || (isNumber && Number(actual) === Number(expected));
}

import type { ComparedPayment, PaymentDifference, PaymentStatus } from './gateway.js';
import { isSameAddress } from './wallet.js';

type PaymentField = PaymentDifference['field'];

/** With a symbol, the amount is not compared: the answer has it in the coin, and the payout perhaps in that currency. */
export function comparePayment(
  status: Pick<PaymentStatus, PaymentField | 'isAmountNumber'>,
  payment: ComparedPayment,
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

/**
 * Compares normalised decimals as strings. Only a JSON number may have been a float, which PHP writes with 17 digits:
 * `12.300000000000001` is the float of `12.3`.
 * @param isNumber - whether the gateway wrote a JSON number
 */
export function isSameAmount(actual: string, expected: string, isNumber: boolean): boolean {
  return actual === expected || (isNumber && Number(actual) === Number(expected));
}

import { randomBytes, randomInt } from 'node:crypto';
import type { Currency } from './currency.js';
import type { CallContext } from './dialect.js';
import type { Payment } from './sandbox-account.js';

interface Order {
  readonly currency: Currency;
  readonly addressTo: string;
  /** In the coin. */
  readonly amount: string;
  readonly orderId?: string | undefined;
  /** By which the dialect that was asked names the payment. */
  readonly namedBy: 'txhash' | 'transactionId';
}

/** Pays, whichever dialect asked. @returns undefined, without a payment, if the balance is too low */
export function pay({ account, nowMs, settlement }: CallContext, order: Order): Payment | undefined {
  const { currency, addressTo, amount, orderId, namedBy } = order;
  if (!account.take(amount, currency.usdRate)) return undefined;
  // Neither is drawn from the seed: a restarted sandbox must never repeat an old payment's name.
  const names = { txhash: randomBytes(32).toString('hex'), transactionId: String(randomInt(2 ** 47, 2 ** 48)) };
  const payment: Payment = {
    gatewayId: names[namedBy],
    ...names,
    ...(orderId !== undefined && { orderId }),
    paymentId: currency.paymentId,
    addressTo,
    amount,
    fee: currency.fee,
    acceptedAtMs: nowMs,
    settlesAs: settlement.fails(addressTo) ? 2 : 1,
  };
  account.payments.add(payment);
  return payment;
}

/** 0 in progress, 1 completed, 2 error. */
export function approveOf({ acceptedAtMs, settlesAs }: Payment, { nowMs, settlement }: CallContext): 0 | 1 | 2 {
  return nowMs - acceptedAtMs < settlement.settleAfterMs ? 0 : settlesAs;
}

import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import {
  addressToField,
  amountField,
  orderIdField,
  paymentIdField,
  symbolField,
  toProblem,
  txhashField,
} from '../fields.js';
import { failed, succeeded, type Answer } from './response.js';
import { CURRENCIES, findCurrency, type Currency } from './currency.js';
import { depositWalletOf } from './deposit-wallet.js';
import type { Endpoint } from './endpoint.js';
import type { Payment } from './payment-book.js';
import type { SandboxAccount } from './sandbox-account.js';

/** How payments settle. */
export interface Settlement {
  /** Milliseconds from the withdraw until `approve` leaves 0. */
  readonly settleAfterMs: number;
  /** Whether a payment to this recipient ends in error. Asked once a payment. */
  fails(addressTo: string): boolean;
}

/** A call whose signature and fields are known to be right. */
export interface Call {
  readonly account: SandboxAccount;
  readonly fields: Readonly<Record<string, string>>;
  readonly nowMs: number;
  readonly settlement: Settlement;
}

const paymentIdText = z
  .string()
  .regex(/^\d{1,15}$/, 'must be a whole number')
  .transform(Number)
  .pipe(paymentIdField);

const withdrawFields = z.object({
  payment_id: paymentIdText,
  amount: amountField,
  address_to: addressToField,
  symbol: symbolField.optional(),
});
const statusFields = z.object({ txhash: txhashField });
const walletFields = z.object({ payment_id: paymentIdText, order_id: orderIdField });

/** Does what an endpoint promises and answers as the API document says (part 4). */
export function handleCall(endpoint: Endpoint, call: Call): Answer {
  switch (endpoint) {
    case 'withdraw':
      return withdraw(call);
    case 'transactionstatus':
      return transactionStatus(call);
    case 'getpaymentwallet':
      return paymentWallet(call);
    case 'currencies':
      return succeeded({ list: CURRENCIES.map(toListItem) });
    case 'balance':
      return succeeded({ balance: call.account.balance });
  }
}

function withdraw({ account, fields, nowMs, settlement }: Call): Answer {
  const input = withdrawFields.safeParse(fields);
  if (!input.success) return invalid(input.error, fields);
  const { payment_id: paymentId, amount, address_to: addressTo } = input.data;
  const currency = findCurrency(paymentId);
  if (currency === undefined) return failed(`unknown payment_id ${fields['payment_id'] ?? ''}`);
  if (currency.hasDestinationTag && !addressTo.includes(':')) {
    return failed(`address_to must be address:destinationTag for ${currency.name}`);
  }
  if (!account.take(amount, currency.usdRate)) return failed('insufficient balance');
  const payment: Payment = {
    // Not drawn from the seed: a sandbox started again must never name an old payment's hash.
    txhash: randomBytes(32).toString('hex'),
    paymentId,
    addressTo,
    amount,
    fee: currency.fee,
    acceptedAtMs: nowMs,
    settlesAs: settlement.fails(addressTo) ? 2 : 1,
  };
  account.payments.add(payment);
  return succeeded({ address_to: addressTo, payment_id: paymentId, amount, txhash: payment.txhash });
}

function transactionStatus({ account, fields, nowMs, settlement }: Call): Answer {
  const input = statusFields.safeParse(fields);
  if (!input.success) return invalid(input.error, fields);
  const payment = account.payments.find(input.data.txhash);
  if (payment === undefined) return failed('unknown txhash');
  return succeeded({
    approve: nowMs - payment.acceptedAtMs < settlement.settleAfterMs ? 0 : payment.settlesAs,
    payment_id: payment.paymentId,
    address_to: payment.addressTo,
    amount: payment.amount,
    fee: payment.fee,
    txhash: payment.txhash,
  });
}

function paymentWallet({ account, fields }: Call): Answer {
  const input = walletFields.safeParse(fields);
  if (!input.success) return invalid(input.error, fields);
  const currency = findCurrency(input.data.payment_id);
  if (currency === undefined) return failed(`unknown payment_id ${fields['payment_id'] ?? ''}`);
  return succeeded({ ...depositWalletOf(account.platformId, currency, input.data.order_id) });
}

function toListItem({ paymentId, code, name, network, usdRate }: Currency): Record<string, unknown> {
  return { payment_id: paymentId, currency: code, name, network, rate_usd: usdRate };
}

/** Names the first problem, with the value as it was sent: what a rule sees may be a number made of it. */
function invalid(error: z.ZodError, fields: Call['fields']): Answer {
  const [problem] = error.issues.map((issue) =>
    toProblem({ ...issue, input: fields[String(issue.path[0])] } as z.core.$ZodIssue),
  );
  return failed(problem === undefined ? 'invalid request' : `${problem.field}: ${problem.message}`);
}

import { randomBytes } from 'node:crypto';
import type { z } from 'zod';
import { toProblem } from '../base/fields.js';
import { ENDPOINTS, toPackageName } from '../gateway/v1/endpoints.js';
import { CURRENCIES, depositWalletOf, findCurrency, type Currency } from './currency.js';
import { toFieldValue, type EndpointName } from './endpoint.js';
import type { Payment, SandboxAccount } from './sandbox-account.js';
import { failed, succeeded, type SandboxResponse } from './response.js';

export interface Settlement {
  /** Milliseconds from the withdrawal until `approve` leaves 0. */
  readonly settleAfterMs: number;
  /** Whether a payment to this recipient fails. Called once per payment. */
  fails(addressTo: string): boolean;
}

/** A call with a valid signature and the documented fields; values are unchecked. */
interface Call {
  readonly account: SandboxAccount;
  readonly fields: Readonly<Record<string, string>>;
  readonly nowMs: number;
  readonly settlement: Settlement;
}

type RequestOf<Name extends EndpointName> = z.output<(typeof ENDPOINTS)[Name]['request']>;

type Handlers = { readonly [Name in EndpointName]: (call: Call, request: RequestOf<Name>) => SandboxResponse };

/** docs/gateway-api.md#endpoints */
const HANDLERS: Handlers = {
  withdraw,
  transactionstatus: transactionStatus,
  getpaymentwallet: paymentWallet,
  currencies: () => succeeded({ list: CURRENCIES.map(toListItem) }),
  balance: ({ account }) => succeeded({ balance: account.balance }),
};

export function handleCall(endpoint: EndpointName, call: Call): SandboxResponse {
  const values = Object.entries(call.fields)
    .filter(([name]) => name !== 'platform_id')
    .map(([name, text]) => [toPackageName(name), toFieldValue(endpoint, name, text)] as const);
  const request = ENDPOINTS[endpoint].request.safeParse(Object.fromEntries(values));
  if (!request.success) return invalid(request.error, call.fields);
  const handle = HANDLERS[endpoint] as (call: Call, request: unknown) => SandboxResponse;
  return handle(call, request.data);
}

function withdraw(
  { account, nowMs, settlement }: Call,
  { paymentId, amount, addressTo }: RequestOf<'withdraw'>,
): SandboxResponse {
  const currency = findCurrency(paymentId);
  if (currency === undefined) return failed(`unknown payment_id ${paymentId}`);
  if (currency.hasDestinationTag && !addressTo.includes(':')) {
    return failed(`address_to must be address:destinationTag for ${currency.name}`);
  }
  if (!account.take(amount, currency.usdRate)) return failed('insufficient balance');
  const payment: Payment = {
    // Not drawn from the seed: a restarted sandbox must never repeat an old payment's hash.
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

function transactionStatus(
  { account, nowMs, settlement }: Call,
  { txhash }: RequestOf<'transactionstatus'>,
): SandboxResponse {
  const payment = account.payments.find(txhash);
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

function paymentWallet({ account }: Call, { paymentId, orderId }: RequestOf<'getpaymentwallet'>): SandboxResponse {
  const currency = findCurrency(paymentId);
  if (currency === undefined) return failed(`unknown payment_id ${paymentId}`);
  return succeeded({ ...depositWalletOf(account.platformId, currency, orderId) });
}

function toListItem({ paymentId, code, name, network, usdRate }: Currency): Record<string, unknown> {
  return { payment_id: paymentId, currency: code, name, network, rate_usd: usdRate };
}

/** Names the first problem with the API's field name and the text that was sent; the schema may have seen a number. */
function invalid(error: z.ZodError, fields: Call['fields']): SandboxResponse {
  const [issue] = error.issues;
  const name = Object.keys(fields).find((field) => toPackageName(field) === issue?.path[0]);
  if (issue === undefined || name === undefined) return failed('invalid request');
  const { field, message } = toProblem({ ...issue, path: [name], input: fields[name] } as z.core.$ZodIssue);
  return failed(`${field}: ${message}`);
}

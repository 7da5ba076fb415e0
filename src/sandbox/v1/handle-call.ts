import type { z } from 'zod';
import { toProblem } from '../../base/fields.js';
import { ENDPOINTS, toPackageName } from '../../gateway/v1/endpoints.js';
import { CURRENCIES, depositWalletOf, findCurrency, type Currency } from '../currency.js';
import type { CallContext } from '../dialect.js';
import type { EndpointName } from '../endpoint-name.js';
import { approveOf, pay } from '../pay.js';
import { findFieldProblem, toFieldValue } from './endpoint.js';
import type { SignedForm } from './signed-form.js';

/** The message of a failure, or the fields of a success. */
type Answer = string | Readonly<Record<string, unknown>>;

type RequestOf<Name extends EndpointName> = z.output<(typeof ENDPOINTS)[Name]['request']>;

type Handlers = { readonly [Name in EndpointName]: (context: CallContext, request: RequestOf<Name>) => Answer };

/** docs/gateway-api-v1.md#endpoints */
const HANDLERS: Handlers = {
  withdraw,
  transactionstatus: transactionStatus,
  getpaymentwallet: paymentWallet,
  currencies: () => ({ list: CURRENCIES.map(toListItem) }),
  balance: ({ account }) => ({ balance: account.balance }),
};

export function handleCall(endpoint: EndpointName, form: SignedForm, context: CallContext): Answer {
  const problem = findFieldProblem(
    endpoint,
    form.fields.map(([name]) => name),
  );
  if (problem !== undefined) return problem;
  const values = form.fields
    .filter(([name]) => name !== 'platform_id')
    .map(([name, text]) => [toPackageName(name), toFieldValue(endpoint, name, text)] as const);
  const request = ENDPOINTS[endpoint].request.safeParse(Object.fromEntries(values));
  if (!request.success) return describeInvalid(request.error, Object.fromEntries(form.fields));
  const handle = HANDLERS[endpoint] as (context: CallContext, request: unknown) => Answer;
  return handle(context, request.data);
}

function withdraw(context: CallContext, { paymentId, amount, addressTo }: RequestOf<'withdraw'>): Answer {
  const currency = findCurrency(paymentId);
  if (currency === undefined) return `unknown payment_id ${paymentId}`;
  if (currency.hasDestinationTag && !addressTo.includes(':')) {
    return `address_to must be address:destinationTag for ${currency.name}`;
  }
  const payment = pay(context, { currency, addressTo, amount, namedBy: 'txhash' });
  if (payment === undefined) return 'insufficient balance';
  return { address_to: addressTo, payment_id: paymentId, amount, txhash: payment.txhash };
}

function transactionStatus(context: CallContext, { txhash }: RequestOf<'transactionstatus'>): Answer {
  const payment = context.account.payments.find({ txhash });
  if (payment === undefined) return 'unknown txhash';
  return {
    approve: approveOf(payment, context),
    payment_id: payment.paymentId,
    address_to: payment.addressTo,
    amount: payment.amount,
    fee: payment.fee,
    txhash: payment.txhash,
  };
}

function paymentWallet({ account }: CallContext, { paymentId, orderId }: RequestOf<'getpaymentwallet'>): Answer {
  const currency = findCurrency(paymentId);
  if (currency === undefined) return `unknown payment_id ${paymentId}`;
  return { ...depositWalletOf(account.platformId, currency, orderId) };
}

function toListItem({ paymentId, code, name, network, usdRate }: Currency): Record<string, unknown> {
  return { payment_id: paymentId, currency: code, name, network, rate_usd: usdRate };
}

/** Names the first problem with the API's field name and the text that was sent; the schema may have seen a number. */
function describeInvalid(error: z.ZodError, fields: Readonly<Record<string, string>>): string {
  const [issue] = error.issues;
  const name = Object.keys(fields).find((field) => toPackageName(field) === issue?.path[0]);
  if (issue === undefined || name === undefined) return 'invalid request';
  const { field, message } = toProblem({ ...issue, path: [name], input: fields[name] } as z.core.$ZodIssue);
  return `${field}: ${message}`;
}

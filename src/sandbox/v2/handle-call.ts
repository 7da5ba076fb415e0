import type { z } from 'zod';
import { toProblem } from '../../base/fields.js';
import { ENDPOINTS } from '../../gateway/v2/endpoints.js';
import { CURRENCIES, depositWalletOf, findCurrency, inCoin, type Currency } from '../currency.js';
import type { CallContext } from '../dialect.js';
import type { EndpointName } from '../endpoint-name.js';
import { approveOf, pay } from '../pay.js';
import type { Payment } from '../sandbox-account.js';
import type { OpenPoints } from './open-points.js';

/** The message of a failure, or the fields of a success. */
type Answer = string | Readonly<Record<string, unknown>>;

type Fields = Readonly<Record<string, unknown>>;

const SCHEMAS = {
  withdraw: ENDPOINTS.withdraw.request,
  transactionstatus: ENDPOINTS.withdrawstatus.request,
  getpaymentwallet: ENDPOINTS.address.request,
  currencies: ENDPOINTS.currencies.request,
  balance: ENDPOINTS.balance.request,
};

/** How this gateway is set up. */
interface Setup extends OpenPoints {
  readonly onPaid: (payment: Payment) => void;
}

type RequestOf<Name extends EndpointName> = z.output<(typeof SCHEMAS)[Name]>;

type Handlers = {
  readonly [Name in EndpointName]: (context: CallContext, request: RequestOf<Name>, open: Setup) => Answer;
};

/** docs/gateway-api-v2.md#calls */
const HANDLERS: Handlers = {
  withdraw,
  transactionstatus: withdrawStatus,
  getpaymentwallet: depositAddress,
  currencies: () => ({ list: CURRENCIES.map(toListItem) }),
  balance: ({ account }) => ({ balance: account.balance }),
};

/** @param fields - without `platformId` */
export function handleCall(endpoint: EndpointName, fields: Fields, context: CallContext, open: Setup): Answer {
  const request = SCHEMAS[endpoint].safeParse(fields, { reportInput: true });
  if (!request.success) {
    const [issue] = request.error.issues;
    if (issue === undefined) return 'invalid request';
    const { field, message } = toProblem(issue);
    return `${field}: ${message}`;
  }
  const handle = HANDLERS[endpoint] as (context: CallContext, request: unknown, open: Setup) => Answer;
  return handle(context, request.data, open);
}

function withdraw(context: CallContext, request: RequestOf<'withdraw'>, open: Setup): Answer {
  const { paymentId, addressTo, symbol, orderId } = request;
  const currency = findCurrency(paymentId);
  if (currency === undefined) return `unknown paymentId ${paymentId}`;
  if (currency.hasDestinationTag && !addressTo.includes(':')) {
    return `addressTo must be address:tag for ${currency.name}`;
  }
  if (orderId !== undefined && open.orderIds === 'refused') return 'orderId: is not a known field';
  const isRepeated = orderId !== undefined && context.account.payments.find({ orderId }) !== undefined;
  if (isRepeated && open.refusesRepeatedOrderId) return 'orderId was used before';
  const amount = symbol === 'USD' && open.amounts === 'coin' ? inCoin(request.amount, currency) : request.amount;
  const payment = pay(context, {
    ...{ currency, addressTo, amount },
    orderId: open.orderIds === 'known' ? orderId : undefined,
    namedBy: 'transactionId',
  });
  if (payment === undefined) return 'insufficient balance';
  open.onPaid(payment);
  return { paymentId, addressTo, amount, transactionId: payment.transactionId };
}

function withdrawStatus(context: CallContext, request: RequestOf<'transactionstatus'>, open: Setup): Answer {
  const { account, nowMs } = context;
  const payment = account.payments.find(request);
  const isKnown = (found: Payment) =>
    'transactionId' in request || nowMs - found.acceptedAtMs >= open.orderIdKnownAfterMs;
  if (payment === undefined || !isKnown(payment)) return 'withdrawal not found';
  const approve = approveOf(payment, context);
  return {
    approve,
    ...(open.statusNamesPayment && { transactionId: payment.transactionId }),
    paymentId: payment.paymentId,
    addressTo: payment.addressTo,
    amount: payment.amount,
    // Before it is on the chain, a payment has no hash.
    txhash: approve === 1 ? payment.txhash : '',
    confirmations: approve === 1 ? 1 : 0,
    amountDebited: payment.amount,
    feeNetwork: payment.fee,
    feeService: '0',
  };
}

function depositAddress({ account }: CallContext, { paymentId, orderId }: RequestOf<'getpaymentwallet'>): Answer {
  const currency = findCurrency(paymentId);
  if (currency === undefined) return `unknown paymentId ${paymentId}`;
  return { ...depositWalletOf(account.platformId, currency, orderId) };
}

function toListItem({ paymentId, code, name, network, usdRate }: Currency): Fields {
  return { paymentId, currency: code, name, network, rateUsd: usdRate };
}

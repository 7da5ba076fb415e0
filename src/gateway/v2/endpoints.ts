import { isLosslessNumber } from 'lossless-json';
import { z } from 'zod';
import { amountField, gatewayIdField, txhashField } from '../../base/fields.js';
import { type AcceptedFields, classifyWithdrawal } from '../classify-withdrawal.js';
import { isSameAmount } from '../compare-payment.js';
import {
  parseDecimal,
  parseFields,
  parseText,
  parseWholeNumber,
  present,
  type RawResponse,
  type ResponseFields,
  toPlainValue,
} from '../exchange/responses.js';
import type { WithdrawClassification } from '../exchange/withdraw-connection.js';
import {
  type FoundPayment,
  GatewayInvalidResponseError,
  type PaymentStatus,
  type PaymentWallet,
  type WithdrawRequest,
} from '../gateway.js';
import { addressToField, orderIdField, paymentIdField, symbolField } from '../payment-fields.js';
import { type CurrencyItem, differing, parseApprove, parseItems, STATUS_KIND } from '../response-fields.js';
import { isSameAddress } from '../wallet.js';

/** The calls of the second generation, under the API's own names: docs/gateway-api-v2.md#calls. */
export const ENDPOINTS = {
  withdraw: {
    path: 'v2/withdraw',
    request: z.strictObject({
      paymentId: paymentIdField,
      addressTo: addressToField,
      amount: amountField,
      symbol: symbolField.exactOptional(),
      orderId: orderIdField.exactOptional(),
    }),
  },
  withdrawstatus: {
    path: 'v2/withdrawstatus',
    request: z.union([z.strictObject({ transactionId: gatewayIdField }), z.strictObject({ orderId: orderIdField })], {
      error: 'must have either a transactionId or an orderId',
    }),
  },
  address: {
    path: 'v2/address',
    request: z.strictObject({ paymentId: paymentIdField, orderId: orderIdField }),
  },
  currencies: { path: 'v2/currencies', request: z.strictObject({}) },
  balance: { path: 'v2/balance', request: z.strictObject({}) },
} as const;

/** What a response to `/v2/withdraw` means; never throws. */
export function classifyWithdrawResponse(
  raw: RawResponse,
  { paymentId, addressTo, amount, symbol }: WithdrawRequest,
): WithdrawClassification {
  return classifyWithdrawal(raw, ['transactionId', 'txhash'], (fields): AcceptedFields => {
    const gatewayId = parseTransactionId(fields['transactionId']);
    return {
      names: gatewayId === undefined ? undefined : { gatewayId, ...parseTxhash(fields) },
      differing: [
        ...differing('paymentId', fields, (value) => parseDecimal(value) === String(paymentId)),
        ...differing('addressTo', fields, (value) => typeof value === 'string' && isSameAddress(value, addressTo)),
        ...differing(
          'amount',
          fields,
          (value) => symbol !== undefined || isSameAmount(parseDecimal(value) ?? '', amount, isLosslessNumber(value)),
        ),
      ],
    };
  });
}

/** A response to `/v2/withdrawstatus`, asked by `transactionId`. */
export function parseStatus(fields: ResponseFields, transactionId: string): PaymentStatus {
  requireSame(fields, 'transactionId', transactionId);
  return parseProgress(fields);
}

/** A response to `/v2/withdrawstatus`, asked by `orderId`. */
export function parseFound(fields: ResponseFields, orderId: string): FoundPayment {
  requireSame(fields, 'orderId', orderId);
  return { ...parseProgress(fields), ...present('gatewayId', parseTransactionId(fields['transactionId'])) };
}

/** In which currency the fees are is not documented, so none is told. */
function parseProgress(fields: ResponseFields): PaymentStatus {
  return {
    kind: STATUS_KIND[parseApprove('v2/withdrawstatus', fields['approve'])],
    ...parseTxhash(fields),
    ...present('paymentId', parseWholeNumber(fields['paymentId'])),
    ...present('addressTo', parseText(fields['addressTo'])),
    ...present('amount', parseDecimal(fields['amount'])),
    ...present('isAmountNumber', isLosslessNumber(fields['amount']) || undefined),
  };
}

/** The payment that the body of a webhook is about. */
export function parseEvent(body: Uint8Array): string | undefined {
  const fields = parseFields(body);
  return typeof fields === 'string' ? undefined : parseTransactionId(fields['transactionId']);
}

/** The answer need not repeat by what it was asked; if it does, it must be that. */
function requireSame(fields: ResponseFields, name: string, expected: string): void {
  const actual = parseText(fields[name]);
  if (actual === undefined || actual === expected) return;
  throw new GatewayInvalidResponseError('v2/withdrawstatus', `it is about another ${name} than the requested one`);
}

export function parseAddress(fields: ResponseFields): PaymentWallet {
  const address = parseText(fields['address']);
  if (address === undefined) throw new GatewayInvalidResponseError('v2/address', 'it has no address');
  return { address, ...present('destinationTag', parseText(fields['destinationTag'] ?? fields['tag'])) };
}

/** The pages show no name of the list. */
export function parseCurrencyItems(fields: ResponseFields): CurrencyItem[] {
  const name = ['list', 'currencies', 'data'].find((each) => fields[each] !== undefined) ?? 'list';
  return parseItems('v2/currencies', name, fields[name]);
}

export function parseBalanceValue(fields: ResponseFields): unknown {
  const balance = toPlainValue(fields['balance'] ?? fields['balances']);
  if (balance !== undefined && balance !== null) return balance;
  throw new GatewayInvalidResponseError('v2/balance', 'it has no balance');
}

/** A text, or a positive whole number by its digits: another number cannot be asked for as it was meant. */
function parseTransactionId(value: unknown): string | undefined {
  if (isLosslessNumber(value)) return /^[1-9]\d{0,254}$/.test(value.value) ? value.value : undefined;
  return gatewayIdField.safeParse(value).data;
}

/** Empty while the payment is not on the chain. */
function parseTxhash(fields: ResponseFields): { readonly txhash?: string } {
  return present('txhash', txhashField.safeParse(fields['txhash']).data);
}

import { isLosslessNumber } from 'lossless-json';
import { z } from 'zod';
import { amountField, isSameGatewayId, txhashField } from '../../base/fields.js';
import { isSameAmount } from '../compare-payment.js';
import { GatewayInvalidResponseError, type PaymentWallet, type WithdrawRequest } from '../gateway.js';
import type { WithdrawClassification } from '../exchange/withdraw-connection.js';
import { classifyWithdrawal } from '../classify-withdrawal.js';
import { type Approve, differing, parseApprove, parseItems } from '../response-fields.js';
import { addressToField, orderIdField, paymentIdField, symbolField } from '../payment-fields.js';
import {
  parseDecimal,
  parseText,
  parseWholeNumber,
  present,
  type RawResponse,
  type ResponseFields,
  toPlainValue,
} from '../exchange/responses.js';
import { isSameAddress } from '../wallet.js';

/** `Shape` is the request under this package's names, `Result` the content of a success. */
export interface Endpoint<Shape extends z.ZodRawShape, Result> {
  readonly path: string;
  /**
   * The signing order, under the API's names; `hash` follows unsigned.
   * @see docs/gateway-api-v1.md#authentication
   */
  readonly signedFields: readonly WireName<(keyof Shape & string) | 'platformId'>[];
  readonly request: z.ZodObject<Shape, z.core.$strict>;
  /** @throws GatewayInvalidResponseError if a needed field is missing or not as documented */
  readonly parseResult: (fields: ResponseFields, request: z.output<z.ZodObject<Shape>>) => Result;
}

/** The API writes `payment_id` where this package writes `paymentId`. */
type WireName<Name extends string> = Name extends `${infer Head}${infer Tail}`
  ? `${Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`}${WireName<Tail>}`
  : Name;

/** Progress of a transaction, from `/transactionstatus`. */
export interface TransactionStatus {
  readonly txhash: string;
  readonly approve: Approve;
  readonly paymentId?: number;
  readonly addressTo?: string;
  readonly amount?: string;
  /** The amount was a JSON number, so its last digits may be those of a float. */
  readonly isAmountNumber?: true;
  readonly fee?: string;
}

interface WithdrawResult {
  /** Undefined if the response names no transaction. */
  readonly txhash: string | undefined;
  /** Fields that differ from the request, by the API's names. For a warning only: the money has moved. */
  readonly differing: readonly string[];
}

export const ENDPOINTS = {
  withdraw: endpoint({
    path: 'withdraw',
    signedFields: ['payment_id', 'platform_id', 'amount', 'address_to', 'symbol'],
    request: z.strictObject({
      paymentId: paymentIdField,
      amount: amountField,
      addressTo: addressToField,
      symbol: symbolField.exactOptional(),
    }),
    parseResult: (fields, { paymentId, amount, addressTo, symbol }): WithdrawResult => ({
      txhash: txhashField.safeParse(fields['txhash']).data,
      differing: [
        ...differing('payment_id', fields, (value) => parseDecimal(value) === String(paymentId)),
        ...differing(
          'amount',
          fields,
          (value) => symbol !== undefined || isSameAmount(parseDecimal(value) ?? '', amount, isLosslessNumber(value)),
        ),
        ...differing('address_to', fields, (value) => typeof value === 'string' && isSameAddress(value, addressTo)),
      ],
    }),
  }),
  transactionstatus: endpoint({
    path: 'transactionstatus',
    signedFields: ['platform_id', 'txhash'],
    request: z.strictObject({ txhash: txhashField }),
    parseResult: (fields, { txhash }): TransactionStatus => {
      const actual = parseText(fields['txhash']);
      // Hexadecimal digits come back in either case.
      if (actual !== undefined && !isSameGatewayId(actual, txhash))
        throw new GatewayInvalidResponseError('transactionstatus', 'it is about another txhash than the requested one');
      return {
        txhash,
        approve: parseApprove('transactionstatus', fields['approve']),
        ...present('paymentId', parseWholeNumber(fields['payment_id'])),
        ...present('addressTo', parseText(fields['address_to'])),
        ...present('amount', parseDecimal(fields['amount'])),
        ...present('isAmountNumber', isLosslessNumber(fields['amount']) || undefined),
        ...present('fee', parseDecimal(fields['fee'])),
      };
    },
  }),
  getpaymentwallet: endpoint({
    path: 'getpaymentwallet',
    signedFields: ['payment_id', 'platform_id', 'order_id'],
    request: z.strictObject({ paymentId: paymentIdField, orderId: orderIdField }),
    parseResult: (fields): PaymentWallet => {
      const address = parseText(fields['address']);
      if (address === undefined) throw new GatewayInvalidResponseError('getpaymentwallet', 'it has no address');
      return { address, ...present('destinationTag', parseText(fields['destinationTag'])) };
    },
  }),
  currencies: endpoint({
    path: 'currencies',
    signedFields: ['platform_id'],
    request: z.strictObject({}),
    parseResult: (fields) => parseItems('currencies', 'list', fields['list']),
  }),
  balance: endpoint({
    path: 'balance',
    signedFields: ['platform_id'],
    request: z.strictObject({}),
    parseResult: (fields): unknown => {
      const balance = toPlainValue(fields['balance']);
      if (balance !== undefined && balance !== null) return balance;
      throw new GatewayInvalidResponseError('balance', 'it has no balance');
    },
  }),
} as const;

/** The name of an endpoint in {@link ENDPOINTS}. A sandbox counts calls and plans faults by it. */
export type EndpointName = keyof typeof ENDPOINTS;

/** @example payment_id becomes paymentId */
export function toPackageName(wireName: string): string {
  return wireName.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function endpoint<Shape extends z.ZodRawShape, Result>(row: Endpoint<Shape, Result>): Endpoint<Shape, Result> {
  return row;
}

/** What a response to `/withdraw` means; never throws. */
export function classifyWithdrawResponse(raw: RawResponse, request: WithdrawRequest): WithdrawClassification {
  return classifyWithdrawal(raw, ['txhash'], (fields) => {
    const { txhash, differing } = ENDPOINTS.withdraw.parseResult(fields, request);
    return { names: txhash === undefined ? undefined : { gatewayId: txhash, txhash }, differing };
  });
}

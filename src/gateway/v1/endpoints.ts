import { isLosslessNumber } from 'lossless-json';
import { z } from 'zod';
import { amountField, isSameGatewayId, txhashField } from '../../base/fields.js';
import { isSameAmount } from '../compare-payment.js';
import { GatewayInvalidResponseError, type PaymentWallet, type WithdrawRequest } from '../gateway.js';
import type { WithdrawClassification } from '../exchange/withdraw-connection.js';
import { addressToField, orderIdField, paymentIdField, symbolField } from '../payment-fields.js';
import {
  parseDecimal,
  parseResponse,
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

/** 0 in progress, 1 completed, 2 error: docs/gateway-api-v1.md#transaction-states. */
export type Approve = 0 | 1 | 2;

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

/** A currency of the gateway's list. Its fields are undefined (docs/gateway-api-v1.md#open-points), so all are kept. */
export type CurrencyItem = Readonly<Record<string, unknown>>;

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
        approve: parseApprove(fields['approve']),
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
    parseResult: (fields): CurrencyItem[] => {
      const list = toPlainValue(fields['list']);
      if (!Array.isArray(list)) throw new GatewayInvalidResponseError('currencies', 'list is not an array');
      if (list.every(isCurrency)) return list;
      throw new GatewayInvalidResponseError('currencies', 'list contains something that is not an object');
    },
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

/** A missing field does not differ. */
function differing(name: string, fields: ResponseFields, isSame: (value: unknown) => boolean): string[] {
  const value = fields[name] ?? undefined;
  return value === undefined || isSame(value) ? [] : [name];
}

function parseApprove(value: unknown): Approve {
  const approve = ([0, 1, 2] as const).find((known) => parseDecimal(value) === String(known));
  if (approve !== undefined) return approve;
  throw new GatewayInvalidResponseError('transactionstatus', 'approve is not 0, 1 or 2');
}

function isCurrency(value: unknown): value is CurrencyItem {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Decides what a response to `/withdraw` means; never throws.
 *
 * Both wrong decisions cost money: an operator may repeat a "rejected" payout, and "accepted" ends all doubt. So only a
 * response without contradiction is believed:
 *
 * - `result` 1 with a usable txhash is accepted at any status but 1xx, 3xx and 408, even 5xx. It can be followed by its
 *   txhash and is never sent again.
 * - `result` 1 without a txhash, or a failure with one, is unknown.
 */
export function classifyWithdrawResponse(raw: RawResponse, request: WithdrawRequest): WithdrawClassification {
  const httpStatus = raw.status;
  const unknown = (reason: string) => ({ outcome: { kind: 'unknown', reason, httpStatus } as const, differing: [] });
  const response = parseResponse(raw);
  switch (response.kind) {
    case 'unclear':
      return unknown(response.reason);
    case 'failed': {
      const { fields, message } = response;
      if (!isEmpty(fields['txhash']))
        return unknown(`the gateway reported a failure together with a txhash: ${message}`);
      return { outcome: { kind: 'rejected', message, httpStatus }, differing: [] };
    }
    case 'succeeded': {
      const { txhash, differing } = ENDPOINTS.withdraw.parseResult(response.fields, request);
      if (txhash === undefined) return unknown('the gateway reported success without a usable txhash');
      return { outcome: { kind: 'accepted', gatewayId: txhash, txhash }, differing };
    }
  }
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === false || (typeof value === 'string' && value.trim() === '');
}

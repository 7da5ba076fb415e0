import { isLosslessNumber } from 'lossless-json';
import type { AnswerFields } from './response.js';
import { GatewayInvalidResponseError } from './errors.js';
import { readDecimal } from './plain-decimal.js';

/**
 * What the four reading endpoints answer. The API document gives no types for their fields: numbers and numeric
 * strings are both read, and a field that nothing depends on is left out where it cannot be read.
 */

/** 0 in progress, 1 completed, 2 error (API document, part 3). */
export type Approve = 0 | 1 | 2;

/** The gateway's status of a transaction. */
export interface TransactionStatus {
  readonly txhash: string;
  readonly approve: Approve;
  readonly paymentId?: number;
  readonly addressTo?: string;
  /** Decimal strings, every digit kept. */
  readonly amount?: string;
  readonly fee?: string;
}

/** A wallet to which the account is paid. */
export interface PaymentWallet {
  readonly address: string;
  /** For Ripple XRP and the TON network. */
  readonly destinationTag?: string;
}

/** A currency as the gateway lists it. The document shows no fields, so all are kept as they come. */
export type Currency = Readonly<Record<string, unknown>>;

/**
 * @param txhash - the transaction that was asked about
 * @throws GatewayInvalidResponseError when `approve` is not 0, 1 or 2, or the answer is about another transaction
 */
export function readTransactionStatus(fields: AnswerFields, txhash: string): TransactionStatus {
  const answered = readText(fields['txhash']);
  // Hexadecimal digits come back in either case.
  if (answered !== undefined && answered.toLowerCase() !== txhash.toLowerCase()) {
    throw new GatewayInvalidResponseError('transactionstatus', 'it is about another txhash than the one asked about');
  }
  return {
    txhash,
    approve: readApprove(fields['approve']),
    ...present('paymentId', readWholeNumber(fields['payment_id'])),
    ...present('addressTo', readText(fields['address_to'])),
    ...present('amount', readDecimal(fields['amount'])),
    ...present('fee', readDecimal(fields['fee'])),
  };
}

function readApprove(value: unknown): Approve {
  switch (readDecimal(value)) {
    case '0':
      return 0;
    case '1':
      return 1;
    case '2':
      return 2;
    default:
      throw new GatewayInvalidResponseError('transactionstatus', 'approve is not 0, 1 or 2');
  }
}

/** @throws GatewayInvalidResponseError when there is no address: a deposit must not be sent to nowhere */
export function readPaymentWallet(fields: AnswerFields): PaymentWallet {
  const address = readText(fields['address']);
  if (address === undefined) throw new GatewayInvalidResponseError('getpaymentwallet', 'it holds no address');
  return { address, ...present('destinationTag', readText(fields['destinationTag'])) };
}

/** @throws GatewayInvalidResponseError when `list` is not a list of objects */
export function readCurrencies(fields: AnswerFields): Currency[] {
  const list = fields['list'];
  if (!Array.isArray(list)) throw new GatewayInvalidResponseError('currencies', 'list is not an array');
  return list.map((item: unknown) => {
    const value = toPlainValue(item);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Currency;
    throw new GatewayInvalidResponseError('currencies', 'list holds something that is not an object');
  });
}

/** @throws GatewayInvalidResponseError when there is no `balance` */
export function readBalance(fields: AnswerFields): unknown {
  const balance = toPlainValue(fields['balance']);
  if (balance === undefined || balance === null)
    throw new GatewayInvalidResponseError('balance', 'it holds no balance');
  return balance;
}

/** A value as it came, but for numbers that JavaScript cannot hold: those become strings of their exact digits. */
function toPlainValue(value: unknown): unknown {
  if (isLosslessNumber(value)) return toPlainNumber(value.value);
  if (Array.isArray(value)) return value.map(toPlainValue);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, toPlainValue(item)]));
}

function toPlainNumber(text: string): number | string {
  const exact = readDecimal(text);
  if (exact === undefined) return text;
  return readDecimal(String(Number(text))) === exact ? Number(text) : exact;
}

/** A non-empty text; a number counts by its digits, because destination tags often come as numbers. */
function readText(value: unknown): string | undefined {
  if (isLosslessNumber(value)) return value.value;
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function readWholeNumber(value: unknown): number | undefined {
  const number = Number(readDecimal(value));
  return Number.isSafeInteger(number) ? number : undefined;
}

/** One property, or none where there is no value: `exactOptionalPropertyTypes` tells the two apart. */
function present<Name extends string, Value>(name: Name, value: Value | undefined): { [Key in Name]?: Value } {
  return (value === undefined ? {} : { [name]: value }) as { [Key in Name]?: Value };
}

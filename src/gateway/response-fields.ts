import { parseDecimal, type ResponseFields, toPlainValue } from './exchange/responses.js';
import { GatewayInvalidResponseError, type PaymentStatus } from './gateway.js';

/** Fields of responses that both generations of this gateway's API have. */

/** 0 in progress, 1 completed, 2 error: docs/gateway-api-v1.md#transaction-states. */
export type Approve = 0 | 1 | 2;

export const STATUS_KIND: Readonly<Record<Approve, PaymentStatus['kind']>> = { 0: 'pending', 1: 'paid', 2: 'failed' };

/** @throws GatewayInvalidResponseError if it is no such value */
export function parseApprove(endpoint: string, value: unknown): Approve {
  const approve = ([0, 1, 2] as const).find((known) => parseDecimal(value) === String(known));
  if (approve !== undefined) return approve;
  throw new GatewayInvalidResponseError(endpoint, 'approve is not 0, 1 or 2');
}

/** A currency of the gateway's list. Its fields are undefined (docs/gateway-api-v1.md#open-points), so all are kept. */
export type CurrencyItem = Readonly<Record<string, unknown>>;

/** @throws GatewayInvalidResponseError if the field is no list of objects */
export function parseItems(endpoint: string, name: string, value: unknown): CurrencyItem[] {
  const list = toPlainValue(value);
  if (!Array.isArray(list)) throw new GatewayInvalidResponseError(endpoint, `${name} is not an array`);
  if (list.every(isItem)) return list;
  throw new GatewayInvalidResponseError(endpoint, `${name} contains something that is not an object`);
}

function isItem(value: unknown): value is CurrencyItem {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The name, if the value is there and is another. A missing field does not differ. */
export function differing(name: string, fields: ResponseFields, isSame: (value: unknown) => boolean): string[] {
  const value = fields[name] ?? undefined;
  return value === undefined || isSame(value) ? [] : [name];
}

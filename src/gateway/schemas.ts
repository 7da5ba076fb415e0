import { z } from 'zod';
import { addressToField, amountField, orderIdField, paymentIdField, symbolField, txhashField } from '../fields.js';
import type { FormFields } from './signing.js';

/** The requests of the five endpoints: which data each takes, and in which order its fields are signed. */

export type Endpoint = 'withdraw' | 'transactionstatus' | 'getpaymentwallet' | 'currencies' | 'balance';

/**
 * What each endpoint signs, in this order, under the names of the API document (part 5).
 * `hash` follows as one more field that is not signed; a field that is not sent is left out of the payload.
 */
export const SIGNED_FIELDS = {
  withdraw: ['payment_id', 'platform_id', 'amount', 'address_to', 'symbol'],
  transactionstatus: ['platform_id', 'txhash'],
  getpaymentwallet: ['payment_id', 'platform_id', 'order_id'],
  currencies: ['platform_id'],
  balance: ['platform_id'],
} as const satisfies Record<Endpoint, readonly string[]>;

/** What a caller of `/withdraw` gives; the gateway account adds `platform_id` and `hash`. */
export const withdrawRequestSchema = z.strictObject({
  paymentId: paymentIdField,
  amount: amountField,
  addressTo: addressToField,
  symbol: symbolField.exactOptional(),
});

/** What a caller of `/transactionstatus` gives. */
export const transactionStatusRequestSchema = z.strictObject({ txhash: txhashField });

/** What a caller of `/getpaymentwallet` gives. */
export const paymentWalletRequestSchema = z.strictObject({ paymentId: paymentIdField, orderId: orderIdField });

/** Checked request data: everything that an endpoint may take, under this package's names. */
export interface RequestData {
  readonly platformId: number;
  readonly paymentId?: number;
  readonly amount?: string;
  readonly addressTo?: string;
  readonly symbol?: string;
  readonly txhash?: string;
  readonly orderId?: string;
}

const PACKAGE_NAMES = {
  payment_id: 'paymentId',
  platform_id: 'platformId',
  amount: 'amount',
  address_to: 'addressTo',
  symbol: 'symbol',
  txhash: 'txhash',
  order_id: 'orderId',
} as const satisfies Record<(typeof SIGNED_FIELDS)[Endpoint][number], keyof RequestData>;

/** Brings checked data into the names and the order that the endpoint signs. */
export function toFormFields(endpoint: Endpoint, data: RequestData): FormFields {
  const fields: Record<string, string | number> = {};
  for (const name of SIGNED_FIELDS[endpoint]) {
    const value = data[PACKAGE_NAMES[name]];
    if (value !== undefined) fields[name] = value;
  }
  return fields;
}

import { z } from 'zod';
import { amountField } from '../../base/fields.js';
import { addressToField, orderIdField, paymentIdField, symbolField } from '../payment-fields.js';

/** By which `/v2/withdrawstatus` is asked: 1 to 256 printable characters without spaces. */
const transactionIdField = z
  .string({ error: 'must be a string' })
  .regex(/^[\u0021-\u007e]{1,256}$/, 'must be 1 to 256 printable characters without spaces');

/**
 * The calls of the second generation, under the API's own names. `platformId` comes first in each body.
 * @see docs/gateway-api-v2.md#calls
 */
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
    request: z.union(
      [z.strictObject({ transactionId: transactionIdField }), z.strictObject({ orderId: orderIdField })],
      { error: 'must have either a transactionId or an orderId' },
    ),
  },
  address: {
    path: 'v2/address',
    request: z.strictObject({ paymentId: paymentIdField, orderId: orderIdField }),
  },
  currencies: { path: 'v2/currencies', request: z.strictObject({}) },
  balance: { path: 'v2/balance', request: z.strictObject({}) },
} as const;

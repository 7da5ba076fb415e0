import { z } from 'zod';

/**
 * This gateway's rules for payment fields (docs/gateway-api-v1.md#fields). Client, ledger and sandbox share them, so that
 * none accepts what another refuses. Rules of every gateway are in src/base/fields.ts.
 */

const MAX_ADDRESS_LENGTH = 256;
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

export const paymentIdField = z
  .int({ error: 'must be a whole number, the currency id that the gateway lists under /currencies' })
  .positive('must be more than 0');

/** The recipient's wallet; for Ripple XRP and the TON network `address:destinationTag`. */
export const addressToField = z
  .string({ error: 'must be a string' })
  .min(1, 'must not be empty')
  .max(MAX_ADDRESS_LENGTH, `must have at most ${MAX_ADDRESS_LENGTH} characters`)
  .refine((text) => !CONTROL_CHARACTER.test(text) && text.isWellFormed(), 'must not contain control characters')
  .refine((text) => text === text.trim(), 'must not begin or end with a space')
  .refine(hasPlainAddress, 'must be an address without spaces, or address:destinationTag')
  .refine((text) => !text.endsWith(':'), 'ends with a colon, but no destination tag follows');

/** Only the destination tag, which users choose, may contain spaces and non-ASCII letters. */
function hasPlainAddress(text: string): boolean {
  return /^[\u0021-\u0039\u003b-\u007e]+$/.test(text.split(':', 1)[0] ?? '');
}

export const symbolField = z
  .string({ error: 'must be a string' })
  .regex(/^[A-Z]{3}$/, 'must be exactly 3 uppercase letters, such as USD');

export const orderIdField = z
  .string({ error: 'must be a string' })
  .regex(/^[A-Za-z0-9+/=\-:.,]{1,64}$/, 'must be 1 to 64 of A-Z a-z 0-9 + / = - : . ,');

import type { ValidPayout } from '../ledger/payout.js';

/** What every rule of the field certainly accepts as it is. The rules themselves are the schema's. */
const PLAIN: Readonly<Record<string, (value: unknown) => boolean>> = {
  payoutId: isText(/^[\w+=:,-]{1,64}$/),
  paymentId: (value) => Number.isSafeInteger(value) && (value as number) > 0,
  amount: isText(/^(?:[1-9]\d{0,29}|0(?=\.))(?:\.\d{0,17}[1-9])?$/),
  // Printable characters but the colon: a tag may have any.
  addressTo: isText(/^[!-9;-~]{1,256}$/),
  reference: isText(/^[!-~](?:[ -~]{0,198}[!-~])?$/),
  batch: isText(/^[\w+=,-]{1,64}$/),
};

function isText(pattern: RegExp): (value: unknown) => boolean {
  return (value) => typeof value === 'string' && pattern.test(value);
}

/**
 * Checks a payout of the common form without the schema, which takes twenty times as long. Whatever has another field or
 * a rare character is left to the schema, so it alone refuses, and says why.
 * @returns what `payoutInputSchema` makes of it; undefined if only the schema can say
 */
export function toPlainPayout(input: unknown): ValidPayout | undefined {
  if (typeof input !== 'object' || input === null || Object.getPrototypeOf(input) !== Object.prototype)
    return undefined;
  // Each is read once: a getter may answer differently.
  const { payoutId, paymentId, amount, addressTo, reference, batch } = input as Record<string, unknown>;
  const payout: Record<string, unknown> = { payoutId, paymentId, amount, addressTo };
  if (reference !== undefined) payout['reference'] = reference;
  if (batch !== undefined) payout['batch'] = batch;
  for (const field in payout) if (PLAIN[field]?.(payout[field]) !== true) return undefined;
  for (const field in input) if (!Object.hasOwn(payout, field)) return undefined;
  return payout as ValidPayout;
}

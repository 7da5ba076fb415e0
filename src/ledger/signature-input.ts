import { z } from 'zod';
import type { IntentSignature } from './control-record.js';
import { audienceField, keyNameField } from '../fields.js';

/** The signature of a payout signed before it is enqueued, as `payouts keys sign` adds it to its fields. */

/** 64 bytes as base64url without padding. The last character's four spare bits must be 0, so there is one text only. */
const SIGNATURE = /^[A-Za-z0-9_-]{85}[AQgw]$/;

/** Another text of the same time would be another signed text. */
const timeField = z
  .string({ error: 'must be a string' })
  .refine(isIsoTime, 'must be a time with milliseconds, in UTC, such as 2030-01-31T09:00:00.000Z');

export const signatureFields = {
  /** If the payout was signed before: the name of the key. */
  key: keyNameField.optional(),
  /** The signature, 86 characters of base64url. */
  signature: z
    .string({ error: 'must be a string' })
    .regex(SIGNATURE, 'must be an Ed25519 signature: 86 characters of base64url')
    .optional(),
  /** When it was signed, such as `2030-01-31T09:00:00.000Z`. */
  issuedAt: timeField.optional(),
  /** Its end, in the same form. */
  expiresAt: timeField.optional(),
  /** The environment for which it was signed; absent if an earlier version signed it. */
  audience: audienceField.optional(),
};

function isIsoTime(text: string): boolean {
  const time = Date.parse(text);
  return !Number.isNaN(time) && new Date(time).toISOString() === text;
}

interface SignatureInput {
  readonly key?: string | undefined;
  readonly signature?: string | undefined;
  readonly issuedAt?: string | undefined;
  readonly expiresAt?: string | undefined;
  readonly audience?: string | undefined;
  readonly notBefore?: string | undefined;
  readonly requestedBy?: string | undefined;
}

const FIELDS = ['key', 'signature', 'issuedAt', 'expiresAt'] as const;

/** The rules between fields: a signature is complete, and valid at a time at which the payout may be sent. */
export function addSignatureProblems(input: SignatureInput, context: z.RefinementCtx): void {
  const missing = FIELDS.filter((field) => input[field] === undefined);
  if (missing.length === FIELDS.length && input.audience === undefined) return;
  for (const field of missing) {
    const message = `is missing: of a signed payout ${FIELDS.join(', ')} are all given; of any other, none`;
    context.addIssue({ code: 'custom', path: [field], message });
  }
  if (missing.length > 0) return;
  const { notBefore, issuedAt = '', expiresAt = '' } = input;
  const expires = Date.parse(expiresAt);
  if (expires <= Date.parse(issuedAt)) {
    context.addIssue({ code: 'custom', path: ['expiresAt'], message: 'must be after issuedAt', input: expiresAt });
  }
  if (notBefore !== undefined && Date.parse(notBefore) >= expires) {
    const message = `must be before expiresAt (${expiresAt}): the signature would have ended. Sign the payout later`;
    context.addIssue({ code: 'custom', path: ['notBefore'], message, input: notBefore });
  }
}

/** Moves the signature into a field of its own; an unsigned payout is returned as it is. */
export function takeSignature<Input extends SignatureInput>(
  input: Input,
): Omit<Input, keyof typeof signatureFields> & { readonly signed?: IntentSignature } {
  const { key, signature, issuedAt, expiresAt, audience, ...payout } = input;
  if (key === undefined || signature === undefined || issuedAt === undefined || expiresAt === undefined) return payout;
  const { requestedBy } = input;
  const optional = { ...(requestedBy && { requestedBy }), ...(audience && { audience }) };
  return { ...payout, signed: { key, signature, issuedAt, expiresAt, ...optional } };
}

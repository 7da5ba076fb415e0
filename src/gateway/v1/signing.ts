import { createHmac } from 'node:crypto';
import type { SignedRequest } from '../exchange/exchange-once.js';
import { toPackageName } from './endpoints.js';

export type FormFields = Readonly<Record<string, string | number>>;

/**
 * Encodes fields exactly as PHP's `http_build_query`, because the gateway signs this text. `encodeURIComponent` (which
 * leaves `!'()*~` as they are) or `%20` for a space would not match.
 * @param fields - whole numbers and well-formed strings; amounts are strings
 * @see docs/gateway-api-v1.md#authentication
 */
export function encodeForm(fields: FormFields): string {
  return Object.entries(fields)
    .map(([name, value]) => `${encodeText(name)}=${encodeText(String(value))}`)
    .join('&');
}

function encodeText(text: string): string {
  return encodeURIComponent(text)
    .replace(/[!'()*~]/g, percentEncode)
    .replaceAll('%20', '+');
}

function percentEncode(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}

/**
 * HMAC with SHA-256 over the payload.
 * @param payload - from `encodeForm`, without `hash`
 * @returns 64 lowercase hexadecimal digits
 * @see docs/gateway-api-v1.md#authentication
 */
export function signForm(payload: string, secretKey: string): string {
  return createHmac('sha256', secretKey).update(payload, 'utf8').digest('hex');
}

const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };

/**
 * @param signedFields - the API's names, in signing order; fields without a value are left out
 * @param request - values under this package's names
 */
export type RequestSigner = (signedFields: readonly string[], request: object) => SignedRequest;

/** Signs for one account. The key stays in this closure, hidden from JSON and inspectors. */
export function createRequestSigner(platformId: number, secretKey: string): RequestSigner {
  return (signedFields, request) => {
    const payload = encodeForm(toFormFields(signedFields, { ...request, platformId }));
    const hash = signForm(payload, secretKey);
    return {
      body: `${payload}&hash=${hash}`,
      headers: FORM,
      redact: (text) => text.replace(new RegExp(hash, 'gi'), '[hash]'),
    };
  };
}

export function toFormFields(signedFields: readonly string[], values: object): FormFields {
  const valueOf = new Map<string, string | number | undefined>(Object.entries(values));
  return Object.fromEntries(
    signedFields.flatMap((name) => {
      const value = valueOf.get(toPackageName(name));
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
}

import { createHmac } from 'node:crypto';

/** The fields of a request under the API's names, in the order in which they are signed. */
export type FormFields = Readonly<Record<string, string | number>>;

/**
 * Writes fields as a form string, to the byte as PHP's `http_build_query` does: the gateway computes the signature
 * over this text, so `encodeURIComponent` (which leaves `!'()*~` as they are) or `%20` for a space would not match.
 * @param fields - whole numbers and well-formed strings; amounts are strings
 * @see docs/gateway-api.md#authentication
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
 * The `hash` of a request: HMAC with SHA-256 over its payload.
 * @param payload - what `encodeForm` made of the fields without `hash`
 * @returns 64 lowercase hexadecimal digits
 * @see docs/gateway-api.md#authentication
 */
export function signForm(payload: string, secretKey: string): string {
  return createHmac('sha256', secretKey).update(payload, 'utf8').digest('hex');
}

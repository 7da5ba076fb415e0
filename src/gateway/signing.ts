import { createHmac } from 'node:crypto';

export type FormFields = Readonly<Record<string, string | number>>;

/**
 * Encodes fields exactly as PHP's `http_build_query`, because the gateway signs this text. `encodeURIComponent` (which
 * leaves `!'()*~` as they are) or `%20` for a space would not match.
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
 * HMAC with SHA-256 over the payload.
 * @param payload - from `encodeForm`, without `hash`
 * @returns 64 lowercase hexadecimal digits
 * @see docs/gateway-api.md#authentication
 */
export function signForm(payload: string, secretKey: string): string {
  return createHmac('sha256', secretKey).update(payload, 'utf8').digest('hex');
}

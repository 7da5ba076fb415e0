import { createHmac, timingSafeEqual } from 'node:crypto';
import type { SignedRequest } from '../exchange/exchange-once.js';

/** Fields of a body in their order; those without a value are left out. */
type JsonFields = Readonly<Record<string, string | number | undefined>>;

/**
 * Encodes an object as PHP's `json_encode` does: `\/` for a slash, `\uXXXX` for what is not ASCII. The signature is
 * then right for a gateway that checks the bytes, and for one that encodes the fields again.
 * @see docs/gateway-api-v2.md#authentication
 */
function encodeJson(fields: JsonFields): string {
  return JSON.stringify(fields)
    .replaceAll('/', '\\/')
    .replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * HMAC with SHA-256 over `PLATFORM_ID;BODY;SECRET_KEY`, with the secret key as the key.
 * @param body - exactly as it is sent
 * @returns 64 lowercase hexadecimal digits
 * @see docs/gateway-api-v2.md#authentication
 */
function signBody(platformId: number, body: string | Uint8Array, secretKey: string): string {
  return digestOf(platformId, body, secretKey).toString('hex');
}

function digestOf(platformId: number, body: string | Uint8Array, secretKey: string): Buffer {
  return createHmac('sha256', secretKey).update(`${platformId};`).update(body).update(`;${secretKey}`).digest();
}

/** Whether a signature is of these bytes, compared in constant time. */
type BodyVerifier = (signature: unknown, body: Uint8Array) => boolean;

/** Verifies for one account. The key stays in this closure, hidden from JSON and inspectors. */
export function createBodyVerifier(platformId: number, secretKey: string): BodyVerifier {
  return (signature, body) =>
    typeof signature === 'string' &&
    /^[0-9a-f]{64}$/i.test(signature) &&
    timingSafeEqual(Buffer.from(signature, 'hex'), digestOf(platformId, body, secretKey));
}

export type JsonSigner = (request: JsonFields) => SignedRequest;

/** Signs for one account. The key stays in this closure, hidden from JSON and inspectors. */
export function createJsonSigner(platformId: number, secretKey: string): JsonSigner {
  return (request) => {
    // Encoded once: what is signed is what is sent.
    const body = encodeJson({ platformId, ...request });
    const signature = signBody(platformId, body, secretKey);
    return {
      body,
      headers: { 'Content-Type': 'application/json', 'x-signature': signature },
      redact: (text) => text.replace(new RegExp(signature, 'gi'), '[signature]'),
    };
  };
}

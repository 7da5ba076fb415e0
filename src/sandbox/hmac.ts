import { createHmac, timingSafeEqual } from 'node:crypto';

/** Whether a text has the hexadecimal digits of the payload's HMAC with SHA-256, compared in constant time. */
export function isHmac(text: string, payload: Buffer, secretKey: string): boolean {
  if (!/^[0-9a-f]{64}$/i.test(text)) return false;
  return timingSafeEqual(Buffer.from(text, 'hex'), Buffer.from(hmacOf(payload, secretKey), 'hex'));
}

/** @returns 64 lowercase hexadecimal digits */
export function hmacOf(payload: Buffer, secretKey: string): string {
  return createHmac('sha256', secretKey).update(payload).digest('hex');
}

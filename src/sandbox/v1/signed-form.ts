import { isHmac } from '../hmac.js';

/** A parsed request body, with the signed bytes as they came. */
export interface SignedForm {
  /** Decoded names and values without `hash`, in the order of the body. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly platformId: number | undefined;
  /**
   * Whether `hash` is the HMAC of the body's own bytes without the `hash` field (docs/gateway-api-v1.md#authentication).
   */
  isSignedWith(secretKey: string): boolean;
}

/**
 * Parses a form body without encoding anything again.
 *
 * The signature is checked over the raw bytes, which detects a client whose payload and body differ by one escape. So
 * this shares no code with the client's encoder.
 * @returns undefined if the body is no well-formed form
 */
export function parseSignedForm(body: Buffer): SignedForm | undefined {
  // latin1 keeps every byte; the characters of a form body are ASCII anyway.
  const pairs = body.toString('latin1').split('&');
  const signed = pairs.filter((pair) => !pair.startsWith('hash='));
  const hashes = pairs.filter((pair) => pair.startsWith('hash=')).map((pair) => pair.slice('hash='.length));

  const fields: [string, string][] = [];
  for (const pair of signed) {
    const field = decodePair(pair);
    if (field === undefined) return undefined;
    fields.push(field);
  }
  const platformId = fields.find(([name]) => name === 'platform_id')?.[1] ?? '';
  const payload = Buffer.from(signed.join('&'), 'latin1');
  return {
    fields,
    platformId: /^[1-9]\d{0,15}$/.test(platformId) ? Number(platformId) : undefined,
    isSignedWith: (secretKey) => hashes.length === 1 && isHmac(hashes[0] ?? '', payload, secretKey),
  };
}

function decodePair(pair: string): [string, string] | undefined {
  const equals = pair.indexOf('=');
  if (equals < 1) return undefined;
  try {
    const [name, value] = [pair.slice(0, equals), pair.slice(equals + 1)];
    return [decodeURIComponent(name), decodeURIComponent(value.replaceAll('+', ' '))];
  } catch {
    return undefined;
  }
}

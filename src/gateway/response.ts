import { gunzipSync } from 'node:zlib';
import { isLosslessNumber, parse } from 'lossless-json';
import { readDecimal } from './plain-decimal.js';

/** One answer of the gateway, whole as it came over the wire. An answer that was cut off never gets this far. */
export interface RawAnswer {
  readonly status: number;
  readonly contentEncoding: string;
  readonly body: Uint8Array;
}

/** A JSON object whose numbers are lossless-json's, so that they keep every digit. */
export type AnswerFields = Readonly<Record<string, unknown>>;

/** What an answer says. `unclear`: it is not the gateway's, or not in a shape that the API document gives a meaning. */
export type Answer =
  | { readonly kind: 'succeeded'; readonly fields: AnswerFields }
  | { readonly kind: 'failed'; readonly message: string; readonly fields: AnswerFields }
  | { readonly kind: 'unclear'; readonly reason: string };

/** The largest answer that is read, compressed or not. */
export const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

const MAX_MESSAGE_LENGTH = 500;
const CONTROL_CHARACTERS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g;

/**
 * Reads an answer by the rules of the API document, part 7; never throws.
 *
 * A redirect and a 408 mean that something before the gateway spoke, whatever the body says. So does a 5xx without
 * `result`. With a `result` the gateway itself spoke, and the HTTP status, which the document leaves open, decides nothing.
 * A `result` that is `true`, an object or an array is no failure that anybody could rely on, so it stays unclear.
 */
export function readAnswer(raw: RawAnswer): Answer {
  const { status } = raw;
  if (status < 200 || (status >= 300 && status < 400)) return unclear(`HTTP ${status} is not an answer of the gateway`);
  if (status === 408) return unclear('HTTP 408: something before the gateway did not get the whole request');

  const fields = parseObject(raw);
  if (typeof fields === 'string') return unclear(`HTTP ${status}: ${fields}`);

  const result = fields['result'] ?? undefined;
  if (readDecimal(result) === '1') return { kind: 'succeeded', fields };
  if (result === true || (typeof result === 'object' && !isLosslessNumber(result))) {
    return unclear(`HTTP ${status}: result is neither a number nor a text`);
  }
  if (result === undefined && status >= 500) return unclear(`HTTP ${status} without a result`);

  const message = readMessage(fields['message']);
  if (message === undefined) return unclear(`HTTP ${status}: the JSON object has neither result 1 nor a message`);
  return { kind: 'failed', message, fields };
}

function unclear(reason: string): Answer {
  return { kind: 'unclear', reason };
}

/** The JSON object in the body, or why there is none. */
function parseObject(raw: RawAnswer): AnswerFields | string {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(decompress(raw));
  } catch {
    return 'the body is not whole UTF-8 text';
  }
  try {
    // A key that is there twice with two values, which other parsers would settle in silence, is refused as well.
    const value = parse(text);
    return isPlainObject(value) ? value : 'the body is not a JSON object';
  } catch {
    return 'the body is not JSON';
  }
}

/** Strictly to the last byte: axios's own decompression takes a gzip stream that was cut off for a whole one. */
function decompress({ contentEncoding, body }: RawAnswer): Uint8Array {
  switch (contentEncoding.trim().toLowerCase()) {
    case '':
    case 'identity':
      return body;
    case 'gzip':
    case 'x-gzip':
      return gunzipSync(body, { maxOutputLength: MAX_ANSWER_BYTES });
    default:
      throw new Error('The content encoding was not asked for.');
  }
}

function isPlainObject(value: unknown): value is AnswerFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isLosslessNumber(value);
}

/** The error text, fit for a log line and a terminal. The document gives no type for it: numbers and booleans will do. */
function readMessage(value: unknown): string | undefined {
  if (typeof value !== 'string' && typeof value !== 'boolean' && !isLosslessNumber(value)) return undefined;
  const text = String(value).replace(CONTROL_CHARACTERS, ' ').trim().slice(0, MAX_MESSAGE_LENGTH).toWellFormed();
  return text === '' ? undefined : text;
}

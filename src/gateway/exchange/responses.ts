import { gunzipSync } from 'node:zlib';
import { isLosslessNumber, parse } from 'lossless-json';

/** One complete HTTP response as it came. A cut-off response never gets this far. */
export interface RawResponse {
  readonly status: number;
  readonly contentEncoding: string;
  readonly body: Uint8Array;
}

/** A JSON object whose numbers are lossless-json's, so that they keep every digit. */
export type ResponseFields = Readonly<Record<string, unknown>>;

/** `unclear`: not the gateway's response, or a shape without a meaning in the API. */
type ParsedResponse =
  | { readonly kind: 'succeeded'; readonly fields: ResponseFields }
  | { readonly kind: 'failed'; readonly message: string; readonly fields: ResponseFields }
  | { readonly kind: 'unclear'; readonly reason: string };

export const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;

const MAX_MESSAGE_LENGTH = 500;
const CONTROL_CHARACTERS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g;

/**
 * Distinguishes success from failure; never throws.
 *
 * A redirect, a 408, and a 5xx without `result` come from something before the gateway, whatever the body says. With a
 * `result` the gateway itself responded. The API leaves the HTTP status open, so it then decides nothing. A `result` of
 * `true`, an object or an array is no reliable failure, so it stays unclear.
 * @see docs/gateway-api-v1.md#errors
 */
export function parseResponse(raw: RawResponse): ParsedResponse {
  const { status } = raw;
  if (status < 200 || (status >= 300 && status < 400))
    return unclear(`HTTP ${status} is not a response of the gateway`);
  if (status === 408) return unclear('HTTP 408: something before the gateway did not get the whole request');

  const fields = parseObject(raw);
  if (typeof fields === 'string') return unclear(`HTTP ${status}: ${fields}`);

  const result = fields['result'] ?? undefined;
  if (parseDecimal(result) === '1') return { kind: 'succeeded', fields };
  if (result === true || (typeof result === 'object' && !isLosslessNumber(result))) {
    return unclear(`HTTP ${status}: result is neither a number nor a text`);
  }
  if (result === undefined && status >= 500) return unclear(`HTTP ${status} without a result`);

  const message = parseMessage(fields['message']);
  if (message === undefined) return unclear(`HTTP ${status}: the JSON object has neither result 1 nor a message`);
  return { kind: 'failed', message, fields };
}

function unclear(reason: string): ParsedResponse {
  return { kind: 'unclear', reason };
}

function parseObject(raw: RawResponse): ResponseFields | string {
  let body: Uint8Array;
  try {
    body = decompress(raw);
  } catch {
    return 'the body is not whole UTF-8 text';
  }
  return parseFields(body);
}

/** @returns the fields of a JSON object, or why it is none */
export function parseFields(body: Uint8Array): ResponseFields | string {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    return 'the body is not whole UTF-8 text';
  }
  try {
    // Also rejects a key that occurs twice with different values. Other parsers silently take one.
    const value = parse(text);
    return isPlainObject(value) ? value : 'the body is not a JSON object';
  } catch {
    return 'the body is not JSON';
  }
}

/** Strict to the last byte: axios accepts a cut-off gzip stream. */
function decompress({ contentEncoding, body }: RawResponse): Uint8Array {
  switch (contentEncoding.trim().toLowerCase()) {
    case '':
    case 'identity':
      return body;
    case 'gzip':
    case 'x-gzip':
      return gunzipSync(body, { maxOutputLength: MAX_RESPONSE_BYTES });
    default:
      throw new Error('The content encoding was not requested.');
  }
}

function isPlainObject(value: unknown): value is ResponseFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isLosslessNumber(value);
}

/** The error text, made safe for logs and terminals. Its type is uncertain, so numbers and booleans are accepted. */
function parseMessage(value: unknown): string | undefined {
  if (typeof value !== 'string' && typeof value !== 'boolean' && !isLosslessNumber(value)) return undefined;
  const text = String(value).replace(CONTROL_CHARACTERS, ' ').trim().slice(0, MAX_MESSAGE_LENGTH).toWellFormed();
  return text === '' ? undefined : text;
}

/** Field types are undefined (docs/gateway-api-v1.md#open-points), so numbers and numeric strings are accepted. */

/** A non-empty text. A number counts by its digits, because destination tags often come as numbers. */
export function parseText(value: unknown): string | undefined {
  if (isLosslessNumber(value)) return value.value;
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function parseWholeNumber(value: unknown): number | undefined {
  const number = Number(parseDecimal(value));
  return Number.isSafeInteger(number) ? number : undefined;
}

/** The plain value. Numbers that JavaScript cannot represent become strings of their exact digits. */
export function toPlainValue(value: unknown): unknown {
  if (isLosslessNumber(value)) return toPlainNumber(value.value);
  if (Array.isArray(value)) return value.map(toPlainValue);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, toPlainValue(item)]));
}

function toPlainNumber(text: string): number | string {
  const exact = parseDecimal(text);
  if (exact === undefined) return text;
  return parseDecimal(String(Number(text))) === exact ? Number(text) : exact;
}

/** One property, or none without a value, as `exactOptionalPropertyTypes` requires. */
export function present<Name extends string, Value>(name: Name, value: Value | undefined): { [Key in Name]?: Value } {
  return (value === undefined ? {} : { [name]: value }) as { [Key in Name]?: Value };
}

const NUMBER_PATTERN = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,4}))?$/;

/** Far beyond every amount. A response can contain megabytes of digits, or demand them by a short exponent. */
const MAX_LENGTH = 400;
const MAX_EXPONENT = 400;

/**
 * The exact plain decimal digits of a number or numeric string: `1e-8` becomes `0.00000001`, `12.50` becomes `12.5`. A
 * float would change long amounts.
 * @param value - a string, or a number from lossless-json
 * @returns undefined if it is not a number
 */
export function parseDecimal(value: unknown): string | undefined {
  if (isLosslessNumber(value)) return toPlainDecimal(value.value);
  return typeof value === 'string' ? toPlainDecimal(value) : undefined;
}

function toPlainDecimal(text: string): string | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const [, sign, whole, fraction = '', exponentText = '0'] = NUMBER_PATTERN.exec(text) ?? [];
  const exponent = Number(exponentText);
  if (sign === undefined || whole === undefined || Math.abs(exponent) > MAX_EXPONENT) return undefined;

  const digits = '0'.repeat(Math.max(0, -exponent)) + whole + fraction + '0'.repeat(Math.max(0, exponent));
  // Zeros on both sides leave room to move the point; surplus zeros are cut off below.
  const point = Math.max(0, -exponent) + whole.length + exponent;
  const wholeDigits = digits.slice(0, point).replace(/^0+/, '') || '0';
  const fractionDigits = digits.slice(point).replace(/0+$/, '');
  const plain = fractionDigits === '' ? wholeDigits : `${wholeDigits}.${fractionDigits}`;
  return sign === '-' && plain !== '0' ? `-${plain}` : plain;
}

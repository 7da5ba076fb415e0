import { inspect } from 'node:util';
import { z } from 'zod';
import { LONGEST_TIMER_MS } from './clock.js';
import { InvalidInputError, type Problem } from './errors.js';

/**
 * Rules of single fields, shared so that no part of the program accepts what another refuses. Rules of this gateway
 * only are in src/gateway/payment-fields.ts.
 */

const MAX_INTEGER_DIGITS = 30;
const MAX_DECIMAL_PLACES = 18;
const AMOUNT_PATTERN = new RegExp(`^(0|[1-9]\\d{0,${MAX_INTEGER_DIGITS - 1}})(\\.\\d{1,${MAX_DECIMAL_PLACES}})?$`);

/**
 * An amount as a decimal string: digits, at most 18 decimal places, more than 0, no sign and no exponent. Trailing
 * zeros after the point are dropped, so that equal amounts are equal strings.
 */
export const amountField = z
  .string({ error: 'must be a decimal string such as "12.5" (a number would lose digits)' })
  .regex(AMOUNT_PATTERN, {
    error: ({ input }) =>
      /^[\d.' ]+,[\d.,' ]*$/.test(String(input))
        ? 'has a comma, which may stand before decimals or between thousands: write it with a point for decimals alone, such as "1234.5"'
        : `must be a decimal string such as "12.5": up to ${MAX_INTEGER_DIGITS} digits, then at most ${MAX_DECIMAL_PLACES} decimal places, no sign, no exponent`,
  })
  // Before the zeros are dropped, so that an error shows the amount as given.
  .refine((text) => !/^0(\.0+)?$/.test(text), 'must be more than 0')
  .transform(dropTrailingZeros);

function dropTrailingZeros(amount: string): string {
  return amount.includes('.') ? amount.replace(/\.?0+$/, '') : amount;
}

export function wholeNumberField(lowest: number, highest = Number.MAX_SAFE_INTEGER): z.ZodNumber {
  const bounds = highest === Number.MAX_SAFE_INTEGER ? `of at least ${lowest}` : `from ${lowest} to ${highest}`;
  const rule = `must be a whole number ${bounds}`;
  return z.int(rule).min(lowest, rule).max(highest, rule);
}

/** Whole ms that a timer can wait. */
export function millisecondsField(lowest: number): z.ZodNumber {
  return wholeNumberField(lowest, LONGEST_TIMER_MS);
}

export const platformIdField = z.int({ error: 'must be a whole number' }).positive('must be more than 0');

/** What programs and spreadsheets write for a missing value. */
const NOTHING = [
  ...['null', 'nil', 'none', 'nan', 'undefined', 'unknown', 'empty', 'void', 'missing', 'n/?a', 'false', 'true'],
  // MySQL writes `\N`, a German spreadsheet `#NV`.
  ...['inf(inity)?', '#(null|ref|value|name|div/0|num|nv|n/d|bezug|wert|zahl|valeur|nom)', '\\\\n'],
];

function isOnly(words: readonly string[]): RegExp {
  return new RegExp(`^[-._?*#!"'()<>[\\]{}]*(${words.join('|')})[-._?*#!"'()<>[\\]{}]*$`, 'i');
}

const ONLY_NOTHING = isOnly([...NOTHING, '']);

/** Whether a text means "no value": a word such as "none", or only punctuation. */
export function isNothing(text: string): boolean {
  return ONLY_NOTHING.test(text);
}

/** What programs write for a missing transaction, including zeros alone. */
const NO_TRANSACTION = isOnly([
  ...NOTHING,
  ...[
    'tx_?hash',
    'error\\b.*',
    'fail(ed|ure)?\\b.*',
    'pending',
    'processing',
    'in_?progress',
    'success',
    'ok',
    '(0x)?[0.]*',
  ],
]);

/** Whether a text stands where a transaction would, and names none: empty, or a word such as "pending". */
export function isNoTransaction(text: string): boolean {
  return NO_TRANSACTION.test(text);
}

export const txhashField = paymentNameField('txhash');

export const gatewayIdField = paymentNameField('id');

function paymentNameField(what: string) {
  return z
    .string({ error: 'must be a string' })
    .regex(/^[\u0021-\u007e]{1,256}$/, 'must be 1 to 256 printable characters without spaces')
    .refine((text) => text === '' || !isNoTransaction(text), `must be a real ${what}, not "null", "0" or the like`);
}

/**
 * One key for all spellings of a payment's name, which many gateways make the txhash. Case and a leading `0x` are ignored
 * in hexadecimal digits. Base58 and Base64 keep their case. Fewer than 32 digits without `0x` may be an id of another
 * kind.
 */
export function gatewayIdKey(gatewayId: string): string {
  return hexDigits(gatewayId)?.toLowerCase() ?? gatewayId;
}

export function isSameGatewayId(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && other !== undefined && gatewayIdKey(one) === gatewayIdKey(other);
}

function hexDigits(gatewayId: string): string | undefined {
  return /^(?:0x(?=.)|(?=.{32}))([0-9a-f]+)$/i.exec(gatewayId)?.[1];
}

export const keyNameField = z
  .string({ error: 'must be a string' })
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/, 'must be 1 to 32 of A-Z a-z 0-9 . _ - and begin with a letter or digit');

/** The environment of a signature. It is compared to the byte, stored with each payout, and shown. */
export const audienceField = z
  .string({ error: 'must be a string' })
  .regex(/^[\u0021-\u007e]{1,200}$/, 'must be 1 to 200 printable characters of ASCII without spaces');

/**
 * A person in a keyring, or the requester that a producer names. It is signed, so it is one line of well-formed text.
 */
export const personField = z
  .string({ error: 'must be a string' })
  .regex(/^[^\p{Cc}\p{Surrogate}\u2028\u2029]{1,64}$/u, 'must be 1 to 64 characters on one line')
  .refine((text) => text.trim() === text && text !== '', 'must not begin or end with spaces');

export const payoutIdField = z
  .string({ error: 'must be a string' })
  .regex(/^[A-Za-z0-9+/=\-:.,_]{1,64}$/, 'must be 1 to 64 of A-Z a-z 0-9 + / = - : . , _')
  // In a URL such a segment means a folder: a request about `x/../victim` can become one about `victim`.
  .refine((id) => !/(^|\/)\.{1,2}(\/|$)/.test(id), 'must not have . or .. alone, or between slashes');

/**
 * The gateway's address: https, or http on this machine only, because neither request nor response may cross a network
 * in the clear. A path is kept; its trailing slash is dropped.
 */
export const baseUrlField = z.string({ error: 'must be a string' }).transform((text, context) => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const problem = baseUrlProblem(url);
  if (url !== undefined && problem === undefined) return url.href.replace(/\/+$/, '');
  // A URL may contain a password, so only the origin is shown.
  context.issues.push({ code: 'custom', message: problem ?? 'is not usable', input: url?.origin ?? 'no URL' });
  return z.NEVER;
});

function baseUrlProblem(url: URL | undefined): string | undefined {
  if (url === undefined) return 'must be a URL such as https://gateway.example/api';
  if (!isProtected(url) || url.username !== '' || url.password !== '') return webhookUrlProblem(url);
  if (url.search !== '' || url.hash !== '') return 'must not contain a query or a fragment';
  return undefined;
}

/**
 * The address of a webhook: https, or http on this machine only. Path and query may hold a token, so nothing of it is
 * shown.
 */
export const webhookUrlField = z.string({ error: 'must be a string' }).superRefine((text, context) => {
  const message = webhookUrlProblem(URL.canParse(text) ? new URL(text) : undefined);
  if (message !== undefined) context.addIssue({ code: 'custom', message });
});

function webhookUrlProblem(url: URL | undefined): string | undefined {
  if (url === undefined) return 'must be a URL such as https://hooks.example/payouts';
  if (!isProtected(url)) return 'must begin with https:// (http:// is allowed for 127.0.0.1, ::1 and localhost only)';
  if (url.username !== '' || url.password !== '') return 'must not contain a user name or password';
  return undefined;
}

function isProtected(url: URL): boolean {
  if (url.protocol === 'https:') return true;
  // The URL parser has already normalised every notation of an IPv4 or IPv6 address.
  return url.protocol === 'http:' && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
}

const SHOWN_VALUE_LENGTH = 80;

/**
 * Checks a caller's data.
 * @param form - how the whole input is given, such as `{ by, reason }`: for who gave none, or something else
 * @returns the schema's result (trailing zeros dropped, defaults filled in)
 * @throws InvalidInputError naming every field that breaks a rule, the rule, and the value
 */
export function parseInput<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
  name?: string,
  form?: string,
): z.output<Schema> {
  const parsed = schema.safeParse(input, { reportInput: true });
  if (parsed.success) return parsed.data;
  const problems = toProblems(parsed.error.issues, schema, name);
  const isWhole =
    form !== undefined && parsed.error.issues.every(({ code, path }) => code === 'invalid_type' && path.length === 0);
  throw new InvalidInputError(
    isWhole ? problems.map(({ field, message }) => ({ field, message: `${message}: give ${form}` })) : problems,
  );
}

/** Zod issues as problems, see {@link toProblem}. For an unknown name, the schema shows which one was meant. */
export function toProblems(issues: readonly z.core.$ZodIssue[], schema: z.ZodType, name?: string): Problem[] {
  return issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => unknownName(key, namesAt(schema, issue.path)))
      : [toProblem(issue, name)],
  );
}

function namesAt(schema: unknown, path: readonly PropertyKey[]): string[] {
  if (schema instanceof z.ZodPipe) return namesAt(schema.in, path);
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) return namesAt(schema.unwrap(), path);
  const [name, ...rest] = path;
  if (schema instanceof z.ZodArray) return namesAt(schema.element, rest);
  if (!(schema instanceof z.ZodObject)) return [];
  const shape = schema.shape as Record<PropertyKey, unknown>;
  return name === undefined ? Object.keys(shape) : namesAt(shape[name], rest);
}

/** The value of an unknown name may be a secret under a misspelt name, so it is not shown. */
export function unknownName(name: string, known: readonly string[]): Problem {
  const meant = closestName(name, known);
  return { field: name, message: `is not a known field${meant === undefined ? '' : `, did you mean ${meant}?`}` };
}

const MAX_TYPOS = 3;

/**
 * The known name that a misspelt one means. Case does not count.
 * @param lettersPerTypo - of so many letters one may be wrong, of all together three
 */
export function closestName(name: string, known: readonly string[], lettersPerTypo = 3): string | undefined {
  let limit = Math.min(MAX_TYPOS, Math.floor(name.length / lettersPerTypo));
  let closest: string | undefined;
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) > limit) continue;
    const typos = countTypos(name.toLowerCase(), candidate.toLowerCase());
    if (typos > limit) continue;
    closest = candidate;
    limit = typos - 1;
  }
  return closest;
}

/** Levenshtein's distance: letters to add, drop or replace. */
function countTypos(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, place) => place);
  for (const [line, letter] of Array.from(one).entries()) {
    const next = [line + 1];
    for (const [place, above] of row.slice(1).entries()) {
      const replaced = (row[place] ?? 0) + (letter === other[place] ? 0 : 1);
      next.push(Math.min(replaced, above + 1, (next[place] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

/**
 * A zod issue as a field and a sentence. It shows values: never use it for data that may contain a secret.
 * @param name - of the whole input
 */
export function toProblem(issue: z.core.$ZodIssue, name = 'input'): Problem {
  const field = issue.path.length === 0 ? name : issue.path.join('.');
  if (issue.code === 'unrecognized_keys') return { field: issue.keys.join(', '), message: 'is not a known field' };
  // Zod reports the value only with `reportInput`.
  if (!('input' in issue)) return { field, message: issue.message };
  if (issue.input === undefined) return { field, message: 'is missing' };
  return { field, message: `${ruleOf(issue)} (got ${showValue(issue.input)})` };
}

const TYPES: Readonly<Record<string, string>> = { object: 'an object', array: 'a list', string: 'a string' };

/** Zod's own words for a wrong type repeat the value, and name no rule. */
function ruleOf(issue: z.core.$ZodIssue): string {
  if (issue.code !== 'invalid_type' || !issue.message.startsWith('Invalid input')) return issue.message;
  return `must be ${TYPES[issue.expected] ?? `a ${issue.expected}`}`;
}

function showValue(value: unknown): string {
  const text = typeof value === 'string' ? JSON.stringify(value) : inspect(value, { breakLength: Infinity });
  return text.length > SHOWN_VALUE_LENGTH ? `${text.slice(0, SHOWN_VALUE_LENGTH)}…` : text;
}

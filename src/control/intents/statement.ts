import { createHash } from 'node:crypto';

/**
 * Signed text as UTF-8: a first line with type and version, then `audience`, then one `name=value` a line, each ended
 * by LF. Every line is always present, so readers in any language make the same bytes.
 */

export type StatementLine = readonly [name: string, value: string];

const ONE_LINE = 'must not contain control characters, line separators or lone surrogates';

/** A value spans lines or has no bytes of its own, so the statement would be ambiguous. */
export class StatementError extends Error {
  readonly field: string;

  constructor(field: string, rule = ONE_LINE) {
    super(`${field}: ${rule}`);
    this.field = field;
  }
}

export type StatementType = 'intent' | 'approval' | 'act' | 'receipt';

/**
 * The text that is signed.
 * @throws StatementError, as every format or sign function of a statement does
 */
export function formatStatement(type: StatementType, audience: string, lines: readonly StatementLine[]): string {
  const all = [['audience', audience] as const, ...lines].map(
    ([name, value]) => `${name}=${checkValue(name, value)}\n`,
  );
  return `payout-queue ${type} v1\n${all.join('')}`;
}

function checkValue(name: string, value: string): string {
  // A lone surrogate becomes U+FFFD in UTF-8: two texts would have the same bytes.
  if (/[\p{Cc}\u2028\u2029]/u.test(value) || /\p{Surrogate}/u.test(value)) throw new StatementError(name);
  return value;
}

/** @returns the text, or the StatementError: an altered record may have a value that is not one line */
export function tryFormat(format: () => string): string | StatementError {
  try {
    return format();
  } catch (error) {
    if (error instanceof StatementError) return error;
    throw error;
  }
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/;

/**
 * Reads a statement's time: ISO 8601, UTC. `Date.parse` alone would also accept local times.
 * @returns ms since 1970, or NaN
 */
export function parseStatementTime(text: string): number {
  return TIME.test(text) ? Date.parse(text) : NaN;
}

export function hashText(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

import { createHash } from 'node:crypto';

/**
 * Signed text: a first line that names type and version, then `audience`, then one `name=value` a line, each ended by LF, as UTF-8. Every
 * line is always there, so a reader in any language makes the same bytes.
 */

/** One line of a statement; a value that is absent is empty. */
export type StatementLine = readonly [name: string, value: string];

const ONE_LINE = 'must not contain control characters, line separators or lone surrogates';

/** A value could be read as more than one line, or has no bytes of its own: the statement would not say one thing only. */
export class StatementError extends Error {
  /** The line's name. */
  readonly field: string;

  constructor(field: string, rule = ONE_LINE) {
    super(`${field}: ${rule}`);
    this.field = field;
  }
}

/** What is signed. */
export type StatementType = 'intent' | 'approval' | 'act' | 'receipt';

/**
 * Makes the text that is signed.
 * @param audience - undefined for the text of version 1, which had no such line
 * @throws StatementError when a value cannot stand on one line
 */
export function formatStatement(
  type: StatementType,
  audience: string | undefined,
  lines: readonly StatementLine[],
): string {
  const [version, bound]: [string, readonly StatementLine[]] =
    audience === undefined ? ['v1', []] : ['v2', [['audience', audience]]];
  const all = [...bound, ...lines].map(([name, value]) => `${name}=${checkValue(name, value)}\n`);
  return `payout-queue ${type} ${version}\n${all.join('')}`;
}

function checkValue(name: string, value: string): string {
  // A lone surrogate becomes U+FFFD in UTF-8: two texts would have the same bytes.
  if (/[\p{Cc}\u2028\u2029]/u.test(value) || /\p{Surrogate}/u.test(value)) throw new StatementError(name);
  return value;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/;

/**
 * Reads a time of a statement: ISO 8601, UTC. `Date.parse` alone also takes local times, which are another time elsewhere.
 * @returns ms since 1970, NaN where the text is no such time
 */
export function parseStatementTime(text: string): number {
  return TIME.test(text) ? Date.parse(text) : NaN;
}

/** SHA-256 of a text as UTF-8, 64 lowercase hexadecimal digits. */
export function hashText(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

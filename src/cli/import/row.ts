import type { Problem } from '../../errors.js';

/** One row of a file: the unchecked fields of a payout, or why the row cannot be read. */
export type Row =
  | { readonly line: number; readonly input: Readonly<Record<string, unknown>> }
  | { readonly line: number; readonly problems: readonly Problem[] };

/** The replacement character of a decoder for bytes that are not UTF-8. */
const NOT_UTF8 = '\uFFFD';

/** Characters. A payout is far shorter; a longer row has lost its line breaks or quotes. */
export const MAX_ROW_LENGTH = 64 * 1024;

export const NOT_UTF8_MESSAGE = 'is not UTF-8 text: save the file as UTF-8';
export const TOO_LONG_MESSAGE = `is longer than ${MAX_ROW_LENGTH} characters`;

export function isUtf8(text: string): boolean {
  return !text.includes(NOT_UTF8);
}

export function unreadableRow(line: number, message: string): Row {
  return { line, problems: [{ field: 'row', message }] };
}

/** What one or more lines of a CSV file hold: values; a quote that a later line must close; or an error. */
export type CsvRecord =
  | { readonly kind: 'values'; readonly values: readonly string[] }
  | { readonly kind: 'open' }
  | { readonly kind: 'wrong'; readonly message: string };

/** What separates values: in countries whose decimals follow a comma, spreadsheets write semicolons. */
export const DELIMITERS = [',', ';'] as const;

export type Delimiter = (typeof DELIMITERS)[number];

// Each matches from the end of the value before. A quote inside quotes is doubled.
const QUOTED_VALUE = { ',': /\s*"([^"]*(?:""[^"]*)*)"\s*(,|$)/y, ';': /\s*"([^"]*(?:""[^"]*)*)"\s*(;|$)/y };
const PLAIN_VALUE = { ',': /([^",]*)(,|$)/y, ';': /([^";]*)(;|$)/y };
const OPEN_VALUE = /\s*"[^"]*(?:""[^"]*)*$/y;

/**
 * Splits a record into its values (RFC 4180); spaces around a value are dropped.
 *
 * Libraries report neither the line in which a record began nor where to continue after an invalid one, and every row
 * with an error must be reported with its line.
 */
export function splitCsvRecord(text: string, delimiter: Delimiter = ','): CsvRecord {
  // The fast path for most rows.
  if (!text.includes('"')) return { kind: 'values', values: text.split(delimiter).map((value) => value.trim()) };
  const values: string[] = [];
  for (let at = 0; ;) {
    const quoted = matchAt(QUOTED_VALUE[delimiter], text, at);
    const match = quoted ?? matchAt(PLAIN_VALUE[delimiter], text, at);
    if (match === undefined) return describeError(text, at, values.length + 1);
    const [whole, value = '', end] = match;
    values.push(quoted === undefined ? value.trim() : value.replaceAll('""', '"'));
    if (end === '') return { kind: 'values', values };
    at += whole.length;
  }
}

function describeError(text: string, at: number, position: number): CsvRecord {
  if (matchAt(OPEN_VALUE, text, at) !== undefined) return { kind: 'open' };
  const message = `value ${position} contains a quote but is not quoted: enclose the value in quotes and double the quote`;
  return { kind: 'wrong', message };
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text) ?? undefined;
}

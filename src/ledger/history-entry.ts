import { stateOfCode } from './states.js';

export interface StoredHistoryEntry {
  /** Wall clock, ms since 1970; NaN if it is not a number. */
  readonly at: number;
  /** The name of a state, unless someone has altered the record. */
  readonly to: string;
  /** '' for none, like the reason. */
  readonly by: string;
  readonly reason: string;
}

/** The state's code and the time in base 36: `qmwtk3v5j`. */
const COMPACT = /^([a-z])([0-9a-z]+)$/;

/** An entry is `at<tab>to`, or {@link COMPACT} since ledger format 4; then `<tab>by<tab>reason` if there are any. */
export function parseHistoryEntry(text: string): StoredHistoryEntry {
  const [first = '', ...rest] = text.split('\t');
  const [, code = '', time = ''] = COMPACT.exec(first) ?? [];
  const to = stateOfCode(code);
  if (to !== undefined) return { at: Number.parseInt(time, 36), to, by: rest[0] ?? '', reason: rest[1] ?? '' };
  return { at: Number(first), to: rest[0] ?? '', by: rest[1] ?? '', reason: rest[2] ?? '' };
}

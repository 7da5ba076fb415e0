import { stateOfCode } from './states.js';

/** A change of state as the history in a record has it. */
export interface StoredHistoryEntry {
  /** Wall clock, ms since 1970; NaN where it is no number. */
  readonly at: number;
  /** The name of a state, unless somebody has altered the record. */
  readonly to: string;
  /** '' for none, and so is the reason. */
  readonly by: string;
  readonly reason: string;
}

/** The code of the state and the time in base 36: `qmwtk3v5j`. */
const COMPACT = /^([a-z])([0-9a-z]+)$/;

/** Entries are `at<tab>to`, or since format 4 of the ledger {@link COMPACT}; with `<tab>by<tab>reason` behind where there are any. */
export function parseHistoryEntry(text: string): StoredHistoryEntry {
  const [first = '', ...rest] = text.split('\t');
  const [, code = '', time = ''] = COMPACT.exec(first) ?? [];
  const to = stateOfCode(code);
  if (to !== undefined) return { at: Number.parseInt(time, 36), to, by: rest[0] ?? '', reason: rest[1] ?? '' };
  return { at: Number(first), to: rest[0] ?? '', by: rest[1] ?? '', reason: rest[2] ?? '' };
}

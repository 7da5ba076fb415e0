import type { ControlView } from './control-view.js';
import { JOURNAL_FORMAT, type HeaderLine, type JournalLine } from './journal-line.js';
import type { JournalView } from './journal-view.js';

export function headerOf(journalId: string, control: ControlView): HeaderLine {
  return { v: JOURNAL_FORMAT, journalId, ...control.marksAt(Date.now()) };
}

/** Repeats the state of the whole journal, because earlier files may be removed. */
export function firstLines(journalId: string, { ledger, control }: JournalView): JournalLine[] {
  return [
    headerOf(journalId, control),
    ...(ledger === undefined ? [] : [ledger]),
    ...(control.pause === undefined ? [] : [{ paused: control.pause }]),
    ...control.seenLines(),
    ...control.rejectedLines(Date.now()),
    ...control.ratesLines(),
  ];
}

import type { ControlView } from './control-view.js';
import { JOURNAL_FORMAT, type HeaderLine, type JournalLine } from './journal-line.js';
import type { JournalView } from './journal-view.js';

/** The header that a journal would be given now, with what must outlive the files that are removed. */
export function headerOf(journalId: string, control: ControlView): HeaderLine {
  return { v: JOURNAL_FORMAT, journalId, ...control.marksAt(Date.now()) };
}

/** What a new file begins with: it repeats what is true of the whole journal, because the files before it may be gone one day. */
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

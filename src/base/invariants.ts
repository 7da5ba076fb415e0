/** What the sender asserts while it sends, in production too: the code, and what must be true. */
export const INVARIANTS = {
  ONE_ATTEMPT: 'a sender has one attempt in hand at most',
  BEGIN_AFTER_CHECKS: 'a begin comes after the second run of the checks, with its comparison of journal and ledger',
  STATE_IN_INDEX: 'a payout that begins is in the index of `sending`, and not in that of `queued`',
  WRITE_AFTER_ENTRY: 'a request is written after its entry in the send journal',
  GAP: 'two requests of a sender are written at least an interval apart',
} as const;

export type InvariantCode = keyof typeof INVARIANTS;

/** This program contradicts itself: a defect, not a fault of its surroundings. No further payout may be sent by it. */
export class BrokenInvariantError extends Error {
  readonly code: InvariantCode;

  constructor(code: InvariantCode) {
    super(`Invariant ${code} is broken: ${INVARIANTS[code]}. This is a defect: please report it.`);
    this.name = new.target.name;
    this.code = code;
  }
}

/**
 * Ends the process as an error that nobody catches, after the current step. Every moment is a safe one to end: what was
 * begun is in ledger and journal, and the next sender settles it.
 */
export function endProcess(error: BrokenInvariantError): void {
  queueMicrotask(() => {
    throw error;
  });
}

/**
 * What this process does for an account.
 *
 * - `send`: competes for the lease, and polls
 * - `watch`: another process works for it, with another journal: this one compares its own journal with the ledger, and
 *   objects where Redis forgot what it sent, but takes no lease
 * - `rest`: another process works for it, with the same journal
 */
export type AccountPart = 'send' | 'watch' | 'rest';

/** The part that a process has in an account now, and a signal for its end. */
export class CurrentPart {
  #part: AccountPart;
  #changed = new AbortController();

  constructor(part: AccountPart) {
    this.#part = part;
  }

  get part(): AccountPart {
    return this.#part;
  }

  /** Aborted when the part changes. */
  get changed(): AbortSignal {
    return this.#changed.signal;
  }

  assign(part: AccountPart): void {
    if (part === this.#part) return;
    this.#part = part;
    const before = this.#changed;
    this.#changed = new AbortController();
    before.abort();
  }
}

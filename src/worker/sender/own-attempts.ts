import { identify } from '../../journal/journal-line.js';
import type { SendAttempt } from '../../ledger/sender-ledger.js';

/**
 * What this process itself knows of its attempts: which one is in progress, and which ones were certainly not written.
 *
 * The ledger may have an attempt as `sending` whose begin got no reply. This process knows better: it did not write it.
 */
export class OwnAttempts {
  /** Attempts that have begun, or may have begun, and were not written, by their identity. */
  readonly #unwritten = new Map<string, SendAttempt>();
  #current: SendAttempt | undefined;

  /** An attempt is about to begin. It is the current one until {@link clearCurrent}. */
  trackBegin(attempt: SendAttempt): void {
    this.#current = attempt;
    this.trackUnwritten(attempt);
  }

  /** The current attempt has ended, one way or the other. */
  clearCurrent(): void {
    this.#current = undefined;
  }

  /** The ledger has begun this attempt. No earlier one can take effect any more: it named another last send. */
  confirmBegin(attempt: SendAttempt): void {
    this.#unwritten.clear();
    this.trackUnwritten(attempt);
  }

  /** The attempt was not written; its begin may yet take effect in Redis. */
  trackUnwritten(attempt: SendAttempt): void {
    this.#unwritten.set(identify(attempt), attempt);
  }

  /** The attempt is about to be written, or may have been sent by another: only an outcome decides about it from now on. */
  release(attempt: SendAttempt): void {
    this.#unwritten.delete(identify(attempt));
  }

  isCurrent(attempt: SendAttempt): boolean {
    return this.#current !== undefined && identify(attempt) === identify(this.#current);
  }

  isUnwritten(attempt: SendAttempt): boolean {
    return this.#unwritten.has(identify(attempt));
  }

  /** Whether the token is of an attempt that this process began, or tried to begin, and did not write. */
  hasUnwrittenToken(token: string): boolean {
    return [...this.#unwritten.values()].some((attempt) => attempt.token === token);
  }
}

import { identify } from '../../journal/journal-line.js';
import type { SendAttempt } from '../../ledger/sender-ledger.js';

/**
 * Knows the attempt in progress, and which were certainly not written. The ledger may have one as `sending` whose begin
 * got no reply.
 */
export class OwnAttempts {
  /** By identity. */
  readonly #unwritten = new Map<string, SendAttempt>();
  #current: SendAttempt | undefined;

  trackBegin(attempt: SendAttempt): void {
    this.#current = attempt;
    this.trackUnwritten(attempt);
  }

  clearCurrent(): void {
    this.#current = undefined;
  }

  /** Earlier ones cannot take effect any more: they named another last send. */
  confirmBegin(attempt: SendAttempt): void {
    this.#unwritten.clear();
    this.trackUnwritten(attempt);
  }

  /** Its begin may still take effect in Redis. */
  trackUnwritten(attempt: SendAttempt): void {
    this.#unwritten.set(identify(attempt), attempt);
  }

  /** It is about to be written, or another sender may have sent it: only an outcome decides from now on. */
  release(attempt: SendAttempt): void {
    this.#unwritten.delete(identify(attempt));
  }

  isCurrent(attempt: SendAttempt): boolean {
    return this.#current !== undefined && identify(attempt) === identify(this.#current);
  }

  isUnwritten(attempt: SendAttempt): boolean {
    return this.#unwritten.has(identify(attempt));
  }

  hasUnwrittenToken(token: string): boolean {
    return [...this.#unwritten.values()].some((attempt) => attempt.token === token);
  }
}

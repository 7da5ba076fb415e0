import type { Logger } from '../../logger.js';

/** What the sender loop of an account is doing. */
export type SenderStatus =
  | { readonly role: 'standby' }
  | { readonly role: 'sender'; readonly epoch: number }
  /** It must not send: the reason says why and what to do. */
  | { readonly role: 'refused'; readonly reason: string };

/** The status of one sender loop. A refusal is logged once. */
export class StatusTracker {
  readonly #logger: Logger;
  #status: SenderStatus = { role: 'standby' };

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  get status(): SenderStatus {
    return this.#status;
  }

  becomeSender(epoch: number): void {
    this.#status = { role: 'sender', epoch };
  }

  /** @param hint - what an operator does about it, for the log; without it the reason was logged before */
  refuse(reason: string, hint?: string): void {
    const isKnown = this.#status.role === 'refused' && this.#status.reason === reason;
    this.#status = { role: 'refused', reason };
    if (!isKnown && hint !== undefined) this.#logger.error({ reason }, hint);
  }

  /** The lease is no longer held. A refusal stands until journal and ledger agree. */
  endSending(): void {
    if (this.#status.role === 'sender') this.#status = { role: 'standby' };
  }

  /** Journal and ledger agree. */
  endRefusal(): void {
    if (this.#status.role === 'refused') this.#status = { role: 'standby' };
  }
}

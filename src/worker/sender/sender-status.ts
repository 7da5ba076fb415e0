import type { Logger } from '../../logger.js';

export type SenderStatus =
  | { readonly role: 'standby' }
  | { readonly role: 'sender'; readonly epoch: number }
  /** The reason says why and what to do. */
  | { readonly role: 'refused'; readonly reason: string };

/** A refusal is logged once. */
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

  /** @param hint - the operator's remedy; without it the reason was logged before */
  refuse(reason: string, hint?: string): void {
    const isKnown = this.#status.role === 'refused' && this.#status.reason === reason;
    this.#status = { role: 'refused', reason };
    if (!isKnown && hint !== undefined) this.#logger.error({ reason }, hint);
  }

  /** A refusal remains until journal and ledger agree. */
  endSending(): void {
    if (this.#status.role === 'sender') this.#status = { role: 'standby' };
  }

  endRefusal(): void {
    if (this.#status.role === 'refused') this.#status = { role: 'standby' };
  }
}

import type { JournaledLedger, JournaledSend, SendJournal } from '../../../src/worker/send-journal.js';

/** A send journal in memory, with what can go wrong with one. */
export class MemoryJournal implements SendJournal {
  ledger: JournaledLedger | undefined;
  readonly sends: JournaledSend[] = [];
  /** Asked before every write, and by `ensureWritable`: throws while the disk is full. */
  failWith: Error | undefined;
  /** Answers of `changedByOthers`, the next one first; false when there is none. */
  readonly othersWrote: boolean[] = [];
  onAppend: () => void | Promise<void> = () => undefined;
  /** What others have added is seen from then on. */
  onReload: () => void = () => undefined;

  knows(payoutId: string, attempt: number): boolean {
    return this.sends.some((send) => send.payoutId === payoutId && send.attempt === attempt);
  }

  lastSends(limit: number): readonly JournaledSend[] {
    return this.sends.slice(-limit);
  }

  async bind(ledger: JournaledLedger): Promise<void> {
    this.ledger = ledger;
    return Promise.resolve();
  }

  async append(send: JournaledSend): Promise<void> {
    await this.onAppend();
    this.sends.push(send);
  }

  async changedByOthers(): Promise<boolean> {
    return Promise.resolve(this.othersWrote.shift() ?? false);
  }

  async reload(): Promise<void> {
    this.onReload();
    return Promise.resolve();
  }

  async ensureWritable(): Promise<void> {
    if (this.failWith !== undefined) throw this.failWith;
    return Promise.resolve();
  }

  async close(): Promise<void> {
    return Promise.resolve();
  }
}

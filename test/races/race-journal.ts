import type { JournaledLedger, JournaledSend, SendJournal } from '../../src/worker/send-journal.js';
import type { RaceWorld } from './race-world.js';

/** The journal file of the host on which all workers run. */
export type JournalLines = (JournaledLedger | JournaledSend)[];

/** The send journal as one process sees it. */
export class RaceJournal implements SendJournal {
  readonly #world: RaceWorld;
  readonly #name: string;
  readonly #lines: JournalLines;
  #known: JournalLines = [];

  constructor(world: RaceWorld, name: string, lines: JournalLines) {
    this.#world = world;
    this.#name = name;
    this.#lines = lines;
  }

  get ledger(): JournaledLedger | undefined {
    return this.#known.reduce<JournaledLedger | undefined>(
      (ledger, entry) =>
        'payoutId' in entry ? ledger && { ...ledger, epoch: entry.epoch, sends: entry.sends } : entry,
      undefined,
    );
  }

  knows(payoutId: string, attempt: number): boolean {
    return this.#sends.some((send) => send.payoutId === payoutId && send.attempt === attempt);
  }

  lastSends(limit: number): readonly JournaledSend[] {
    return this.#sends.slice(-limit);
  }

  get #sends(): JournaledSend[] {
    return this.#known.filter((entry) => 'payoutId' in entry);
  }

  async bind(ledger: JournaledLedger): Promise<void> {
    await this.#write(ledger);
  }

  async append(send: JournaledSend): Promise<void> {
    await this.#write(send);
  }

  async changedByOthers(): Promise<boolean> {
    await this.#world.turn(`${this.#name} looks at the journal`);
    return this.#lines.length !== this.#known.length;
  }

  async reload(): Promise<void> {
    await this.#world.turn(`${this.#name} reads the journal`);
    this.#known = [...this.#lines];
  }

  async ensureWritable(): Promise<void> {
    return Promise.resolve();
  }

  async close(): Promise<void> {
    return Promise.resolve();
  }

  async #write(entry: JournaledLedger | JournaledSend): Promise<void> {
    await this.#world.turn(`${this.#name} writes to the journal`);
    this.#lines.push(entry);
    this.#known.push(entry);
    this.#world.note(`${this.#name} journal: ${'payoutId' in entry ? `${entry.payoutId} ${entry.attempt}` : 'bound'}`);
  }
}

import type {
  JournaledLedger,
  JournaledOutcome,
  SendLine,
  JournalEntry,
  JournalLine,
  JournalPeer,
} from '../../../src/journal/journal-line.js';
import { JournalView } from '../../../src/journal/journal-view.js';
import type { SendJournal } from '../../../src/journal/send-journal.js';
import type { SendAttempt } from '../../../src/ledger/sender-ledger.js';
import type { RaceWorld } from './race-world.js';

/** The journal file of the host on which all workers run. */
export type JournalLines = JournalLine[];

/** The send journal as one process sees it. */
export class RaceJournal implements SendJournal {
  readonly journalId = 'j-race';
  readonly #world: RaceWorld;
  readonly #name: string;
  readonly #lines: JournalLines;
  #view = new JournalView();
  /** How many of the file's lines this process has read or written. */
  #known = 0;
  /** What it does follows one another, outcomes too, for which nobody waits. */
  #queue: Promise<unknown> = Promise.resolve();

  constructor(world: RaceWorld, name: string, lines: JournalLines) {
    this.#world = world;
    this.#name = name;
    this.#lines = lines;
  }

  get ledger(): JournaledLedger | undefined {
    return this.#view.ledger;
  }

  get peers(): readonly JournalPeer[] {
    return this.#view.peers;
  }

  knows(payoutId: string, attempt: number): boolean {
    return this.#view.knows(payoutId, attempt);
  }

  knowsFromAnother(attempt: SendAttempt): boolean {
    return this.#view.knowsFromAnother(attempt);
  }

  lastSends(limit: number): readonly JournalEntry[] {
    return this.#view.lastSends(limit);
  }

  async bind(ledger: JournaledLedger): Promise<void> {
    await this.#write(ledger, 'bound');
  }

  async notePeers(peers: readonly JournalPeer[]): Promise<void> {
    await this.#write({ peers }, 'peers');
  }

  async append(send: SendLine): Promise<void> {
    await this.#write(send, `${send.payoutId} ${send.attempt}`);
  }

  noteOutcome({ payoutId, attempt, token }: SendAttempt, outcome: JournaledOutcome, at: number): void {
    void this.#write({ payoutId, attempt, token, outcome, at }, `${payoutId} ${attempt} ${outcome.kind}`);
  }

  async changedByOthers(): Promise<boolean> {
    return this.#inTurn(`${this.#name} looks at the journal`, () => this.#lines.length !== this.#known);
  }

  async reload(): Promise<void> {
    await this.#inTurn(`${this.#name} reads the journal`, () => {
      this.#view = new JournalView();
      for (const line of this.#lines) this.#view.note(line);
      this.#known = this.#lines.length;
    });
  }

  async ensureWritable(): Promise<void> {
    return Promise.resolve();
  }

  async close(): Promise<void> {
    return Promise.resolve();
  }

  async #write(line: JournalLine, what: string): Promise<void> {
    await this.#inTurn(`${this.#name} writes to the journal`, () => {
      this.#lines.push(line);
      this.#view.note(line);
      this.#known += 1;
      this.#world.note(`${this.#name} journal: ${what}`);
    });
  }

  async #inTurn<Result>(what: string, work: () => Result): Promise<Result> {
    const result = this.#queue.then(async () => {
      await this.#world.turn(what);
      return work();
    });
    this.#queue = result;
    return result;
  }
}

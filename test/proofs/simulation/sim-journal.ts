import type {
  JournaledLedger,
  JournaledOutcome,
  SendLine,
  JournalEntry,
  JournalItem,
  JournalLine,
  JournalPeer,
} from '../../../src/journal/journal-line.js';
import { identify, JournalView } from '../../../src/journal/journal-view.js';
import type { SendJournal } from '../../../src/journal/send-journal.js';
import type { SendAttempt } from '../../../src/ledger/sender-ledger.js';
import type { AdoptableJournal } from '../../../src/operator/adoption.js';
import type { Mischief } from './mischief.js';
import type { Plan } from './plan.js';
import type { SimProcess } from './sim-process.js';

interface Line {
  readonly line: JournalLine;
  isOnDisk: boolean;
}

/** The journal file of one host. A killed process loses nothing that it has written; a crash of the host may. */
export class JournalFile {
  readonly journalId: string;
  lines: Line[];

  constructor(journalId: string) {
    this.journalId = journalId;
    this.lines = [{ line: { v: 2, journalId }, isOnDisk: true }];
  }

  /** What a process finds when it reads the file. */
  read(): JournalView {
    const view = new JournalView();
    for (const { line } of this.lines) view.note(line);
    return view;
  }

  /** Every send with its outcome, and what stands between them, in order. */
  items(): JournalItem[] {
    const entries = new Map<string, JournalItem>();
    for (const [index, { line }] of this.lines.entries()) {
      if ('v' in line) continue;
      if ('outcome' in line) {
        const send = entries.get(identify(line));
        if (send !== undefined) entries.set(identify(line), { ...(send as JournalEntry), outcome: line.outcome });
      } else entries.set('payoutId' in line ? identify(line) : `line ${index}`, line);
    }
    return [...entries.values()];
  }

  /** As an operator's command reads and binds it. */
  toAdoptable(place: AdoptableJournal['place']): AdoptableJournal {
    const view = this.read();
    return {
      journalId: this.journalId,
      ledger: view.ledger,
      peers: view.peers,
      place,
      lastSends: (limit) => view.lastSends(limit),
      items: () => iterate(this.items()),
      bind: async (ledger) => {
        this.lines.push({ line: ledger, isOnDisk: true });
        return Promise.resolve();
      },
      notePeers: async (peers) => {
        this.lines.push({ line: { peers }, isOnDisk: true });
        return Promise.resolve();
      },
    };
  }

  /** @param loses - asked for every line that was not yet on disk; a torn line is read as none */
  crash(loses: () => boolean): void {
    this.lines = this.lines.filter((line) => line.isOnDisk || !loses());
  }
}

async function* iterate<Item>(items: readonly Item[]): AsyncGenerator<Item> {
  for (const item of items) yield Promise.resolve(item);
}

export interface SimJournalOptions {
  readonly process: SimProcess;
  readonly file: JournalFile;
  readonly plan: Plan;
  readonly mischief: Mischief;
}

/** The send journal as a process sees it: what it has read and written, in memory, and the file of its host. */
export class SimJournal implements SendJournal {
  readonly #options: SimJournalOptions;
  /** How many of the file's lines this process has read or written. */
  #lines = 0;
  #isBroken = false;
  #hasOthers = false;
  #view = new JournalView();

  constructor(options: SimJournalOptions) {
    this.#options = options;
  }

  get journalId(): string {
    return this.#options.file.journalId;
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
    await this.#write(ledger);
  }

  async notePeers(peers: readonly JournalPeer[]): Promise<void> {
    await this.#write({ peers });
  }

  async append(send: SendLine): Promise<void> {
    if (this.ledger === undefined) throw new Error('The journal is bound to no ledger');
    await this.#write(send);
  }

  noteOutcome({ payoutId, attempt, token }: SendAttempt, outcome: JournaledOutcome, at: number): void {
    const { process, file, plan, mischief } = this.#options;
    const { world } = process;
    mischief.strike(process, 'journal', 'outcome');
    if (process.dead || process.paused || this.#isBroken || world.fault(plan.faults.journalBroken)) return;
    const line = { line: { payoutId, attempt, token, outcome, at }, isOnDisk: false };
    file.lines.push(line);
    this.#lines += 1;
    this.#view.note(line.line);
    world.note(() => `${process.name} journal has ${payoutId} ${attempt} ${outcome.kind}`);
    world.after(world.random.heavyTail(0.5, 500), () => {
      line.isOnDisk = true;
    });
  }

  async changedByOthers(): Promise<boolean> {
    await this.#options.process.takeMs(0.05);
    return this.#hasOthers || this.#options.file.lines.length !== this.#lines;
  }

  async reload(): Promise<void> {
    await this.#options.process.takeMs(0.1);
    this.#lines = this.#options.file.lines.length;
    this.#view = this.#options.file.read();
    this.#hasOthers = false;
  }

  async ensureWritable(): Promise<void> {
    if (!this.#isBroken) return;
    const lines = this.#lines;
    await this.reload();
    this.#hasOthers = this.#lines !== lines;
    this.#isBroken = false;
  }

  async close(): Promise<void> {
    // Nothing is held.
  }

  async #write(entry: Exclude<JournalLine, { outcome: unknown }>): Promise<void> {
    const { process, file, plan, mischief } = this.#options;
    const { world } = process;
    mischief.strike(process, 'journal', 'write');
    await process.takeMs(world.random.heavyTail(0.05, 50));
    const isBroken = world.fault(plan.faults.journalBroken);
    const line = { line: entry, isOnDisk: false };
    if (!isBroken || world.random.chance(0.5)) file.lines.push(line);
    mischief.strike(process, 'journal', 'sync');
    await process.takeMs(world.random.heavyTail(0.5, 500));
    this.#isBroken = isBroken;
    if (isBroken) throw new Error('no space left on device');
    this.#lines += 1;
    this.#view.note(entry);
    line.isOnDisk = true;
    world.note(
      () =>
        `${process.name} journal has ${'payoutId' in entry ? `${entry.payoutId} ${entry.attempt} (${entry.sends})` : JSON.stringify(entry)}`,
    );
  }
}

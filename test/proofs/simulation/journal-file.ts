import {
  identify,
  isControlLine,
  type JournalEntry,
  type JournalItem,
  type JournalLine,
} from '../../../src/journal/journal-line.js';
import { JournalView } from '../../../src/journal/journal-view.js';
import type { AdoptableJournal } from '../../../src/operator/adoption.js';

/** The journal file of one host. A killed process loses nothing that it has written; a crash of the host may. */
export class JournalFile {
  readonly journalId: string;
  readonly lines: JournalLine[];
  /** Until when the disk answers nobody, true time. */
  hangsUntil = 0;
  /** How often the host crashed: a write that hung before that never takes effect. */
  crashes = 0;
  readonly #unsynced = new Set<JournalLine>();

  /** @param bornAt - wall clock, ms; absent where nothing is signed */
  constructor(journalId: string, bornAt?: number) {
    this.journalId = journalId;
    this.lines = [bornAt === undefined ? { v: 2, journalId } : { v: 3, journalId, bornAt }];
  }

  /** The pause that no act has ended. */
  get isPaused(): boolean {
    const last = this.lines.findLast((line) => 'paused' in line || 'resumed' in line);
    return last !== undefined && 'paused' in last;
  }

  /** As `payouts audit adopt-journal`. */
  declareComplete(at: number): void {
    this.lines.push({ complete: { at, by: 'ann', reason: 'nothing is missing' } });
  }

  /** Adds a line that is not on disk before {@link sync}. */
  write(line: JournalLine): void {
    this.lines.push(line);
    this.#unsynced.add(line);
  }

  sync(line: JournalLine): void {
    this.#unsynced.delete(line);
  }

  /** @param loses - asked for every line that is not yet on disk; a torn line is read as none */
  crash(loses: () => boolean): void {
    this.crashes += 1;
    this.hangsUntil = 0;
    const kept = this.lines.filter((line) => !this.#unsynced.has(line) || !loses());
    this.lines.splice(0, Infinity, ...kept);
    this.#unsynced.clear();
  }

  /** Every send with its outcome, and what stands between them, in order. */
  items(): JournalItem[] {
    const entries = new Map<string, JournalItem>();
    for (const [index, line] of this.lines.entries()) {
      if ('v' in line || isControlLine(line)) continue;
      if ('outcome' in line) {
        const send = entries.get(identify(line));
        if (send !== undefined) entries.set(identify(line), { ...(send as JournalEntry), outcome: line.outcome });
      } else entries.set('payoutId' in line ? identify(line) : `line ${index}`, line);
    }
    return [...entries.values()];
  }

  /** As an operator's command reads and binds it. */
  toAdoptable(place: AdoptableJournal['place']): AdoptableJournal {
    const view = new JournalView();
    for (const line of this.lines) view.note(line);
    const add = async (line: JournalLine): Promise<void> => {
      this.lines.push(line);
      return Promise.resolve();
    };
    return {
      journalId: this.journalId,
      ledger: view.ledger,
      peers: view.peers,
      place,
      lastSends: (limit) => view.lastSends(limit),
      items: () => iterate(this.items()),
      bind: async (ledger) => add(ledger),
      notePeers: async (peers) => add({ peers }),
    };
  }
}

async function* iterate<Item>(items: readonly Item[]): AsyncGenerator<Item> {
  for (const item of items) yield Promise.resolve(item);
}

import type { JournaledLedger, JournaledSend, SendJournal } from '../../src/worker/send-journal.js';
import type { Mischief } from './mischief.js';
import type { Plan } from './plan.js';
import type { SimProcess } from './sim-process.js';

interface Line {
  readonly entry: JournaledLedger | JournaledSend;
  isOnDisk: boolean;
}

/** The journal file of one host. A killed process loses nothing that it has written; a crash of the host may. */
export class JournalFile {
  lines: Line[] = [];

  /** What a process finds when it reads the file: the ledger that the sends belong to, and the sends. */
  read(): { readonly ledger: JournaledLedger | undefined; readonly sends: readonly JournaledSend[] } {
    let ledger: JournaledLedger | undefined;
    const sends = new Map<string, JournaledSend>();
    for (const { entry } of this.lines) {
      if (!('payoutId' in entry)) ledger = entry;
      else {
        sends.set(toKey(entry), entry);
        ledger = raised(ledger, entry);
      }
    }
    return { ledger, sends: [...sends.values()] };
  }

  /** @param loses - asked for every line that was not yet on disk; a torn line is read as none */
  crash(loses: () => boolean): void {
    this.lines = this.lines.filter((line) => line.isOnDisk || !loses());
  }
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
  /** So many of the file's lines this process has read or written. */
  #lines = 0;
  #isBroken = false;
  #hasOthers = false;
  #ledger: JournaledLedger | undefined;
  #sends = new Map<string, JournaledSend>();

  constructor(options: SimJournalOptions) {
    this.#options = options;
  }

  get ledger(): JournaledLedger | undefined {
    return this.#ledger;
  }

  knows(payoutId: string, attempt: number): boolean {
    return this.#sends.has(toKey({ payoutId, attempt }));
  }

  lastSends(limit: number): readonly JournaledSend[] {
    return [...this.#sends.values()].slice(-limit);
  }

  async bind(ledger: JournaledLedger): Promise<void> {
    await this.#write(ledger);
    this.#ledger = ledger;
  }

  async append(send: JournaledSend): Promise<void> {
    if (this.#ledger === undefined) throw new Error('The journal is bound to no ledger');
    await this.#write(send);
    this.#sends.set(toKey(send), send);
    this.#ledger = raised(this.#ledger, send);
  }

  async changedByOthers(): Promise<boolean> {
    await this.#options.process.takeMs(0.05);
    return this.#hasOthers || this.#options.file.lines.length !== this.#lines;
  }

  async reload(): Promise<void> {
    await this.#options.process.takeMs(0.1);
    this.#lines = this.#options.file.lines.length;
    const { ledger, sends } = this.#options.file.read();
    this.#ledger = ledger;
    this.#sends = new Map(sends.map((send) => [toKey(send), send]));
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

  async #write(entry: JournaledLedger | JournaledSend): Promise<void> {
    const { process, file, plan, mischief } = this.#options;
    const { world } = process;
    mischief.strike(process, 'journal', 'write');
    await process.takeMs(world.random.heavyTail(0.05, 50));
    const isBroken = world.fault(plan.faults.journalBroken);
    const line = { entry, isOnDisk: false };
    if (!isBroken || world.random.chance(0.5)) file.lines.push(line);
    mischief.strike(process, 'journal', 'sync');
    await process.takeMs(world.random.heavyTail(0.5, 500));
    this.#isBroken = isBroken;
    if (isBroken) throw new Error('no space left on device');
    this.#lines += 1;
    line.isOnDisk = true;
    world.note(
      () =>
        `${process.name} journal has ${'payoutId' in entry ? `${entry.payoutId} ${entry.attempt}` : `ledger ${entry.ledgerId} epoch ${entry.epoch}`}`,
    );
  }
}

function toKey({ payoutId, attempt }: Pick<JournaledSend, 'payoutId' | 'attempt'>): string {
  return `${payoutId} ${attempt}`;
}

function raised(ledger: JournaledLedger | undefined, send: JournaledSend): JournaledLedger | undefined {
  if (ledger === undefined) return undefined;
  const { ledgerId, epoch, sends } = ledger;
  return { ledgerId, epoch: Math.max(epoch, send.epoch), sends: Math.max(sends, send.sends) };
}

import type { JournalLine, OutcomeLine } from '../../src/journal/journal-line.js';
import { MemoryJournal } from '../doubles/memory-journal.js';
import type { JournalFile } from '../proofs/simulation/journal-file.js';
import type { StepProcess } from './step-process.js';

/** The send journal of a process: to check it, to read it, to write a line and to sync it are a step each. */
export class StepJournal extends MemoryJournal {
  readonly #process: StepProcess;
  readonly #file: JournalFile;

  constructor(process: StepProcess, file: JournalFile) {
    super(file.journalId, file.lines);
    this.#process = process;
    this.#file = file;
  }

  override async changedByOthers(): Promise<boolean> {
    await this.#process.takeMs(0.05, 'check the journal');
    return this.hasUnreadLines;
  }

  override async reload(): Promise<void> {
    await this.#process.takeMs(0.1, 'read the journal');
    this.readAll();
  }

  protected override async write(line: Exclude<JournalLine, OutcomeLine>): Promise<void> {
    await this.#process.takeMs(0.05, 'write to the journal');
    this.#file.write(line);
    await this.#process.takeMs(0.5, 'sync the journal');
    this.#file.sync(line);
    this.noteOwn(line);
  }

  protected override writeOutcome(line: OutcomeLine): void {
    if (this.#process.isDead || this.#process.isStopped) return;
    this.#file.write(line);
    this.#file.sync(line);
    this.noteOwn(line);
  }
}

import type { JournalLine, OutcomeLine } from '../../../src/journal/journal-line.js';
import type { MemoryLedger } from '../../doubles/ledger/memory-ledger.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import type { FaultInjector } from './fault-injector.js';
import type { JournalFile } from './journal-file.js';
import type { Plan } from './plan.js';
import type { SimControl } from './signed/sim-control.js';
import type { SimProcess } from './sim-process.js';

export interface SimJournalOptions {
  readonly process: SimProcess;
  readonly file: JournalFile;
  readonly ledger: Pick<MemoryLedger, 'lease'>;
  readonly plan: Plan;
  readonly injector: FaultInjector;
  /** In signed mode. */
  readonly control?: SimControl | undefined;
}

/** The send journal as a process sees it: writes and reads take time, fail, and are not on disk at once. */
export class SimJournal extends MemoryJournal {
  readonly #options: SimJournalOptions;
  #isBroken = false;
  /** What others had added was read by `ensureWritable`: it counts as theirs until `reload`. */
  #hasOthers = false;

  constructor(options: SimJournalOptions) {
    super(options.file.journalId, options.file.lines);
    this.#options = options;
  }

  override async changedByOthers(): Promise<boolean> {
    await this.#options.process.takeMs(0.05);
    return this.#hasOthers || this.hasUnreadLines;
  }

  override async reload(): Promise<void> {
    await this.#options.process.takeMs(0.1);
    this.readAll();
    this.#hasOthers = false;
  }

  override async ensureWritable(): Promise<void> {
    if (!this.#isBroken) return;
    await this.#options.process.takeMs(0.1);
    this.#hasOthers = this.hasUnreadLines;
    this.readAll();
    this.#isBroken = false;
  }

  override knows(payoutId: string, attempt: number): boolean {
    return super.knows(payoutId, attempt) && !this.#isForgotten(payoutId, attempt);
  }

  override unclearedAttempts(payoutId: string, below: number): readonly number[] {
    return super.unclearedAttempts(payoutId, below).filter((attempt) => !this.#isForgotten(payoutId, attempt));
  }

  /** Files with expired intents alone are removed: what they said of attempts is not known any more. */
  #isForgotten(payoutId: string, attempt: number): boolean {
    const { prunedUpTo } = this;
    if (prunedUpTo === 0) return false;
    return !this.lines.some(
      (line) =>
        'request' in line &&
        line.payoutId === payoutId &&
        line.attempt === attempt &&
        (line.signed?.expiresAt ?? Infinity) > prunedUpTo,
    );
  }

  #forgetExpired(): void {
    const { process, file, control } = this.#options;
    const prunedUpTo = control?.drawPruned(file.lines, process.wallNow()) ?? 0;
    if (prunedUpTo <= this.prunedUpTo) return;
    const { bornAt } = this.view.control.marksAt(0);
    const header = { v: 3, journalId: file.journalId, bornAt, prunedUpTo } as const;
    file.write(header);
    file.sync(header);
    this.noteOwn(header);
    control?.setBack(process);
    process.world.note(() => `${process.name} journal forgets what expired until ${prunedUpTo}`);
  }

  protected override async write(line: Exclude<JournalLine, OutcomeLine>): Promise<void> {
    const { process, file, ledger, plan, injector, control } = this.#options;
    const { world } = process;
    injector.strike(process, 'journal', 'write');
    await process.takeMs(world.random.heavyTail(0.05, 50));
    const isBroken = world.fault(plan.faults.journalBroken);
    const isWritten = !isBroken || world.random.chance(0.5);
    if (isWritten) file.write(line);
    if ('payoutId' in line) world.situations.journaled(process.name, ledger.lease);
    injector.strike(process, 'journal', 'sync');
    await process.takeMs(world.random.heavyTail(0.5, 500));
    this.#isBroken = isBroken;
    // The act that ends a pause counts once it can be read, although its writer was told that it failed.
    if (isBroken && isWritten && 'resumed' in line) control?.journaled(process, file, line);
    if (isBroken) throw new Error('no space left on device');
    file.sync(line);
    this.noteOwn(line);
    control?.journaled(process, file, line);
    if ('request' in line) this.#forgetExpired();
    world.note(
      () =>
        `${process.name} journal has ${'payoutId' in line ? `${line.payoutId} ${line.attempt} (${line.sends})` : JSON.stringify(line)}`,
    );
  }

  protected override writeOutcome(line: OutcomeLine): void {
    const { process, file, plan, injector } = this.#options;
    const { world } = process;
    injector.strike(process, 'journal', 'outcome');
    if (process.dead || process.paused || this.#isBroken || world.fault(plan.faults.journalBroken)) return;
    file.write(line);
    this.noteOwn(line);
    world.note(() => `${process.name} journal has ${line.payoutId} ${line.attempt} ${line.outcome.kind}`);
    world.after(world.random.heavyTail(0.5, 500), () => {
      file.sync(line);
    });
  }
}

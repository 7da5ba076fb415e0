import type { JournalLine, OutcomeLine } from '../../../src/journal/journal-line.js';
import type { WorldLedger } from '../../world/world-ledger.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import type { FaultInjector } from './fault-injector.js';
import type { JournalFile } from './journal-file.js';
import type { Plan } from './plan.js';
import type { SimControl } from './signed/sim-control.js';
import type { SimProcess } from './sim-process.js';

const STALLED_AFTER_MS = 5_000;

export interface SimJournalOptions {
  readonly process: SimProcess;
  readonly file: JournalFile;
  readonly ledger: Pick<WorldLedger, 'lease'>;
  readonly plan: Plan;
  readonly injector: FaultInjector;
  /** In signed mode. */
  readonly control?: SimControl | undefined;
}

/** The send journal as a process sees it: writes and reads take time, fail, and are not on disk at once. */
export class SimJournal extends MemoryJournal {
  readonly #options: SimJournalOptions;
  #isBroken = false;
  /** What is done once the disk answers again. */
  readonly #late: (() => void)[] = [];
  /** What others had added was read by `ensureWritable`: it counts as theirs until `reload`. */
  #hasOthers = false;

  constructor(options: SimJournalOptions) {
    super(options.file.journalId, options.file.lines);
    this.#options = options;
  }

  override async changedByOthers(): Promise<boolean> {
    if (this.#hangs) await this.ensureAnswers();
    await this.#options.process.takeMs(0.05);
    return this.#hasOthers || this.hasUnreadLines;
  }

  override async reload(): Promise<void> {
    if (this.#hangs) await this.ensureAnswers();
    await this.#options.process.takeMs(0.1);
    this.readAll();
    this.#hasOthers = false;
  }

  override async ensureWritable(): Promise<void> {
    if (this.#hangs) await this.ensureAnswers();
    if (!this.#isBroken) return;
    await this.#options.process.takeMs(0.1);
    this.#hasOthers = this.hasUnreadLines;
    this.readAll();
    this.#isBroken = false;
  }

  get #hangs(): boolean {
    const { process, file } = this.#options;
    return this.isStalled || file.hangsUntil > process.world.now;
  }

  /** As the journal of files: a call waits for some seconds, and is refused at once from then on until the disk answers. */
  protected override async ensureAnswers(): Promise<void> {
    const { process, file } = this.#options;
    const { world } = process;
    if (!this.isStalled) {
      await process.takeMs(Math.min(file.hangsUntil - world.now, STALLED_AFTER_MS));
      if (file.hangsUntil <= world.now) return;
      this.isStalled = true;
      world.situations.meet('the disk of a journal hangs');
      this.#onceItAnswers(() => undefined);
    }
    throw new Error('the disk of the send journal has not answered');
  }

  #onceItAnswers(run: () => void): void {
    const { process, file } = this.#options;
    const { world } = process;
    this.#late.push(run);
    if (this.#late.length > 1) return;
    const end = (): void => {
      if (file.hangsUntil > world.now) {
        world.after(file.hangsUntil - world.now, end);
        return;
      }
      this.isStalled = false;
      for (const each of this.#late.splice(0)) each();
    };
    end();
  }

  /** The system call that hangs takes effect once the disk answers, whatever has become of its process, unless the host crashed. */
  async #hang(line: Exclude<JournalLine, OutcomeLine>): Promise<void> {
    const { process, file, ledger, control } = this.#options;
    const { world } = process;
    const { crashes } = file;
    const wasAsked = !this.isStalled && world.hangs.random.chance(0.7);
    try {
      await this.ensureAnswers();
    } catch (error) {
      if (wasAsked)
        this.#onceItAnswers(() => {
          if (file.crashes !== crashes) return;
          file.write(line);
          file.sync(line);
          if (!process.dead) this.noteOwn(line);
          if ('resumed' in line) control?.journaled(process, file, line);
          world.note(() => `${process.name} journal has LATE ${JSON.stringify(line)}`);
          if ('request' in line && ledger.lease?.owner.startsWith(`${process.name}.`) !== true)
            world.situations.meet('a journal entry that hung is written after the lease has moved');
        });
      throw error;
    }
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
    const { random, rate } = world.hangs;
    if (world.mayFail && random.chance(rate)) {
      file.hangsUntil = Math.max(file.hangsUntil, world.now + injector.hangMs());
      world.note(() => `the disk of ${file.journalId} HANGS until ${file.hangsUntil.toFixed(1)}`);
    }
    if (this.#hangs) await this.#hang(line);
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
    if (this.#hangs && !process.dead) {
      this.#onceItAnswers(() => {
        if (!process.dead) this.writeOutcome(line);
      });
      return;
    }
    if (process.dead || process.paused || this.#isBroken || world.fault(plan.faults.journalBroken)) return;
    file.write(line);
    this.noteOwn(line);
    world.note(() => `${process.name} journal has ${line.payoutId} ${line.attempt} ${line.outcome.kind}`);
    world.after(world.random.heavyTail(0.5, 500), () => {
      file.sync(line);
    });
  }
}

import {
  identify,
  isControlLine,
  type JournalEntry,
  type JournalItem,
  type JournalLine,
  type OutcomeLine,
} from '../../../src/journal/journal-line.js';
import { JournalView } from '../../../src/journal/journal-view.js';
import type { AdoptableJournal } from '../../../src/operator/adoption.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import type { WorldLedger } from '../../world/world-ledger.js';
import type { WorldProcess } from '../../world/world.js';
import type { FaultInjector } from './faults.js';
import type { Plan } from './plan.js';
import type { SimControl } from './signed/control.js';

/** The journal file of one host. A killed process loses nothing that it has written; a crash of the host may. */
export class JournalFile {
  readonly journalId: string;
  readonly lines: JournalLine[];
  hangsUntil = 0;
  crashes = 0;
  readonly #unsynced = new Set<JournalLine>();

  constructor(journalId: string, bornAt = 0) {
    this.journalId = journalId;
    this.lines = [{ v: 1, journalId, bornAt }];
  }

  get isPaused() {
    const last = this.lines.findLast((line) => 'paused' in line || 'resumed' in line);
    return last !== undefined && 'paused' in last;
  }

  declareComplete(at: number) {
    this.lines.push({ complete: { at, by: 'ann', reason: 'nothing is missing' } });
  }

  write(line: JournalLine) {
    this.lines.push(line);
    this.#unsynced.add(line);
  }

  sync(line: JournalLine) {
    this.#unsynced.delete(line);
  }

  /** @param loses - asked for every line that is not yet on disk; a torn line is read as none */
  crash(loses: () => boolean) {
    this.crashes += 1;
    this.hangsUntil = 0;
    const kept = this.lines.filter((line) => !this.#unsynced.has(line) || !loses());
    this.lines.splice(0, Infinity, ...kept);
    this.#unsynced.clear();
  }

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

  toAdoptable(location: AdoptableJournal['location']): AdoptableJournal {
    const view = new JournalView();
    for (const line of this.lines) view.note(line);
    const add = async (line: JournalLine) => {
      this.lines.push(line);
      return Promise.resolve();
    };
    return {
      journalId: this.journalId,
      ledger: view.ledger,
      acts: view.control.actCount,
      peers: view.peers,
      location,
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

const STALLED_AFTER_MS = 5_000;

type JournalLinkOptions = Readonly<{
  process: WorldProcess;
  file: JournalFile;
  ledger: Pick<WorldLedger, 'lease'>;
  plan: Pick<Plan, 'faults'>;
  injector?: FaultInjector | undefined;
  control?: SimControl | undefined;
}>;

/** As a process sees it: writes and reads take time, fail, and are not on disk at once. */
export class JournalLink extends MemoryJournal {
  readonly #options: JournalLinkOptions;
  #isBroken = false;
  readonly #late: (() => void)[] = [];
  /** What others had added was read by `ensureWritable`: it counts as theirs until `reload`. */
  #hasOthers = false;

  constructor(options: JournalLinkOptions) {
    super(options.file.journalId, options.file.lines);
    this.#options = options;
  }

  override async changedByOthers() {
    if (this.#hangs) await this.ensureAnswers();
    await this.#options.process.takeMs(0.05, 'check the journal');
    return this.#hasOthers || this.hasUnreadLines;
  }

  override async reload() {
    if (this.#hangs) await this.ensureAnswers();
    await this.#options.process.takeMs(0.1, 'read the journal');
    this.readAll();
    this.#hasOthers = false;
  }

  override async ensureWritable() {
    if (this.#hangs) await this.ensureAnswers();
    if (!this.#isBroken) return;
    await this.#options.process.takeMs(0.1);
    this.#hasOthers = this.hasUnreadLines;
    this.readAll();
    this.#isBroken = false;
  }

  get #hangs() {
    const { process, file } = this.#options;
    return this.isStalled || file.hangsUntil > process.world.now;
  }

  /** As the journal of files: a call waits for some seconds, and is refused at once from then on until the disk answers. */
  protected override async ensureAnswers() {
    const { process, file } = this.#options;
    const { world } = process;
    if (!this.isStalled) {
      await process.takeMs(Math.min(file.hangsUntil - world.now, STALLED_AFTER_MS));
      if (file.hangsUntil <= world.now) return;
      this.isStalled = true;
      world.situations?.meet('the disk of a journal hangs');
      this.#onceItAnswers(() => undefined);
    }
    throw new Error('the disk of the send journal has not answered');
  }

  #onceItAnswers(run: () => void) {
    const { process, file } = this.#options;
    const { world } = process;
    this.#late.push(run);
    if (this.#late.length > 1) return;
    const end = () => {
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
  async #hang(line: Exclude<JournalLine, OutcomeLine>) {
    const { process, file, ledger, control } = this.#options;
    const { world } = process;
    const { crashes } = file;
    const wasAsked = !this.isStalled && world.hangs.random.chance(0.7);
    try {
      await this.ensureAnswers();
    } catch (error) {
      const write = () => {
        if (file.crashes !== crashes) return;
        file.write(line);
        file.sync(line);
        if (!process.isDead) this.noteOwn(line);
        if ('resumed' in line) control?.journaled(process, file, line);
        world.note(() => `${process.name} journal has LATE ${JSON.stringify(line)}`);
        if ('request' in line && ledger.lease?.owner.startsWith(`${process.name}.`) !== true)
          world.situations?.meet('a journal entry that hung is written after the lease has moved');
      };
      if (wasAsked) this.#onceItAnswers(write);
      throw error;
    }
  }

  override knows(payoutId: string, attempt: number) {
    return super.knows(payoutId, attempt) && !this.#isForgotten(payoutId, attempt);
  }

  override unclearedAttempts(payoutId: string, below: number): readonly number[] {
    return super.unclearedAttempts(payoutId, below).filter((attempt) => !this.#isForgotten(payoutId, attempt));
  }

  /** Files with expired intents alone are removed: what they said of attempts is not known any more. */
  #isForgotten(payoutId: string, attempt: number) {
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

  #forgetExpired() {
    const { process, file, control } = this.#options;
    const prunedUpTo = control?.drawPruned(file.lines, process.wallNow()) ?? 0;
    if (prunedUpTo <= this.prunedUpTo) return;
    const { bornAt } = this.view.control.marksAt(0);
    const header = { v: 1, journalId: file.journalId, bornAt, prunedUpTo } as const;
    file.write(header);
    file.sync(header);
    this.noteOwn(header);
    control?.setBack(process);
    process.world.note(() => `${process.name} journal forgets what expired until ${prunedUpTo}`);
  }

  protected override async write(line: Exclude<JournalLine, OutcomeLine>) {
    const { process, file, ledger, plan, injector, control } = this.#options;
    const { world } = process;
    injector?.strike(process, 'journal', 'write');
    const { random, rate } = world.hangs;
    if (world.mayFail && random.chance(rate)) {
      file.hangsUntil = Math.max(file.hangsUntil, world.now + (injector?.hangMs() ?? 0));
      world.note(() => `the disk of ${file.journalId} HANGS until ${file.hangsUntil.toFixed(1)}`);
    }
    if (this.#hangs) {
      world.actions?.end('the disk of a journal hangs');
      await this.#hang(line);
    }
    await process.takeMs(world.random.heavyTail(0.05, 50), 'write to the journal');
    const isBroken = world.fault(plan.faults.journalBroken);
    const isWritten = !isBroken || world.random.chance(0.5);
    if (isWritten) file.write(line);
    if (isWritten && 'request' in line) world.actions?.journaled(process.name, 'entered');
    if ('payoutId' in line) world.situations?.journaled(process.name, ledger.lease);
    injector?.strike(process, 'journal', 'sync');
    await process.takeMs(world.random.heavyTail(0.5, 500), 'sync the journal');
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

  protected override writeOutcome(line: OutcomeLine) {
    const { process, file, plan, injector } = this.#options;
    const { world } = process;
    injector?.strike(process, 'journal', 'outcome');
    if (this.#hangs && !process.isDead) {
      this.#onceItAnswers(() => {
        if (!process.isDead) this.writeOutcome(line);
      });
      return;
    }
    if (process.isDead || process.isStopped || this.#isBroken || world.fault(plan.faults.journalBroken)) return;
    file.write(line);
    if (line.outcome.kind === 'accepted') world.actions?.journaled(process.name, 'noted');
    this.noteOwn(line);
    world.note(() => `${process.name} journal has ${line.payoutId} ${line.attempt} ${line.outcome.kind}`);
    if (!world.isByChance) file.sync(line);
    else
      world.after(world.random.heavyTail(0.5, 500), () => {
        file.sync(line);
      });
  }
}

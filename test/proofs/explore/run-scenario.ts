import { connectLedger, linkLedger } from '../../world/step-ledger.js';
import { never, StepProcess } from '../../world/step-process.js';
import { JournalFile } from '../simulation/journal-file.js';
import { soundPieces, type Pieces } from '../simulation/pieces.js';
import { SimOperator } from '../simulation/sim-operator.js';
import type { SimWorker } from '../simulation/sim-worker.js';
import { ExploredAccount } from './explored-account.js';
import { ExploredWorld } from './explored-world.js';
import type { Scenario } from './scenario.js';
import type { Schedule, Step } from './schedule.js';
import { startWorker } from './start-worker.js';

export interface RunOptions {
  readonly pieces?: Pieces;
  /** Keeps every step, to be printed. */
  readonly tracing?: boolean;
  /** See {@link ExploredWorldOptions.describesState}. */
  readonly describesState?: boolean;
}

/** How a run ended. */
export interface Outcome {
  /** Which promise was broken; undefined when all were kept. */
  readonly broken: string | undefined;
  /** See {@link ExploredWorld.steps}. */
  readonly steps: readonly Step[];
  readonly trace: readonly string[];
}

/** The first worker starts at once, each other one this much later, in ms. */
const START_APART_MS = 100;
/** As often as one stop can lead to another. */
const ADOPTIONS_MAX = 4;

/** Runs a scenario once, with the deviations of a schedule. */
export async function runScenario(
  scenario: Scenario,
  schedule: Schedule,
  { pieces = soundPieces, tracing = false, describesState = false }: RunOptions = {},
): Promise<Outcome> {
  const run = new ScenarioRun(scenario, schedule, { pieces, tracing, describesState });
  try {
    return { broken: await run.findBrokenPromise(), ...run.result };
  } finally {
    run.close();
  }
}

class ScenarioRun {
  readonly #scenario: Scenario;
  readonly #pieces: Pieces;
  readonly #world: ExploredWorld;
  readonly #accounts: readonly ExploredAccount[];
  /** By worker and account. */
  readonly #files: readonly (readonly JournalFile[])[];
  readonly #processes: StepProcess[] = [];
  readonly #workers: { readonly worker: SimWorker; readonly process: StepProcess; readonly dir: string }[] = [];
  #tokens = 0;

  constructor(scenario: Scenario, schedule: Schedule, { pieces, ...options }: Required<RunOptions>) {
    const { accounts, workers, hasOwnJournals, settings } = scenario;
    this.#scenario = scenario;
    this.#pieces = pieces;
    const world = (this.#world = new ExploredWorld({ schedule, ...scenario, ...options }));
    this.#accounts = Array.from({ length: accounts }, (_, number) => {
      const prefix = accounts === 1 ? '' : `a${number + 1}.`;
      return new ExploredAccount({ world, pieces, prefix, ...scenario });
    });
    const shared = this.#accounts.map((_, account) => new JournalFile(`journal-${account}`));
    this.#files = Array.from({ length: workers }, (_, worker) =>
      hasOwnJournals ? shared.map(({ journalId }) => new JournalFile(`${journalId}-${worker}`)) : shared,
    );
    world.marks = [settings.guardMs - 1];
    world.rollBack = (changes) => this.#accounts[0]?.rollBack(changes) ?? false;
    const files = new Set(this.#files.flat());
    world.contents = () =>
      [...this.#accounts.map(({ contents }) => contents), ...[...files].map(({ lines }) => lines.length)].join(' ');
    world.isSettled = () => this.#accounts.every(({ isSettled }) => isSettled) && !world.isRequestOnItsWay;
  }

  get result(): Omit<Outcome, 'broken'> {
    const { steps, trace = [] } = this.#world;
    return { steps, trace };
  }

  async findBrokenPromise(): Promise<string | undefined> {
    await this.#prepare();
    await this.#world.run();
    for (let times = 0; this.#world.failure === undefined && this.#isStopped; times += 1) {
      const reason = this.#whyStopped();
      if (reason !== undefined) return reason;
      if (times === ADOPTIONS_MAX) return 'stuck: the account is stopped again and again';
      await this.#adopt();
    }
    return this.#world.failure ?? this.#findFalseState();
  }

  close(): void {
    for (const process of this.#processes) process.isDead = true;
    for (const { worker } of this.#workers) worker.forget();
  }

  /** A ledger whose earlier holder ended in good order, so that the first worker takes the lease at once. */
  async #prepare(): Promise<void> {
    const { workers } = this.#scenario;
    for (const [index, { ledger }] of this.#accounts.entries()) {
      const view = await ledger.readSender();
      const { journalId } = this.#fileOf(0, index);
      const journal = { journalId, host: 'w0', dir: 'w0', sends: 0, token: '', at: 0 };
      const epoch = await ledger.acquireLease('earlier', view, journal, 0);
      if (epoch !== undefined) await ledger.releaseLease({ owner: 'earlier', epoch });
    }
    for (let worker = 0; worker < workers; worker += 1) this.#startLater(worker, worker * START_APART_MS);
  }

  #fileOf(worker: number, account: number): JournalFile {
    const file = this.#files[worker]?.[account];
    if (file === undefined) throw new Error('every worker has a journal for every account');
    return file;
  }

  #startLater(worker: number, delayMs: number): void {
    this.#world.after(delayMs, {
      kind: 'timeout',
      label: `start ${worker}`,
      run: () => {
        this.#start(worker);
      },
    });
  }

  #start(number: number): void {
    const { rates, wallOffsetsMs, restartAfterMs } = this.#scenario;
    const world = this.#world;
    const starts = this.#processes.filter(({ name }) => name.startsWith(nameOf(number))).length;
    const process = new StepProcess({
      world,
      name: `${nameOf(number)}${starts === 0 ? '' : starts + 1}`,
      rate: rates[number],
      wallOffsetMs: wallOffsetsMs[number],
    });
    this.#processes.push(process);
    if (restartAfterMs !== undefined)
      process.onDeath = () => {
        this.#startLater(number, restartAfterMs);
      };
    for (const account of this.#accounts.keys()) this.#startWorker(process, number, account);
  }

  #startWorker(process: StepProcess, number: number, index: number): void {
    const { settings, lingerMs } = this.#scenario;
    const account = this.#accounts[index];
    if (account === undefined) throw new Error('no such account');
    const [world, ledgerOfRun, dir] = [this.#world, account.ledger, `w${this.#scenario.hasOwnJournals ? number : 0}`];
    const call = connectLedger({
      ...{ world, process, commandTimeoutMs: settings.commandTimeoutMs },
      beforeCommand: (name) => {
        account.beforeCommand(name);
      },
      afterCommand: () => {
        account.noteChange();
      },
    });
    const worker = startWorker({
      ...{ world, process, settings, pieces: this.#pieces, book: account.gateway, ledgerOfRun, dir },
      // BullMQ knows what is queued without asking the ledger.
      ledger: {
        ...linkLedger(ledgerOfRun, call),
        queued: async () => (process.isDead ? never() : Promise.resolve(ledgerOfRun.idsIn('queued'))),
      },
      file: this.#fileOf(number, index),
      lingerMs: lingerMs[number] ?? 1,
      nextToken: () => `t${(this.#tokens += 1)}`,
    });
    this.#workers.push({ worker, process, dir });
  }

  get #isStopped(): boolean {
    // A standby worker that refuses, and has yet to see that an operator adopted the ledger, keeps nothing waiting.
    return this.#accounts.some(({ isStopped, isDone }) => isStopped || (!isDone && this.#refusing.length > 0));
  }

  /** The folders of the workers that refuse to send. */
  get #refusing(): string[] {
    return this.#workers
      .filter(({ worker, process }) => !process.isDead && worker.mismatch !== undefined)
      .map(({ dir }) => dir);
  }

  /** An account that is stopped for nothing keeps a merchant's money waiting. Only Redis that came back older is a reason. */
  #whyStopped(): string | undefined {
    if (this.#accounts.some(({ isRolledBack }) => isRolledBack)) return undefined;
    const stopped = this.#accounts.find(({ isStopped }) => isStopped)?.ledger;
    // After two sends without a response the breaker pauses the account.
    if (stopped?.pausedReason !== undefined && !stopped.isObjectedTo) return undefined;
    const reasons = (stopped?.objections ?? []).map(({ reason }) => reason);
    const refused = this.#workers.flatMap(({ worker }) => worker.mismatch ?? []);
    return `stopped without a reason: ${[...reasons, ...refused].join('; ')}`;
  }

  /** An operator runs the command that the tools show, and the workers continue. */
  async #adopt(): Promise<void> {
    const world = this.#world;
    const { settings } = this.#scenario;
    for (const [index, account] of this.#accounts.entries()) {
      const operator = new SimOperator({
        world: {
          note: (line) => {
            world.note(line);
          },
          after: (delayMs, run) => void world.after(delayMs, { kind: 'timeout', label: 'operator', run }),
          fault: () => false,
          situations: { meet: () => undefined },
          random: { between: (least) => least },
        },
        plan: { settings },
        redis: { ledger: account.ledger, refuses: false },
        folders: () =>
          this.#files.map((files, worker) => ({ dir: `w${worker}`, file: files[index] ?? this.#fileOf(0, index) })),
        // They are there before anything happens that Redis could forget.
        hasAllPayouts: () => true,
        adoptsWithoutProof: this.#pieces.adoptsWithoutProof,
      });
      const done = operator.endStop([...new Set(this.#refusing)]).then(() => {
        account.noteChange();
      });
      world.extend(this.#scenario.endAt);
      await world.run();
      await done;
    }
  }

  #findFalseState(): string | undefined {
    return this.#accounts.map((account) => account.findFalseState()).find((found) => found !== undefined);
  }
}

function nameOf(worker: number): string {
  return 'ABC'.charAt(worker);
}

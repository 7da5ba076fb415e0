import { connectLedger, linkLedger } from '../../world/step-ledger.js';
import { never, StepProcess } from '../../world/step-process.js';
import { soundPieces, type Pieces } from '../simulation/pieces.js';
import { SimOperator } from '../simulation/sim-operator.js';
import type { SimWorker } from '../simulation/sim-worker.js';
import { ExploredAccount } from './explored-account.js';
import { ExploredWorld, type StateOptions } from './explored-world.js';
import type { Scenario } from './scenario.js';
import type { Schedule, Step } from './schedule.js';
import { startWorker } from './start-worker.js';

export interface RunOptions extends StateOptions {
  readonly pieces?: Pieces;
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
  readonly #processes: StepProcess[] = [];
  readonly #workers: { readonly worker: SimWorker; readonly process: StepProcess; readonly dir: string }[] = [];
  #tokens = 0;

  constructor(scenario: Scenario, schedule: Schedule, { pieces, ...options }: Required<RunOptions>) {
    this.#scenario = scenario;
    this.#pieces = pieces;
    const world = (this.#world = new ExploredWorld(schedule, { ...scenario, ...options }));
    const accounts = Array.from({ length: scenario.accounts }, (_, number) => number);
    this.#accounts = accounts.map((number) => new ExploredAccount(world, scenario, pieces, number));
    world.marks = [scenario.settings.guardMs - 1];
    world.rollBack = (changes) => this.#accounts[0]?.rollBack(changes) ?? false;
    world.contents = () => this.#accounts.map(({ contents }) => contents).join(' ');
    world.isSettled = () => this.#accounts.every(({ isSettled }) => isSettled) && !world.isRequestOnItsWay;
  }

  get result(): Omit<Outcome, 'broken'> {
    const { steps, trace = [] } = this.#world;
    return { steps, trace };
  }

  async findBrokenPromise(): Promise<string | undefined> {
    const world = this.#world;
    for (const account of this.#accounts) await account.prepare();
    for (let worker = 0; worker < this.#scenario.workers; worker += 1)
      this.#startLater(worker, worker * START_APART_MS);
    await world.run();
    for (let times = 0; world.failure === undefined && this.#isStopped; times += 1) {
      const reason = this.#whyStopped();
      if (reason !== undefined) return reason;
      if (times === ADOPTIONS_MAX) return 'stuck: the account is stopped again and again';
      for (const account of this.#accounts) await this.#adopt(account);
    }
    return world.failure ?? this.#accounts.map((account) => account.findFalseState()).find(Boolean);
  }

  close(): void {
    for (const process of this.#processes) process.isDead = true;
    for (const { worker } of this.#workers) worker.forget();
  }

  #startLater(worker: number, delayMs: number): void {
    const run = (): void => {
      this.#start(worker);
    };
    this.#world.after(delayMs, { kind: 'timeout', label: `start ${worker}`, run });
  }

  #start(number: number): void {
    const { rates, wallOffsetsMs, restartAfterMs } = this.#scenario;
    const name = 'ABC'.charAt(number);
    const starts = this.#processes.filter((process) => process.name.startsWith(name)).length;
    const process = new StepProcess({
      world: this.#world,
      name: `${name}${starts === 0 ? '' : starts + 1}`,
      rate: rates[number],
      wallOffsetMs: wallOffsetsMs[number],
    });
    this.#processes.push(process);
    process.onDeath = () => {
      if (restartAfterMs !== undefined) this.#startLater(number, restartAfterMs);
    };
    for (const account of this.#accounts) this.#startWorker(process, number, account);
  }

  #startWorker(process: StepProcess, number: number, account: ExploredAccount): void {
    const { settings, lingerMs, hasOwnJournals } = this.#scenario;
    const { ledger: ledgerOfRun, book } = account;
    const [world, pieces, dir] = [this.#world, this.#pieces, `w${hasOwnJournals ? number : 0}`];
    const call = connectLedger({ world, process, ...settings, account });
    const worker = startWorker({
      ...{ world, process, settings, pieces, book, ledgerOfRun, dir, file: account.fileOf(number) },
      // BullMQ knows what is queued without asking the ledger.
      ledger: {
        ...linkLedger(ledgerOfRun, call),
        queued: async () => (process.isDead ? never() : Promise.resolve(ledgerOfRun.idsIn('queued'))),
      },
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
  async #adopt(account: ExploredAccount): Promise<void> {
    const world = this.#world;
    const { settings, endAt } = this.#scenario;
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
      folders: () => account.files.map((file, worker) => ({ dir: `w${worker}`, file })),
      // They are there before anything happens that Redis could forget.
      hasAllPayouts: () => true,
      adoptsWithoutProof: this.#pieces.adoptsWithoutProof,
    });
    const done = operator.endStop([...new Set(this.#refusing)]).then(() => {
      account.noteChange();
    });
    world.extend(endAt);
    await world.run();
    await done;
  }
}

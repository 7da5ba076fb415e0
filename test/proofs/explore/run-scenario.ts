import { GatewayBook, GatewayLink } from '../../world/gateway-link.js';
import { ALWAYS_UP, connectLedger, linkLedger, type LinkedRedis } from '../../world/ledger-link.js';
import type { RedisSnapshot } from '../../world/memory-redis.js';
import { newPayout, soundPieces, WorldWorker, type Pieces } from '../../world/worker.js';
import type { WorldLedger } from '../../world/world-ledger.js';
import { never, WALL_START, WorldProcess } from '../../world/world.js';
import { JournalFile, JournalLink } from '../simulation/journal-file.js';
import { NO_FAULTS } from '../simulation/plan.js';
import { findFalseState } from '../simulation/simulation.js';
import { endStop } from '../simulation/users.js';
import { ExploredWorld, type StateOptions } from './explored-world.js';
import type { Scenario, Schedule, Step } from './scenario.js';

interface RunOptions extends StateOptions {
  readonly pieces?: Pieces;
}

export type Outcome = Readonly<{
  broken: string | undefined;
  steps: readonly Step[];
  trace: readonly string[];
}>;

const START_APART_MS = 100;
const ADOPTIONS_MAX = 4;
const CHANGES = 'acquireLease releaseLease beginSend revertSend finishSend markSendsUnknown object'.split(' ');
const KEPT_SNAPSHOTS = 8;

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
  readonly #accounts: readonly Account[];
  readonly #processes: WorldProcess[] = [];
  readonly #workers: Readonly<{ worker: WorldWorker; process: WorldProcess; dir: string }>[] = [];
  #tokens = 0;

  constructor(scenario: Scenario, schedule: Schedule, { pieces, ...options }: Required<RunOptions>) {
    this.#scenario = scenario;
    this.#pieces = pieces;
    const world = (this.#world = new ExploredWorld(schedule, { ...scenario, ...options }));
    const numbers = Array.from({ length: scenario.accounts }, (_, number) => number);
    this.#accounts = numbers.map((number) => new Account(world, scenario, pieces, number));
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
    for (const { worker } of this.#workers) worker.stop();
  }

  #startLater(worker: number, delayMs: number) {
    const start = () => {
      this.#start(worker);
    };
    this.#world.after(delayMs, start, { kind: 'timeout', label: `start ${worker}` });
  }

  #start(number: number) {
    const { rates, wallOffsetsMs, restartAfterMs } = this.#scenario;
    const letter = 'ABC'.charAt(number);
    const starts = this.#processes.filter(({ name }) => name.startsWith(letter)).length;
    const name = `${letter}${starts === 0 ? '' : starts + 1}`;
    const world = this.#world;
    const process = new WorldProcess({ world, name, rate: rates[number], wallOffsetMs: wallOffsetsMs[number] });
    this.#processes.push(process);
    process.onDeath = () => {
      if (restartAfterMs !== undefined) this.#startLater(number, restartAfterMs);
    };
    for (const account of this.#accounts) this.#startWorker(process, number, account);
  }

  #startWorker(process: WorldProcess, number: number, { ledger, redis, book, files }: Account) {
    const { settings, lingerMs, hasOwnJournals } = this.#scenario;
    const [pieces, dir, file] = [this.#pieces, `w${hasOwnJournals ? number : 0}`, files[number] as JournalFile];
    const plan = { settings, faults: NO_FAULTS };
    const worker = new WorldWorker({
      ...{ process, pieces, settings, dir, ledgerOfRun: ledger },
      ledger: {
        ...linkLedger(ledger, connectLedger({ process, plan, redis })),
        queued: async () => (process.isDead ? never() : Promise.resolve(ledger.idsIn('queued'))),
      },
      gateway: new GatewayLink({ process, plan, book, lingerMs: lingerMs[number] ?? 1 }),
      journal: new JournalLink({ process, plan, file, ledger }),
      nextToken: () => `t${(this.#tokens += 1)}`,
    });
    void worker.run();
    this.#workers.push({ worker, process, dir });
  }

  get #isStopped() {
    // A standby worker that refuses, and has yet to see that an operator adopted the ledger, keeps nothing waiting.
    return this.#accounts.some(({ isStopped, isDone }) => isStopped || (!isDone && this.#refusing.length > 0));
  }

  get #refusing() {
    const refusing = this.#workers.filter(({ worker, process }) => !process.isDead && worker.mismatch !== undefined);
    return refusing.map(({ dir }) => dir);
  }

  /** An account that is stopped for nothing keeps a merchant's money waiting. Only Redis that came back older is a reason. */
  #whyStopped() {
    if (this.#accounts.some(({ isRolledBack }) => isRolledBack)) return undefined;
    const stopped = this.#accounts.find(({ isStopped }) => isStopped)?.ledger;
    // After two sends without a response the breaker pauses the account.
    if (stopped?.pausedReason !== undefined && !stopped.isObjectedTo) return undefined;
    const reasons = (stopped?.objections ?? []).map(({ reason }) => reason);
    const refused = this.#workers.flatMap(({ worker }) => worker.mismatch ?? []);
    return `stopped without a reason: ${[...reasons, ...refused].join('; ')}`;
  }

  async #adopt(account: Account) {
    const world = this.#world;
    const { settings, endAt } = this.#scenario;
    const { adoptsWithoutProof } = this.#pieces;
    const { ledger } = account;
    const folders = account.files.map((file, worker) => ({ dir: `w${worker}`, file }));
    const { inFlightMaxMs } = settings;
    const operator = { world, ledger, inFlightMaxMs, folders: () => folders, adoptsWithoutProof };
    const done = endStop(operator, [...new Set(this.#refusing)]).then(() => {
      account.noteChange();
    });
    world.extend(endAt);
    await world.run();
    await done;
  }
}

class Account {
  readonly ledger: WorldLedger;
  readonly redis: LinkedRedis;
  readonly book: GatewayBook;
  readonly files: readonly JournalFile[];
  isRolledBack = false;
  readonly #payouts: number;
  #snapshots: RedisSnapshot[] = [];
  #isSettled: boolean | undefined;

  constructor(world: ExploredWorld, scenario: Scenario, pieces: Pieces, number: number) {
    const { accounts, payouts, workers, hasOwnJournals } = scenario;
    const prefix = accounts === 1 ? '' : `a${number + 1}.`;
    this.#payouts = payouts;
    let ledgers = 0;
    this.ledger = pieces.makeLedger({
      clock: { wallNow: () => WALL_START + Math.round(world.now) },
      nextLedgerId: () => `${prefix}ledger-${(ledgers += 1)}`,
    });
    this.redis = {
      ...ALWAYS_UP,
      before: (name) => {
        if (!CHANGES.includes(name)) return;
        this.#snapshots = [...this.#snapshots, this.ledger.snapshot()].slice(-KEPT_SNAPSHOTS);
      },
      executed: () => {
        this.noteChange();
      },
    };
    this.book = new GatewayBook(world);
    const shared = new JournalFile(`journal-${number}`);
    this.files = Array.from({ length: workers }, (_, worker) =>
      hasOwnJournals ? new JournalFile(`${shared.journalId}-${worker}`) : shared,
    );
    for (let payout = 1; payout <= payouts; payout += 1) this.ledger.enqueue(newPayout(`${prefix}p${payout}`));
  }

  /** An earlier holder ended in good order, so that the first worker takes the lease at once. */
  async prepare(): Promise<void> {
    const journal = { journalId: this.files[0]?.journalId ?? '', host: 'w0', dir: 'w0', sends: 0, token: '', at: 0 };
    const epoch = await this.ledger.acquireLease('earlier', await this.ledger.readSender(), journal, 0);
    if (epoch !== undefined) await this.ledger.releaseLease({ owner: 'earlier', epoch });
  }

  get contents(): string {
    const { lease, sendCount, awaitingAnswer, pausedReason, objectionCount } = this.ledger;
    const payouts = this.ledger
      .payoutIds()
      .map((id) => `${this.ledger.stateOf(id)}${this.ledger.ofPayout(id, 'attempt')}`);
    const holder = `${lease?.owner ?? ''}${lease?.epoch ?? ''}${String(lease?.released)}`;
    const lines = [...new Set(this.files)].map((file) => file.lines.length);
    const others = [sendCount, awaitingAnswer, pausedReason, objectionCount, payouts, this.book.arrivals];
    return [holder, ...others, ...lines].join(' ');
  }

  noteChange(): void {
    this.#isSettled = undefined;
  }

  rollBack(changes: number): boolean {
    const snapshot = this.#snapshots.at(-changes);
    if (snapshot === undefined) return false;
    this.#snapshots = this.#snapshots.slice(0, -changes);
    this.ledger.restore(snapshot);
    this.isRolledBack = true;
    this.noteChange();
    return true;
  }

  get isSettled(): boolean {
    this.#isSettled ??= this.isStopped || this.isDone;
    return this.#isSettled;
  }

  get isDone(): boolean {
    const states = this.ledger.payoutIds().map((payoutId) => this.ledger.stateOf(payoutId));
    return states.length === this.#payouts && states.every((state) => state !== 'queued' && state !== 'sending');
  }

  get isStopped(): boolean {
    return this.ledger.pausedReason !== undefined || this.ledger.isObjectedTo;
  }

  findFalseState(): string | undefined {
    const stuck = this.ledger.payouts().find(({ state }) => state === 'queued' || state === 'sending');
    if (stuck !== undefined) return `stuck: ${stuck.payoutId} is ${stuck.state}`;
    if (this.ledger.payouts().length < this.#payouts) return 'lost: a payout is not in the ledger any more';
    return findFalseState(this.ledger, this.book);
  }
}

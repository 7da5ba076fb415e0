import { setImmediate as nextTurn } from 'node:timers/promises';
import { ActionLog } from '../../world/action-log.js';
import { ALWAYS_UP, connectLedger, type LinkedRedis, linkGateway, linkLedger, openGateway } from '../../world/links.js';
import type { RedisSnapshot } from '../../world/memory-redis.js';
import { makeWorker, newPayout, type Pieces, soundPieces, type WorldWorker } from '../../world/worker.js';
import { countLedgers } from '../../world/world-ledger.js';
import { never, WorldProcess } from '../../world/world.js';
import { JournalFile, JournalLink } from '../simulation/journal-file.js';
import { NO_FAULTS } from '../simulation/plan.js';
import { findFalseState } from '../simulation/simulation.js';
import { endStop } from '../simulation/users.js';
import {
  type Deviation,
  type DeviationKind,
  deviationsOf,
  ExploredWorld,
  focusedDeviationsOf,
  isWaiting,
  mattersForRelease,
  type Scenario,
  type Schedule,
  type StateOptions,
  type Step,
} from './scenario.js';

interface RunOptions extends StateOptions {
  readonly pieces?: Pieces;
  /** The run writes down its actions for the model of a send. */
  readonly logging?: boolean;
}

type Outcome = Readonly<{
  broken: string | undefined;
  steps: readonly Step[];
  trace: readonly string[];
  actions: ActionLog | undefined;
}>;

const START_APART_MS = 100;
const ADOPTIONS_MAX = 4;
const CHANGES = 'acquireLease releaseLease beginSend revertSend finishSend markSendsUnknown object'.split(' ');
const KEPT_SNAPSHOTS = 8;

export async function runScenario(
  scenario: Scenario,
  schedule: Schedule,
  { pieces = soundPieces, logging = false, ...options }: RunOptions = {},
): Promise<Outcome> {
  const { settings, hasOwnJournals, endAt } = scenario;
  const { guardMs } = settings;
  const { adoptsWithoutProof } = pieces;
  const plan = { settings, faults: NO_FAULTS };
  const world = new ExploredWorld(schedule, { ...scenario, ...options });
  const accounts = Array.from({ length: scenario.accounts }, (_, number) =>
    openAccount(world, scenario, pieces, number),
  );
  const processes: WorldProcess[] = [];
  const workers: Readonly<{ worker: WorldWorker; process: WorldProcess; dir: string }>[] = [];
  let tokens = 0;
  world.marks = [guardMs - 1];
  if (logging && accounts[0] !== undefined) world.actions = new ActionLog(accounts[0].ledger);
  world.rollBack = (changes) => accounts[0]?.rollBack(changes) ?? false;
  world.contents = () => accounts.map(({ contents }) => contents).join(' ');
  world.isSettled = () => accounts.every(({ isSettled }) => isSettled) && !world.isRequestOnItsWay;

  const startWorker = (process: WorldProcess, number: number, { ledger, redis, book, files }: Account) => {
    const dir = `w${hasOwnJournals ? number : 0}`;
    const worker = makeWorker({
      ...{ process, pieces, settings, dir, ledgerOfRun: ledger },
      ledger: {
        ...linkLedger(ledger, connectLedger({ process, plan, redis })),
        queued: async () => (process.isDead ? never() : Promise.resolve(ledger.idsIn('queued'))),
      },
      gateway: linkGateway({ process, plan, book, lingerMs: scenario.lingerMs[number] ?? 1 }),
      journal: new JournalLink({ process, plan, file: files[number] as JournalFile, ledger }),
      nextToken: () => `t${(tokens += 1)}`,
    });
    void worker.run();
    workers.push({ worker, process, dir });
  };

  const startLater = (number: number, delayMs: number) => {
    const { rates, wallOffsetsMs, restartAfterMs } = scenario;
    const start = () => {
      const letter = 'ABC'.charAt(number);
      const starts = processes.filter(({ name }) => name.startsWith(letter)).length;
      const name = `${letter}${starts === 0 ? '' : starts + 1}`;
      const process = new WorldProcess({ world, name, rate: rates[number], wallOffsetMs: wallOffsetsMs[number] });
      processes.push(process);
      process.onDeath = () => {
        if (restartAfterMs !== undefined) startLater(number, restartAfterMs);
      };
      for (const account of accounts) startWorker(process, number, account);
    };
    world.after(delayMs, start, { kind: 'timeout', label: `start ${number}` });
  };

  const findRefusing = () =>
    workers.flatMap(({ worker, process, dir }) => (!process.isDead && worker.mismatch !== undefined ? [dir] : []));
  const isStopped = () =>
    // A standby worker that refuses, and has yet to see that an operator adopted the ledger, keeps nothing waiting.
    accounts.some((account) => account.isStopped || (!account.isDone && findRefusing().length > 0));

  /** An account that is stopped for nothing keeps a merchant's money waiting. Only Redis that came back older is a reason. */
  const whyStopped = () => {
    if (accounts.some(({ isRolledBack }) => isRolledBack)) return undefined;
    const stopped = accounts.find((account) => account.isStopped)?.ledger;
    // After two sends without a response the breaker pauses the account.
    if (stopped?.pausedReason !== undefined && !stopped.isObjectedTo) return undefined;
    const reasons = (stopped?.objections ?? []).map(({ reason }) => reason);
    const refused = workers.flatMap(({ worker }) => worker.mismatch ?? []);
    return `stopped without a reason: ${[...reasons, ...refused].join('; ')}`;
  };

  const adopt = async ({ ledger, files, noteChange }: Account) => {
    const folders = files.map((file, worker) => ({ dir: `w${worker}`, file }));
    const operator = { world, ledger, folders: () => folders, adoptsWithoutProof };
    const done = endStop(operator, [...new Set(findRefusing())]).then(noteChange);
    world.extend(endAt);
    await world.run();
    await done;
  };

  const findBroken = async () => {
    for (const account of accounts) await account.prepare();
    for (let worker = 0; worker < scenario.workers; worker += 1) startLater(worker, worker * START_APART_MS);
    await world.run();
    for (let times = 0; world.failure === undefined && isStopped(); times += 1) {
      const reason = whyStopped();
      if (reason !== undefined) return reason;
      if (times === ADOPTIONS_MAX) return 'stuck: the account is stopped again and again';
      for (const account of accounts) await adopt(account);
    }
    return world.failure ?? accounts.map((account) => account.findFalseState()).find(Boolean);
  };

  try {
    const broken = await findBroken();
    const { steps, trace = [], actions } = world;
    return { broken, steps, trace, actions };
  } finally {
    for (const process of processes) process.isDead = true;
    for (const { worker } of workers) worker.stop();
  }
}

type Account = ReturnType<typeof openAccount>;

function openAccount(world: ExploredWorld, scenario: Scenario, pieces: Pieces, number: number) {
  const { accounts, payouts, workers, hasOwnJournals } = scenario;
  const prefix = accounts === 1 ? '' : `a${number + 1}.`;
  const ledger = pieces.makeLedger({ clock: world, nextLedgerId: countLedgers(prefix) });
  let snapshots: RedisSnapshot[] = [];
  let isSettled: boolean | undefined;
  let isRolledBack = false;
  const noteChange = () => {
    isSettled = undefined;
  };
  const redis: LinkedRedis = {
    ...ALWAYS_UP,
    before: (name) => {
      if (CHANGES.includes(name)) snapshots = [...snapshots, ledger.snapshot()].slice(-KEPT_SNAPSHOTS);
    },
    executed: noteChange,
  };
  const book = openGateway(world);
  const shared = new JournalFile(`journal-${number}`);
  const files = Array.from({ length: workers }, (_, worker) =>
    hasOwnJournals ? new JournalFile(`${shared.journalId}-${worker}`) : shared,
  );
  for (let payout = 1; payout <= payouts; payout += 1) ledger.enqueue(newPayout(`${prefix}p${payout}`));
  const statesOf = () => ledger.payoutIds().map((payoutId) => ledger.stateOf(payoutId));

  const account = {
    ...{ ledger, redis, book, files, noteChange },

    /** An earlier holder ended in good order, so that the first worker takes the lease at once. */
    async prepare() {
      const journal = { journalId: files[0]?.journalId ?? '', host: 'w0', dir: 'w0', sends: 0, token: '', at: 0 };
      const epoch = await ledger.acquireLease('earlier', await ledger.readSender(), journal, 0);
      if (epoch !== undefined) await ledger.releaseLease({ owner: 'earlier', epoch });
    },

    get contents() {
      const { lease, sendCount, awaitingAnswer, pausedReason, objectionCount } = ledger;
      const records = ledger.payoutIds().map((id) => `${ledger.stateOf(id)}${ledger.ofPayout(id, 'attempt')}`);
      const holder = `${lease?.owner ?? ''}${lease?.epoch ?? ''}${String(lease?.released)}`;
      const lines = [...new Set(files)].map((file) => file.lines.length);
      const others = [sendCount, awaitingAnswer, pausedReason, objectionCount, records, book.arrivals];
      return [holder, ...others, ...lines].join(' ');
    },

    rollBack(changes: number) {
      const snapshot = snapshots.at(-changes);
      if (snapshot === undefined) return false;
      snapshots = snapshots.slice(0, -changes);
      ledger.restore(snapshot);
      isRolledBack = true;
      noteChange();
      return true;
    },

    get isRolledBack() {
      return isRolledBack;
    },

    get isSettled(): boolean {
      return (isSettled ??= account.isStopped || account.isDone);
    },

    get isDone() {
      const states = statesOf();
      return states.length === payouts && states.every((state) => state !== 'queued' && state !== 'sending');
    },

    get isStopped() {
      return ledger.pausedReason !== undefined || ledger.isObjectedTo;
    },

    findFalseState() {
      const stuck = ledger.payouts().find(({ state }) => state === 'queued' || state === 'sending');
      if (stuck !== undefined) return `stuck: ${stuck.payoutId} is ${stuck.state}`;
      if (ledger.payouts().length < payouts) return 'lost: a payout is not in the ledger any more';
      return findFalseState(ledger, book);
    },
  };
  return account;
}

export type Bounds = Readonly<{
  deviations: number;
  kinds: readonly DeviationKind[];
  isFocused: boolean;
  /** Of moments at which the same has happened, whatever came before, the first stands for all. */
  isPruned: boolean;
}>;

export type Finding = Readonly<{ schedule: Schedule; broken: string; run: number }>;

export interface Exploration {
  readonly runs: number;
  readonly findings: readonly Finding[];
}

type ExploreOptions = Readonly<{
  branch?: Branch | undefined;
  pieces?: Pieces | undefined;
  stopAtFirst?: boolean;
}>;

const MOST_OF_A_KIND: Readonly<Record<DeviationKind, number>> = { hold: 2, stop: 2, crash: 1, lose: 1, rollback: 2 };
/** Without a turn of the event loop, nothing that was collected is ever given free. */
const TURN_EVERY_RUNS = 64;

export interface Branch {
  readonly schedule: Schedule;
  readonly last: number;
}

const ROOT: Branch = { schedule: [], last: -1 };

/**
 * Runs a scenario under every schedule within the bounds. Deviations, and the moments at which what waits is let go, are
 * chosen in the order of the steps, so that events which a deviation causes can deviate too.
 */
export async function explore(scenario: Scenario, bounds: Bounds, options: ExploreOptions = {}): Promise<Exploration> {
  const { pieces, stopAtFirst = false } = options;
  const findings: Finding[] = [];
  const seen = new Set<string>();
  let runs = 0;
  const isOver = () => stopAtFirst && findings.length > 0;

  const isNew = (schedule: Schedule, { state }: Step) => {
    const kinds = schedule.map((deviation) => `${deviation.kind}${isWaiting(deviation) ? '*' : ''}`).sort();
    const before = seen.size;
    return seen.add(`${kinds.join()} ${state}`).size > before;
  };

  const follow = async (branch: Branch): Promise<void> => {
    if (isOver()) return;
    const { schedule, last } = branch;
    if (runs % TURN_EVERY_RUNS === 0) await nextTurn();
    runs += 1;
    const { broken, steps } = await runScenario(scenario, schedule, {
      ...(pieces && { pieces }),
      describesState: bounds.isPruned,
    });
    if (broken !== undefined) {
      findings.push({ schedule, broken, run: runs });
      return;
    }
    const fresh = bounds.isPruned ? steps.filter((step) => step.index > last && isNew(schedule, step)) : steps;
    for (const next of continuations(scenario, bounds, branch, fresh)) {
      await follow(next);
      if (isOver()) return;
    }
  };

  await follow(options.branch ?? ROOT);
  return { runs, findings };
}

export async function listBranches(scenario: Scenario, bounds: Bounds, pieces?: Pieces): Promise<Branch[]> {
  const { steps } = await runScenario(scenario, [], { describesState: bounds.isPruned, ...(pieces && { pieces }) });
  return [...continuations(scenario, bounds, ROOT, steps)];
}

function* continuations(
  scenario: Scenario,
  { deviations, kinds, isFocused }: Bounds,
  { schedule, last }: Branch,
  steps: readonly Step[],
): Generator<Branch> {
  const waiting = schedule.filter(isWaiting);
  const isFull = schedule.length === deviations;
  if (isFull && waiting.length === 0) return;
  for (const step of steps) {
    if (step.index <= last) continue;
    yield* releases(schedule, waiting, step);
    if (isFull || !step.mayDeviate) continue;
    const possible = isFocused ? focusedDeviationsOf(step) : deviationsOf(step);
    for (const kind of possible.filter((candidate) => kinds.includes(candidate) && hasRoom(schedule, candidate))) {
      for (const deviation of variants(scenario, step, kind)) {
        yield { schedule: [...schedule, deviation], last: step.index };
      }
    }
  }
}

function* releases(schedule: Schedule, waiting: Schedule, step: Step): Generator<Branch> {
  if (!mattersForRelease(step)) return;
  for (const deviation of waiting.filter(({ at }) => step.index > at + 1)) {
    yield {
      schedule: schedule.map((other) => (other === deviation ? { ...other, until: step.index } : other)),
      last: step.index - 1,
    };
  }
}

function hasRoom(schedule: Schedule, kind: DeviationKind) {
  return schedule.filter((deviation) => deviation.kind === kind).length < MOST_OF_A_KIND[kind];
}

function variants(scenario: Scenario, { index }: Step, kind: DeviationKind): Deviation[] {
  if (kind !== 'rollback') return [{ at: index, kind }];
  return scenario.rollbackDepths.map((changes) => ({ at: index, kind, changes }));
}

import type { SendLine } from '../../../src/journal/journal-line.js';
import { ALWAYS_UP, connectLedger, linkGateway, linkLedger, openGateway } from '../../world/links.js';
import { makeWorker, newPayout, type Pieces, soundPieces, truthfulResolution, walletOf } from '../../world/worker.js';
import { countLedgers } from '../../world/world-ledger.js';
import { never, type PendingStep, WorldProcess } from '../../world/world.js';
import { JournalFile, JournalLink } from '../simulation/journal-file.js';
import { NO_FAULTS, type Settings } from '../simulation/plan.js';
import type { TracedStep } from './checker.js';
import { toTrace, type Trace } from './traces.js';
import { type Seen, WalkedWorld, WatchedLog } from './walked-world.js';
import { type Walk, WALKED } from './walks.js';

/** What became of a walk on the real code. */
export type Replayed = Readonly<{
  name: string;
  /** Its first step that the code's world could not be made to take, and what the code did instead. */
  left: string | undefined;
  /** What was not as in the model, or a broken promise. */
  broken: string | undefined;
  steps: number;
  trace: Trace;
  lines: readonly string[];
}>;

/** The model has no times: its waits are long here, and everything else is short beside them. */
const SETTINGS: Settings = {
  ...{ intervalMs: 1_002, guardMs: 3_600_000, leaseMs: 9_995, quarantineMs: 0 },
  ...{ inFlightMaxMs: 300_000, resendsForMs: 0, withdrawTimeoutMs: 3_000, commandTimeoutMs: 3_000 },
};
const HEARTBEAT = 'sleep 1999';
const RETRY = 'sleep 250';
const STEPS_MAX = 20_000;
const BY = { by: 'ann', reason: 'looked it up' };

/** Steps of a send in hand: the process may take them before it looks at its timers, as after it stood still. */
const IN_HAND =
  /enters the send|puts its payout back|checks and writes|notes the answer|records the answer|gets no answer/;

/** Steps of the model that the code's world cannot be made to take, and why. Any other is a fault of one of the two. */
const CANNOT: readonly (readonly [rule: RegExp, left: RegExp, reason: string])[] = [
  [/asks Redis to begin/, /first: asked of a payout$/, 'a worker tries the payout in hand again before any other'],
  [/asks Redis to begin|gives the lease back/, /first: changed of a payout$/, 'a worker first settles what was left'],
  [/checks and writes/, /first: changed of a payout$/, 'a worker stands back for any line of another in its journal'],
  [/settles payout/, /after it was read/, 'a worker had read its journal before the answer came to it'],
  [
    /arrives at the gateway/,
    /no longer arrive/,
    'a wait of the pace or of an operator was longer than a request is on its way',
  ],
  [/tells Redis an outcome/, /does not come to it/, 'a worker tells its outcomes once, before it takes the lease'],
];

/** @returns undefined if the code should have taken the step */
export function whyNot({ rule }: TracedStep, left: string): string | undefined {
  return CANNOT.find(([step, how]) => step.test(rule) && how.test(left))?.[2];
}

type Worker = Readonly<{ process: WorldProcess; journal: FillingJournal; loop: ReturnType<typeof makeWorker> }>;

/** The disk may be full once. */
class FillingJournal extends JournalLink {
  isFull = false;

  override async append(send: SendLine) {
    const { isFull } = this;
    this.isFull = false;
    if (isFull) throw new Error('no space left on device');
    await super.append(send);
  }
}

/** Has the code take each step of a walk, and compares what has become of payouts, payments and journal. */
export async function replay(walk: Walk, pieces: Pieces = soundPieces): Promise<Replayed> {
  const run = new Replay(pieces);
  try {
    let [steps, left] = [0, undefined as string | undefined];
    let before: TracedStep | undefined;
    for (const step of walk.steps) {
      left = await run.take(step, before);
      if (left !== undefined || run.broken !== undefined) break;
      before = step;
      steps += 1;
      run.compare(step);
    }
    const last = walk.steps.at(-1);
    if (left === undefined && last !== undefined) run.compareEnd(last);
    const { broken, trace, lines } = run.result(walk.name);
    return { name: walk.name, left, broken, steps, trace, lines };
  } finally {
    run.end();
  }
}

class Replay {
  readonly #world = new WalkedWorld(true);
  readonly #pieces: Pieces;
  readonly #ledger;
  readonly #log: WatchedLog;
  readonly #book;
  readonly #file = new JournalFile('j-one');
  readonly #workers: (Worker | undefined)[] = [];
  readonly #all: Worker[] = [];
  /** By attempt, from 1: its token, its begin on its way to Redis, and its request. */
  readonly #tokens: string[] = [''];
  readonly #begins: (PendingStep | undefined)[] = [undefined];
  readonly #requests = new Map<number, PendingStep>();
  readonly #recorded = new Set<number>();
  #isInHand = false;
  #wanted: readonly string[] = [];
  #starts = 0;
  #made = 0;
  #differs: string | undefined;

  constructor(pieces: Pieces) {
    this.#pieces = pieces;
    this.#ledger = pieces.makeLedger({ clock: this.#world, nextLedgerId: countLedgers() });
    this.#log = new WatchedLog(this.#ledger);
    this.#world.actions = this.#log;
    // The model of the pace is another one.
    this.#book = openGateway(this.#world, (promise) => promise === 'pace');
    for (let payout = 0; payout < WALKED.PAYOUTS; payout += 1) this.#ledger.enqueue(newPayout(idOf(payout)));
  }

  get broken() {
    return this.#world.failure ?? this.#differs;
  }

  result(name: string) {
    const trace = toTrace(name, this.#log);
    return { broken: this.broken, trace, lines: this.#world.trace ?? [] };
  }

  end() {
    for (const { process, loop } of this.#all) {
      process.isDead = true;
      loop.stop();
    }
  }

  /** @param before - the step before it. @returns why the code cannot be made to take this step */
  async take(step: TracedStep, before: TracedStep | undefined): Promise<string | undefined> {
    const { w = 0, p = 0, t = 0 } = step.of;
    this.#isInHand = IN_HAND.test(step.rule);
    this.#world.note(() => `== ${step.rule} ${JSON.stringify(step.of)}`);
    const was = (name: string) => before?.values.get(name) ?? '';
    const wasHolder = was('redis.owner');
    const holder = /^\d$/.test(wasHolder) ? Number(wasHolder) : undefined;
    const untilActed = async (kind: string, payoutId?: string) =>
      this.#untilActed(w, holder, (seen) => seen.kind === kind && (payoutId ?? seen.payoutId) === seen.payoutId);
    const attempt = Number(was(`worker[${w}].token`));
    switch (step.rule.replace(/^worker \{w\} /, '')) {
      case 'has waited for the old holder':
      case 'sees that its last begin came late':
      case 'reads what others wrote to its journal':
      case 'is answered':
        return undefined;
      case 'takes the lease':
        if (this.#processOf(w) === undefined) this.#start(w);
        return this.#takeLease(w, was('redis.released') === 'true' ? holder : undefined);
      case 'gives the lease back':
        return this.#release(w, holder);
      case 'notices that it is not the sender any more':
        return this.#untilStandby(w, holder);
      case 'is killed':
        this.#kill(w);
        return undefined;
      case 'settles payout {p}, which an ended sender left':
        return (
          (await untilActed('changed', idOf(p))) ?? this.#findUnread(idOf(p), step.values.get(`redis.state[${p}]`))
        );
      case 'puts payout {p} back, whose begin came late':
        return step.values.get(`redis.state[${p}]`) === was(`redis.state[${p}]`)
          ? undefined
          : untilActed('changed', idOf(p));
      case 'asks Redis to begin payout {p}':
        return this.#ask(w, holder, idOf(p));
      case 'enters the send in its journal':
        return untilActed('entered');
      case 'puts its payout back unwritten':
        return this.#putBack(w, holder, was(`worker[${w}].step`), attempt);
      case 'checks and writes its request': {
        const reason = await untilActed('written');
        this.#noteNewest(attempt);
        return reason;
      }
      case 'notes the answer in its journal':
        return this.#answer(w, holder);
      case 'records the answer in Redis':
        return this.#recorded.has(attempt) ? undefined : this.#untilCommand(w, holder, 'finishSend');
      case 'gets no answer, and resets its connection':
        this.#dropResponse(w);
        this.#requests.get(attempt)?.onTrouble?.();
        return this.#untilCommand(w, holder, 'finishSend');
      case 'tells Redis an outcome of its journal again':
        // With the answer just noted, what tells it is the recording itself.
        if (attempt === t) this.#recorded.add(t);
        return untilActed('changed', idOf(Number(was(`of_[${t}]`))));
      case 'the begin of attempt {t} comes to Redis':
        return this.#begin(t, was);
      case 'attempt {t} arrives at the gateway, and is paid':
        return this.#one(this.#requests.get(t));
      case 'attempt {t} is lost on its way': {
        const request = this.#requests.get(t);
        if (request === undefined) return 'its request is not on its way';
        this.#world.drop(request);
        this.#log.reached('lost', t);
        return undefined;
      }
      case "the gateway's status ends payout {p}":
        return this.#state(idOf(p), 'in_progress', 'completed');
      case 'an operator says that payout {p} was not sent':
        return this.#state(idOf(p), 'unknown', 'queued', holder);
      case 'an operator says that payout {p} was paid':
        return (
          (await this.#state(idOf(p), 'unknown', 'in_progress')) ?? this.#state(idOf(p), 'in_progress', 'completed')
        );
      default:
        return 'no step of the code is known for this rule';
    }
  }

  /** An answer that came to the journal after a worker had read it leaves its payout unknown, until it is told again. */
  #findUnread(payoutId: string, expected: string | undefined) {
    const isUnread = expected === 'in_progress' && this.#ledger.stateOf(payoutId) === 'unknown';
    return isUnread ? 'the answer came to the journal after it was read' : undefined;
  }

  /** The states of the payouts in Redis. */
  compare({ rule, values }: TracedStep) {
    for (let payout = 0; payout < WALKED.PAYOUTS; payout += 1) {
      const [expected, found] = [values.get(`redis.state[${payout}]`), this.#ledger.stateOf(idOf(payout))];
      if (expected !== found) this.#differ(`after "${rule}" ${idOf(payout)} is ${found}, in the model ${expected}`);
    }
  }

  /** Attempts, payments and the journal, too. */
  compareEnd({ values }: TracedStep) {
    const expect = (what: string, found: string | number, expected: string | undefined) => {
      if (String(found) !== expected) this.#differ(`${what} is ${found}, in the model ${expected}`);
    };
    for (let payout = 0; payout < WALKED.PAYOUTS; payout += 1) {
      const id = idOf(payout);
      expect(
        `the payments of ${id}`,
        this.#book.paymentTo(walletOf(id)) === undefined ? 0 : 1,
        values.get(`paid[${payout}]`),
      );
      const newest = values.get(`redis.token[${payout}]`) ?? '0';
      expect(`the newest attempt of ${id}`, this.#ledger.ofPayout(id, 'attempt') ?? 0, values.get(`number[${newest}]`));
    }
    const items = this.#file.items();
    for (const [attempt, token] of this.#tokens.entries()) {
      if (attempt === 0) continue;
      const item = items.find((each) => 'request' in each && each.token === token);
      const outcome = item !== undefined && 'outcome' in item ? item.outcome?.kind : undefined;
      const line = item === undefined ? 'none' : outcome === undefined || outcome === 'unknown' ? 'open' : outcome;
      expect(`the journal's line of attempt ${attempt}`, line, values.get(`journal[0][${attempt}]`));
    }
  }

  #differ(what: string) {
    this.#differs ??= what;
  }

  #processOf(w: number) {
    const process = this.#workers[w]?.process;
    return process?.isDead === true ? undefined : process;
  }

  #start(w: number) {
    const [world, ledger, pieces, settings] = [this.#world, this.#ledger, this.#pieces, SETTINGS];
    const plan = { settings, faults: NO_FAULTS };
    const process = new WorldProcess({ world, name: `${'AB'.charAt(w)}${(this.#starts += 1)}` });
    const linked = linkLedger(ledger, connectLedger({ process, plan, redis: ALWAYS_UP }));
    const journal = new FillingJournal({ process, plan, file: this.#file, ledger });
    const loop = makeWorker({
      ...{ process, pieces, settings, dir: 'w0', ledgerOfRun: ledger },
      ledger: {
        ...linked,
        beginSend: async (begin) => {
          this.#tokens.push(begin.token);
          return linked.beginSend(begin);
        },
        queued: async () => (process.isDead ? never() : Promise.resolve(this.#wanted)),
      },
      gateway: linkGateway({ process, plan, book: this.#book, lingerMs: 1 }),
      journal,
      nextToken: () => `t${(this.#made += 1)}`,
    });
    const worker = { process, journal, loop };
    this.#workers[w] = worker;
    this.#all.push(worker);
    void loop.run();
  }

  /** A worker that gives its lease back ends. */
  async #release(w: number, holder: number | undefined) {
    this.#workers[w]?.loop.stop();
    const reason = await this.#untilActed(w, holder, ({ kind }) => kind === 'released');
    if (reason === undefined) this.#kill(w);
    return reason;
  }

  #kill(w: number) {
    this.#processOf(w)?.end();
    this.#workers[w]?.loop.stop();
  }

  /** What a process does by itself: the walk says when begins, requests and responses reach their end. */
  #isFree({ process, kind, label }: PendingStep, runner: WorldProcess | undefined, keeper: WorldProcess | undefined) {
    if (process === undefined || kind === 'arrival' || kind === 'response') return false;
    if (kind === 'command' && label === 'beginSend') return false;
    const isHeartbeat = (kind === 'timer' && label === HEARTBEAT) || label === 'renewLease';
    // A holder keeps its lease while another process runs.
    return process === keeper
      ? isHeartbeat || process === runner
      : process === runner && !(isHeartbeat && this.#isInHand);
  }

  /** Runs the process of a worker until `isReached`, or an action that no walk has here. */
  async #until(w: number, holder: number | undefined, isReached: () => boolean): Promise<string | undefined> {
    const runner = this.#processOf(w);
    const keeper = holder === undefined ? undefined : this.#processOf(holder);
    const { acted } = this.#log;
    const from = acted.length;
    let steps = 0;
    this.#world.pick = (waiting) => {
      if (isReached() || acted.length > from || (steps += 1) > STEPS_MAX) return undefined;
      return waiting.findLast((step) => this.#isFree(step, runner, keeper));
    };
    await this.#world.run();
    if (this.#log.ended !== undefined) return `the log ends: ${this.#log.ended}`;
    if (isReached()) return undefined;
    const [other] = acted.slice(from);
    return other === undefined
      ? 'the code does not come to it'
      : `the code does this first: ${describe(other, runner)}`;
  }

  async #untilActed(w: number, holder: number | undefined, isMeant: (seen: Seen) => boolean) {
    const from = this.#log.acted.length;
    const name = this.#processOf(w)?.name;
    return this.#until(w, holder, () => {
      const seen = this.#log.acted[from];
      return seen !== undefined && seen.process === name && isMeant(seen);
    });
  }

  async #untilCommand(w: number, holder: number | undefined, command: string) {
    const { executedCommands } = this.#log;
    const from = executedCommands.length;
    const name = this.#processOf(w)?.name;
    return this.#until(w, holder, () =>
      executedCommands.slice(from).some(({ kind, process }) => kind === command && process === name),
    );
  }

  async #untilStandby(w: number, holder: number | undefined) {
    const loop = this.#workers[w]?.loop;
    let wasSender = loop?.isSender === true;
    return this.#until(w, holder, () => {
      const isSender = loop?.isSender === true;
      wasSender ||= isSender;
      return wasSender && !isSender;
    });
  }

  async #takeLease(w: number, holder: number | undefined) {
    const reason = await this.#untilActed(w, holder, ({ kind }) => kind === 'leased');
    // It hears of its lease, so that heartbeats begin.
    return reason ?? this.#hear(w, 'acquireLease');
  }

  async #hear(w: number, command: string) {
    const process = this.#processOf(w);
    const isReply = (step: PendingStep) => step.process === process && step.kind === 'reply' && step.label === command;
    return this.#one(this.#world.waiting.find(isReply));
  }

  async #ask(w: number, holder: number | undefined, payoutId: string) {
    this.#wanted = [payoutId];
    const reason = await this.#untilActed(w, holder, (seen) => seen.kind === 'asked' && seen.payoutId === payoutId);
    this.#wanted = [];
    const isBegin = ({ kind, label }: PendingStep) => kind === 'command' && label === 'beginSend';
    this.#begins.push(this.#world.waiting.filter(isBegin).find((step) => !this.#begins.includes(step)));
    return reason;
  }

  /** Redis does not confirm the begin in time, or the disk is full, or the wall clock jumps past the guard. */
  async #putBack(w: number, holder: number | undefined, step: string, attempt: number) {
    const worker = this.#workers[w];
    if (worker === undefined) return 'its process has ended';
    const { process, journal } = worker;
    if (step === 'journaled') process.wallOffsetMs += 2 * SETTINGS.guardMs;
    else if (step === 'begun') journal.isFull = true;
    else this.#begins[attempt]?.onTrouble?.();
    const { executedCommands } = this.#log;
    const from = executedCommands.length;
    const isRetrying = () => this.#world.waiting.some((each) => each.process === process && each.label === RETRY);
    return this.#until(
      w,
      holder,
      () => executedCommands.slice(from).some(({ kind }) => kind === 'revertSend') || isRetrying(),
    );
  }

  async #begin(attempt: number, was: (name: string) => string) {
    const maker = Number(was(`maker[${attempt}]`));
    const isAsking = was(`worker[${maker}].step`) === 'asking' && was(`worker[${maker}].token`) === String(attempt);
    const reason = await this.#one(this.#begins[attempt]);
    const isRefused = this.#log.acted.at(-1)?.kind === 'refused';
    return reason !== undefined || !isRefused || !isAsking ? reason : this.#hear(maker, 'beginSend');
  }

  async #answer(w: number, holder: number | undefined) {
    const process = this.#processOf(w);
    const from = this.#log.acted.length;
    const response = this.#world.waiting.find((step) => step.process === process && step.kind === 'response');
    const reason = await this.#one(response);
    if (reason !== undefined) return reason;
    if (this.#log.acted[from]?.kind === 'noted') return undefined;
    return this.#untilActed(w, holder, ({ kind }) => kind === 'noted');
  }

  #dropResponse(w: number) {
    const process = this.#processOf(w);
    for (const step of this.#world.waiting)
      if (step.process === process && step.kind === 'response') this.#world.drop(step);
  }

  #noteNewest(attempt: number) {
    const known = [...this.#requests.values()];
    const request = this.#world.waiting.find((step) => step.kind === 'arrival' && !known.includes(step));
    if (request !== undefined) this.#requests.set(attempt, request);
  }

  async #one(step: PendingStep | undefined) {
    if (step === undefined || step.isGone) return 'the code has no such step';
    if (step.kind === 'arrival' && (step.deadline ?? Infinity) < this.#world.now) return 'it can no longer arrive';
    let hasRun = false;
    this.#world.pick = () => {
      if (hasRun) return undefined;
      hasRun = true;
      return step;
    };
    await this.#world.run();
    return undefined;
  }

  /** An operator, or the gateway's status; who asks too early asks again when it is time. */
  async #state(
    payoutId: string,
    from: 'unknown' | 'in_progress',
    to: 'queued' | 'in_progress' | 'completed',
    holder?: number,
  ) {
    const { gatewayId } = truthfulResolution(this.#book.paymentTo(walletOf(payoutId)));
    const change = async () =>
      this.#ledger.change({
        payoutId,
        from,
        to,
        ...BY,
        ...(to === 'in_progress' && gatewayId !== undefined && { gatewayId }),
      });
    let refusal = await change();
    if (refusal?.kind === 'in_flight') {
      const isOnItsWay = this.#world.waiting.some(
        ({ kind, label }) => kind === 'arrival' && label === walletOf(payoutId),
      );
      if (isOnItsWay) return 'refused: its request is on its way';
      await this.#pass(refusal.forMs, holder);
      refusal = await change();
    }
    this.#log.look();
    return refusal === undefined ? undefined : `refused: ${JSON.stringify(refusal)}`;
  }

  async #pass(ms: number, holder: number | undefined) {
    const until = this.#world.now + ms;
    const keeper = holder === undefined ? undefined : this.#processOf(holder);
    this.#world.pick = (waiting) =>
      waiting.findLast((step) => step.at <= until && this.#isFree(step, undefined, keeper));
    await this.#world.run();
    this.#world.now = Math.max(this.#world.now, until);
  }
}

function idOf(payout: number) {
  return `p${payout + 1}`;
}

function describe({ kind, process, payoutId = '' }: Seen, runner: WorldProcess | undefined) {
  return `${kind}${payoutId && ' of a payout'}${process === runner?.name ? '' : ' by another process'}`;
}

import fc from 'fast-check';
import { ConflictError } from '../../../src/base/errors.js';
import { silentLogger } from '../../../src/base/logger.js';
import type { PaymentStatus } from '../../../src/gateway/gateway.js';
import type { StateChange } from '../../../src/ledger/payout-ledger.js';
import type { Payout } from '../../../src/ledger/payout.js';
import type { BeginResult, FinishResult, SenderLedger } from '../../../src/ledger/sender-ledger.js';
import { TRANSITIONS, type PayoutState } from '../../../src/ledger/states.js';
import { pollPayout } from '../../../src/worker/poll-payout.js';
import { Random } from '../../doubles/random.js';
import { takeLease, type ChangeOutcome, type LedgerRig } from '../../ledger/contract/ledger-rig.js';
import { GatewayBook, GatewayLink, type Fate } from '../../world/gateway-link.js';
import { ALWAYS_UP, connectLedger, linkLedger, type LedgerCall } from '../../world/ledger-link.js';
import { truthfulResolution, soundPieces, WorldWorker, type Pieces } from '../../world/worker.js';
import { WorldLedger } from '../../world/world-ledger.js';
import { makeWorldRig } from '../../world/world-rig.js';
import { describeStep, TIMES, World, type PendingStep, type Progress, WorldProcess } from '../../world/world.js';
import { JournalFile, JournalLink } from '../simulation/journal-file.js';
import { NO_FAULTS } from '../simulation/plan.js';

const PIECE_MS = 500;

/** Any step that waits may be the next one, whatever its time. Time passes only when a timer is chosen. */
class RandomWorld extends World {
  limit = 0;
  readonly #order: Random;
  readonly #deviates: (step: PendingStep) => 'lose' | 'crash' | undefined;

  constructor(order: number, deviates: (step: PendingStep) => 'lose' | 'crash' | undefined) {
    super(true);
    this.#order = new Random(order);
    this.#deviates = deviates;
  }

  async turn(process: WorldProcess): Promise<void> {
    await new Promise<void>((resolve) => {
      process.after(0, resolve, { kind: 'mark', label: 'time passes' });
    });
  }

  protected override next(): Progress {
    const possible = this.pending.filter(
      (step) => !step.isGone && !(step.isDelivered && step.process?.isDead === true),
    );
    this.pending.splice(0, Infinity, ...possible);
    if (possible.length === 0 || this.count >= this.limit) return 'over';
    this.count += 1;
    let step = this.#order.pick(possible);
    if (TIMES.has(step.kind) && step.at > this.now) {
      const until = Math.min(step.at, this.now + PIECE_MS);
      const deadlineOf = ({ deadline = Infinity }: PendingStep) => deadline;
      const due = possible.reduce((one, other) => (deadlineOf(other) < deadlineOf(one) ? other : one));
      if (deadlineOf(due) <= until) step = due;
      this.now = Math.min(until, deadlineOf(due));
      if (step !== due && this.now < step.at) return 'again';
    }
    this.pending.splice(this.pending.indexOf(step), 1);
    return this.#take(step);
  }

  #take(step: PendingStep): Progress {
    const deviation = this.#deviates(step);
    if (deviation === undefined) {
      this.carryOut(step);
      return 'ran';
    }
    this.note(() => `${deviation === 'lose' ? 'LOST' : 'KILLED before'}: ${describeStep(step)}`);
    if (deviation === 'lose') step.onTrouble?.();
    else if (step.process !== undefined) step.process.isDead = true;
    return 'again';
  }
}

/** What an operator does, as soon as that is possible; `not sent, unchecked` may be false. */
type Act = { readonly after: number } & (
  | Readonly<{ kind: 'cancel' | 'retry'; payoutId: string }>
  | Readonly<{
      kind: 'resolve';
      payoutId: string;
      as: 'the truth' | 'written off' | 'not sent, unchecked';
    }>
  | { readonly kind: 'pause' | 'resume' }
);

const payoutId = fc.constantFrom('p1', 'p2', 'p3');
const after = fc.nat(25);
const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ kind: fc.constantFrom('cancel', 'retry'), payoutId, after }),
  fc.record({
    ...{ kind: fc.constant('resolve'), payoutId, after },
    as: fc.constantFrom('the truth', 'written off', 'not sent, unchecked'),
  }),
  fc.record({ kind: fc.constantFrom('pause', 'resume'), after }),
);
const fate = fc.constantFrom<Fate>('paid', 'paid', 'rejected', 'unheard', 'unheard', 'never arrives');

const plans = fc.record({
  payouts: fc.integer({ min: 1, max: 3 }),
  fates: fc.array(fate, { maxLength: 5 }),
  /** What the gateway responds when it is asked about a transaction, one time after the other; then always `paid`. */
  statuses: fc.array(fc.constantFrom('pending', 'paid', 'failed'), { maxLength: 3 }),
  acts: fc.array(act, { maxLength: 6 }),
  secondWorkerAfter: fc.option(fc.nat(40), { nil: undefined }),
  killedAt: fc.option(fc.nat(80), { nil: undefined, freq: 4 }),
  lostReplies: fc.uniqueArray(fc.nat(60), { maxLength: 2 }),
});
type RacePlan = typeof plans extends fc.Arbitrary<infer Plan> ? Plan : never;

/** A lease is taken over although its holder may live: a payout must not be paid twice even so, only the pace may suffer. */
const SETTINGS = {
  ...{ intervalMs: 1_000, guardMs: 3_000, leaseMs: 1_000, quarantineMs: 0 },
  ...{ inFlightMaxMs: 500, withdrawTimeoutMs: 400, commandTimeoutMs: 1_000 },
};
const PLAN = { settings: SETTINGS, faults: NO_FAULTS };
const STEPS_MAX = 600;
const LOOK_EVERY = 60;
const OPERATOR_LOOKS = 25;
const BY = { by: 'ann', reason: 'looked it up' };

export interface OrderingsOptions {
  readonly makeRig: () => LedgerRig;
  readonly pieces?: Partial<Pieces>;
}

/** What all orderings came to: orderings in which next to nothing is sent would prove nothing. */
export interface OrderingsCounts {
  begun: number;
  paid: number;
}

export function orderings(
  counts: OrderingsCounts,
  { makeRig, pieces }: OrderingsOptions,
): fc.IAsyncProperty<[unknown, unknown]> {
  return fc.asyncProperty(plans, fc.noShrink(fc.nat()), async (plan, order) => {
    const rig = makeRig();
    try {
      await new Ordering(plan, order, rig, { ...soundPieces, ...pieces }).run(counts);
    } finally {
      await rig.close();
    }
  });
}

class Ordering {
  readonly #plan: RacePlan;
  readonly #rig: LedgerRig;
  readonly #pieces: Pieces;
  readonly #world: RandomWorld;
  readonly #book: GatewayBook;
  readonly #file = new JournalFile('j-one');
  readonly #payoutIds: readonly string[];
  readonly #workers: WorldWorker[] = [];
  readonly #processes: WorldProcess[] = [];
  readonly #payments = new Map<string, string[]>();
  readonly #unchecked: string[] = [];
  readonly #seen = { writes: 0, asked: 0, replies: 0, ownSteps: 0, tokens: 0, begun: 0 };
  #isPaused = false;
  #actsLeft: number;

  constructor(plan: RacePlan, order: number, rig: LedgerRig, pieces: Pieces) {
    this.#plan = plan;
    this.#rig = rig;
    this.#pieces = pieces;
    this.#payoutIds = ['p1', 'p2', 'p3'].slice(0, plan.payouts);
    this.#actsLeft = plan.acts.length;
    this.#world = new RandomWorld(order, (step) => this.#deviationOf(step));
    const paid = ({ addressTo }: { readonly addressTo: string }) => {
      this.#payments.set(addressTo, [...this.#paymentsTo(addressTo), `tx-${this.#book.arrivals}`]);
    };
    this.#book = new GatewayBook(this.#world, () => true, { paid });
  }

  async run(counts: OrderingsCounts): Promise<void> {
    const world = this.#world;
    const { ledger } = this.#rig;
    for (const id of this.#payoutIds) await this.#rig.enqueue(id);
    await ledger.releaseLease(await takeLease(ledger, 'earlier'));
    this.#start('A');
    const { secondWorkerAfter } = this.#plan;
    if (secondWorkerAfter !== undefined) {
      void this.#wait(this.#connect('starter').process, secondWorkerAfter).then(() => {
        this.#start('B');
      });
    }
    for (const each of this.#plan.acts) {
      this.#perform(each).catch((error: unknown) => {
        world.fail(`${each.kind} failed: ${String(error)}`);
      });
    }
    do {
      world.limit += LOOK_EVERY;
      await world.run();
    } while (world.limit < STEPS_MAX && world.failure === undefined && !(await this.#isSettled()));
    for (const { mismatch } of this.#workers) if (mismatch !== undefined) world.fail(`false alarm: ${mismatch}`);
    // Whatever is on its way must do no harm either.
    for (const process of this.#processes) process.isDead = true;
    for (const worker of this.#workers) worker.stop();
    world.limit = Infinity;
    await world.run();
    // The next worker starts, and finds what the others have left.
    await ledger.markSendsUnknown(await takeLease(ledger, 'Z'), await ledger.readSending(), 'left behind', 0);
    const payouts = await this.#payouts();
    for (const fault of payouts.flatMap((payout) => this.#findFaults(payout))) world.fail(fault);
    if (payouts.length !== this.#plan.payouts) world.fail('lost: a payout is gone');
    if (world.failure !== undefined) throw new Error(`${world.failure}\n${(world.trace ?? []).join('\n')}\n`);
    counts.begun += this.#seen.begun;
    counts.paid += [...this.#payments.values()].flat().length;
  }

  #paymentsTo(wallet: string): readonly string[] {
    return this.#payments.get(wallet) ?? [];
  }

  async #payouts(): Promise<Payout[]> {
    const found = await Promise.all(this.#payoutIds.map(async (id) => this.#rig.ledger.readPayout(id)));
    return found.filter((payout) => payout !== undefined);
  }

  async #idsIn(...states: readonly PayoutState[]) {
    return (await this.#payouts()).filter(({ state }) => states.includes(state)).map((payout) => payout.payoutId);
  }

  async #isSettled() {
    return this.#actsLeft === 0 && (await this.#idsIn('queued', 'sending', 'in_progress')).length === 0;
  }

  #deviationOf({ kind, process, isDelivered }: PendingStep): 'lose' | 'crash' | undefined {
    const { lostReplies, killedAt } = this.#plan;
    if (process?.name === 'A' && isDelivered === true && (this.#seen.ownSteps += 1) === killedAt) return 'crash';
    if (kind !== 'reply' || process?.name === 'ann') return undefined;
    return lostReplies.includes((this.#seen.replies += 1)) ? 'lose' : undefined;
  }

  #connect(name: string): { process: WorldProcess; call: LedgerCall } {
    const process = new WorldProcess({ world: this.#world, name });
    this.#processes.push(process);
    return { process, call: connectLedger({ process, plan: PLAN, redis: ALWAYS_UP }) };
  }

  async #wait(process: WorldProcess, turns: number) {
    for (let turn = 0; turn < turns; turn += 1) await this.#world.turn(process);
  }

  #start(name: string) {
    const { process, call } = this.#connect(name);
    const { ledger } = this.#rig;
    const ledgerOfRun = ledger instanceof WorldLedger ? ledger : makeWorldRig().ledger;
    const drawFate = () => this.#plan.fates[this.#seen.writes++] ?? 'paid';
    const worker = new WorldWorker({
      ...{ process, settings: SETTINGS, pieces: this.#pieces, ledgerOfRun, dir: '/journal' },
      ledger: {
        ...linkLedger(this.#watchedLedger(), call),
        queued: async () => call('queued', '', async () => this.#idsIn('queued')),
      },
      gateway: new GatewayLink({ process, plan: PLAN, book: this.#book, lingerMs: 1, drawFate }),
      journal: new JournalLink({ process, plan: PLAN, file: this.#file, ledger: ledgerOfRun }),
      nextToken: () => `t${(this.#seen.tokens += 1)}`,
    });
    void worker.run();
    this.#workers.push(worker);
    void this.#poll(process, call);
  }

  /** What must be true right after a command is looked at in the same step. */
  #watchedLedger(): SenderLedger {
    const watch: LedgerCall = async (name, _, run) => {
      const reply = await run();
      if (name === 'beginSend' && (reply as BeginResult).kind === 'begun') await this.#noteBegun();
      if (name === 'finishSend' && (reply as FinishResult).pausedReason !== undefined) this.#isPaused = true;
      // All workers have one journal, and the ledger forgets nothing: they always agree.
      if (name === 'object') this.#world.fail('false alarm: a worker objects');
      return reply;
    };
    const ledger = linkLedger(this.#rig.ledger, watch);
    return {
      ...ledger,
      // The worst may be stated of a payout without a response, at any time. Truthful operators wait on their own.
      finishSend: async (attempt, result, rule) => ledger.finishSend(attempt, result, rule, 0),
      markSendsUnknown: async (lease, attempts, reason) => ledger.markSendsUnknown(lease, attempts, reason, 0),
    };
  }

  async #noteBegun() {
    this.#seen.begun += 1;
    const sending = await this.#idsIn('sending');
    if (this.#isPaused) this.#world.fail(`not stopped: ${sending.join()} began although the account was paused`);
    if (sending.length > 1) this.#world.fail(`two at a time: ${sending.join()}`);
  }

  async #poll(process: WorldProcess, call: LedgerCall) {
    const ledger = {
      get: async (id: string) => this.#look(id, call),
      change: async (change: StateChange) => {
        const outcome = await this.#change(call, change);
        if (outcome !== 'done') throw new ConflictError(outcome, []);
      },
    };
    const getStatus = async (txhash: string): Promise<PaymentStatus> => {
      await process.takeMs(1, `status of ${txhash}`);
      return { kind: this.#plan.statuses[this.#seen.asked++] ?? 'paid', fee: '0.1' };
    };
    while (!process.isDead) {
      for (const id of await call('in_progress', '', async () => this.#idsIn('in_progress')).catch(() => [])) {
        await pollPayout(id, ledger, { getStatus }, silentLogger).catch(() => undefined);
      }
      await process.sleep(1_000);
    }
  }

  async #change(call: LedgerCall, change: StateChange): Promise<ChangeOutcome> {
    const { payoutId: id, from, to, txhash = '' } = change;
    return call(`change ${id} from ${from} to ${to} ${txhash}`, '', async () => this.#rig.change(change));
  }

  async #perform(todo: Act) {
    const { process, call } = this.#connect('ann');
    await this.#wait(process, todo.after);
    if (!('payoutId' in todo)) {
      await call<unknown>(todo.kind, '', async () => {
        this.#isPaused = todo.kind === 'pause';
        return this.#isPaused ? this.#rig.pause('ann wants it') : this.#rig.resume();
      });
    } else {
      const { payoutId: id } = todo;
      const move = async (from: PayoutState, to: PayoutState, txhash?: string) =>
        this.#change(call, { payoutId: id, from, to, ...BY, ...(txhash && { txhash }) });
      if (todo.kind === 'cancel') await move('queued', 'cancelled');
      else if (!('as' in todo)) {
        if (await this.#seeIn('rejected', id, call)) await move('rejected', 'queued');
      } else if (await this.#seeIn('unknown', id, call)) {
        if (todo.as === 'written off') await move('unknown', 'cancelled');
        else if (todo.as === 'the truth') await this.#tellTruth(id, process, call, move);
        else if ((await move('unknown', 'queued')) === 'done') this.#unchecked.push(id);
      }
    }
    this.#actsLeft -= 1;
  }

  async #tellTruth(
    id: string,
    process: WorldProcess,
    call: LedgerCall,
    move: (from: PayoutState, to: PayoutState, txhash?: string) => Promise<unknown>,
  ) {
    const before = await this.#look(id, call);
    await process.sleep(SETTINGS.guardMs + SETTINGS.inFlightMaxMs + 1);
    const now = await this.#look(id, call);
    if (now?.state !== 'unknown' || now.attempt !== before?.attempt) return;
    const { to, txhash } = truthfulResolution(this.#paymentsTo(now.addressTo)[0]);
    await move('unknown', to, txhash);
  }

  async #look(id: string, call: LedgerCall): Promise<Payout | undefined> {
    return call(`look at ${id}`, '', async () => this.#rig.ledger.readPayout(id));
  }

  async #seeIn(state: PayoutState, id: string, call: LedgerCall) {
    for (let look = 0; look < OPERATOR_LOOKS; look += 1) {
      if ((await this.#look(id, call))?.state === state) return true;
    }
    return false;
  }

  #findFaults({ payoutId: id, addressTo, state, txhash, history }: Payout) {
    const payments = this.#paymentsTo(addressTo);
    const lies = this.#unchecked.filter((unchecked) => unchecked === id).length;
    const faults: string[] = [];
    if (payments.length > 1 + lies) faults.push(`twice: ${id} was paid by ${payments.join(', ')}`);
    if (state === 'sending') faults.push(`lost: ${id} is sending, and nobody sends it`);
    const follows = ['in_progress', 'completed', 'failed'].includes(state);
    if (follows && !payments.includes(txhash ?? '')) faults.push(`lost: ${id} is ${state}, but was never paid`);
    const isDecided = state === 'unknown' || lies > 0 || history.at(-1)?.from === 'unknown';
    if (!follows && !isDecided && payments.length > 0) faults.push(`lost: ${id} is ${state}, but was paid`);
    for (const [index, { from, to }] of history.slice(1).entries()) {
      const before = history[index]?.to;
      if (from !== before || !TRANSITIONS.some((one) => one.from === from && one.to === to)) {
        faults.push(`history: ${id} went from ${String(before)} (${String(from)}) to ${to}`);
      }
    }
    return faults;
  }
}

import fc from 'fast-check';
import { ConflictError } from '../../../src/base/errors.js';
import { silentLogger } from '../../../src/base/logger.js';
import type { PaymentStatus } from '../../../src/gateway/gateway.js';
import type { StateChange } from '../../../src/ledger/payout-ledger.js';
import type { Payout } from '../../../src/ledger/payout.js';
import type { BeginResult, FinishResult, SenderLedger } from '../../../src/ledger/sender-ledger.js';
import { type PayoutState, TRANSITIONS } from '../../../src/ledger/states.js';
import { pollPayout } from '../../../src/worker/poll-payout.js';
import { Random } from '../../doubles/random.js';
import { takeLease } from '../../ledger/contract/ledger-rig.js';
import type { AccountRig, ChangeOutcome } from '../../ledger/support/redis-rig.js';
import {
  ALWAYS_UP,
  connectLedger,
  type Fate,
  type GatewayBook,
  type LedgerCall,
  linkGateway,
  linkLedger,
  openGateway,
} from '../../world/links.js';
import { makeWorker, type Pieces, soundPieces, truthfulResolution, type WorldWorker } from '../../world/worker.js';
import { WorldLedger } from '../../world/world-ledger.js';
import { makeWorldRig } from '../../world/world-rig.js';
import { describeStep, type PendingStep, type Progress, TIMES, World, WorldProcess } from '../../world/world.js';
import { JournalFile, JournalLink } from '../simulation/journal-file.js';
import { NO_FAULTS } from '../simulation/plan.js';
import { comparePayment } from '../../../src/gateway/compare-payment.js';

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

  async turn(process: WorldProcess) {
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
  | Readonly<{ kind: 'resolve'; payoutId: string; as: 'the truth' | 'written off' | 'not sent, unchecked' }>
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
  ...{ inFlightMaxMs: 500, resendsForMs: 0, withdrawTimeoutMs: 400, commandTimeoutMs: 1_000 },
};
const PLAN = { settings: SETTINGS, faults: NO_FAULTS };
const STEPS_MAX = 600;
const LOOK_EVERY = 60;
const OPERATOR_LOOKS = 25;
const BY = { by: 'ann', reason: 'looked it up' };

export interface OrderingsOptions {
  readonly makeRig: () => AccountRig;
  readonly pieces?: Partial<Pieces>;
}

/** Orderings in which next to nothing is sent would prove nothing. */
interface OrderingsCounts {
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
      await runOrdering(plan, order, rig, { ...soundPieces, ...pieces }, counts);
    } finally {
      await rig.close();
    }
  });
}

async function runOrdering(plan: RacePlan, order: number, rig: AccountRig, pieces: Pieces, counts: OrderingsCounts) {
  const { ledger } = rig;
  const payoutIds = ['p1', 'p2', 'p3'].slice(0, plan.payouts);
  const workers: WorldWorker[] = [];
  const processes: WorldProcess[] = [];
  const payments = new Map<string, string[]>();
  const unchecked: string[] = [];
  const seen = { writes: 0, asked: 0, replies: 0, ownSteps: 0, tokens: 0, begun: 0 };
  const file = new JournalFile('j-one');
  let isPaused = false;
  let actsLeft = plan.acts.length;

  const world = new RandomWorld(order, ({ kind, process, isDelivered }) => {
    if (process?.name === 'A' && isDelivered === true && (seen.ownSteps += 1) === plan.killedAt) return 'crash';
    if (kind !== 'reply' || process?.name === 'ann') return undefined;
    return plan.lostReplies.includes((seen.replies += 1)) ? 'lose' : undefined;
  });
  const paymentsTo = (wallet: string) => payments.get(wallet) ?? [];
  const book: GatewayBook = openGateway(world, () => true, {
    paid: ({ addressTo }) => payments.set(addressTo, [...paymentsTo(addressTo), `tx-${book.arrivals}`]),
  });

  const readPayouts = async () => {
    const found = await Promise.all(payoutIds.map(async (id) => ledger.readPayout(id)));
    return found.filter((payout) => payout !== undefined);
  };
  const idsIn = async (...states: readonly PayoutState[]) =>
    (await readPayouts()).filter(({ state }) => states.includes(state)).map((payout) => payout.payoutId);

  const connect = (name: string) => {
    const process = new WorldProcess({ world, name });
    processes.push(process);
    return { process, call: connectLedger({ process, plan: PLAN, redis: ALWAYS_UP }) };
  };
  const wait = async (process: WorldProcess, turns: number) => {
    for (let turn = 0; turn < turns; turn += 1) await world.turn(process);
  };

  const noteBegun = async () => {
    seen.begun += 1;
    const sending = await idsIn('sending');
    if (isPaused) world.fail(`not stopped: ${sending.join()} began although the account was paused`);
    if (sending.length > 1) world.fail(`two at a time: ${sending.join()}`);
  };
  const watch: LedgerCall = async (name, _, run) => {
    const reply = await run();
    if (name === 'beginSend' && (reply as BeginResult).kind === 'begun') await noteBegun();
    if (name === 'finishSend' && (reply as FinishResult).pausedReason !== undefined) isPaused = true;
    // All workers have one journal, and the ledger forgets nothing: they always agree.
    if (name === 'object') world.fail('false alarm: a worker objects');
    return reply;
  };
  const watched = linkLedger(ledger, watch);
  const watchedLedger: SenderLedger = {
    ...watched,
    // The worst may be stated of a payout without a response, at any time. Truthful operators wait on their own.
    finishSend: async (attempt, result, rule) => watched.finishSend(attempt, result, rule, 0),
    markSendsUnknown: async (lease, attempts, reason) => watched.markSendsUnknown(lease, attempts, reason, 0),
  };

  const change = async (call: LedgerCall, asked: StateChange) => {
    const { payoutId: id, from, to, gatewayId = '' } = asked;
    return call(`change ${id} from ${from} to ${to} ${gatewayId}`, '', async () => rig.change(asked));
  };
  const look = async (id: string, call: LedgerCall) => call(`look at ${id}`, '', async () => ledger.readPayout(id));

  const poll = async (process: WorldProcess, call: LedgerCall) => {
    const polled = {
      get: async (id: string) => look(id, call),
      oweReceipt: async () => Promise.resolve(),
      change: async (asked: StateChange) => {
        const outcome = await change(call, asked);
        if (outcome !== 'done') throw new ConflictError(outcome, []);
      },
    };
    const getStatus = async (gatewayId: string): Promise<PaymentStatus> => {
      await process.takeMs(1, `status of ${gatewayId}`);
      return { kind: plan.statuses[seen.asked++] ?? 'paid', fee: '0.1' };
    };
    while (!process.isDead) {
      for (const id of await call('in_progress', '', async () => idsIn('in_progress')).catch(() => [])) {
        await pollPayout(id, polled, { getStatus, comparePayment }, silentLogger).catch(() => undefined);
      }
      await process.sleep(1_000);
    }
  };

  const start = (name: string) => {
    const { process, call } = connect(name);
    const ledgerOfRun = ledger instanceof WorldLedger ? ledger : makeWorldRig().ledger;
    const drawFate = () => plan.fates[seen.writes++] ?? 'paid';
    const worker = makeWorker({
      ...{ process, settings: SETTINGS, pieces, ledgerOfRun, dir: '/journal' },
      ledger: {
        ...linkLedger(watchedLedger, call),
        queued: async () => call('queued', '', async () => idsIn('queued')),
      },
      gateway: linkGateway({ process, plan: PLAN, book, lingerMs: 1, drawFate }),
      journal: new JournalLink({ process, plan: PLAN, file, ledger: ledgerOfRun }),
      nextToken: () => `t${(seen.tokens += 1)}`,
    });
    void worker.run();
    workers.push(worker);
    void poll(process, call);
  };

  const seeIn = async (state: PayoutState, id: string, call: LedgerCall) => {
    for (let looks = 0; looks < OPERATOR_LOOKS; looks += 1) {
      if ((await look(id, call))?.state === state) return true;
    }
    return false;
  };

  type Move = (from: PayoutState, to: PayoutState, gatewayId?: string) => Promise<ChangeOutcome>;
  const tellTruth = async (id: string, process: WorldProcess, call: LedgerCall, move: Move) => {
    const before = await look(id, call);
    await process.sleep(SETTINGS.guardMs + SETTINGS.inFlightMaxMs + 1);
    const now = await look(id, call);
    if (now?.state !== 'unknown' || now.attempt !== before?.attempt) return;
    const { to, gatewayId } = truthfulResolution(paymentsTo(now.addressTo)[0]);
    await move('unknown', to, gatewayId);
  };

  const perform = async (todo: Act) => {
    const { process, call } = connect('ann');
    await wait(process, todo.after);
    if (!('payoutId' in todo)) {
      await call<unknown>(todo.kind, '', async () => {
        isPaused = todo.kind === 'pause';
        return isPaused ? rig.pause('ann wants it') : rig.resume();
      });
    } else {
      const { payoutId: id } = todo;
      const move: Move = async (from, to, gatewayId) =>
        change(call, { payoutId: id, from, to, ...BY, ...(gatewayId && { gatewayId }) });
      if (todo.kind === 'cancel') await move('queued', 'cancelled');
      else if (!('as' in todo)) {
        if (await seeIn('rejected', id, call)) await move('rejected', 'queued');
      } else if (await seeIn('unknown', id, call)) {
        if (todo.as === 'written off') await move('unknown', 'written_off');
        else if (todo.as === 'the truth') await tellTruth(id, process, call, move);
        else if ((await move('unknown', 'queued')) === 'done') unchecked.push(id);
      }
    }
    actsLeft -= 1;
  };

  const findFaults = ({ payoutId: id, addressTo, state, gatewayId, history }: Payout) => {
    const paid = paymentsTo(addressTo);
    const lies = unchecked.filter((each) => each === id).length;
    const faults: string[] = [];
    if (paid.length > 1 + lies) faults.push(`twice: ${id} was paid by ${paid.join(', ')}`);
    if (state === 'sending') faults.push(`lost: ${id} is sending, and nobody sends it`);
    const follows = ['in_progress', 'completed', 'failed'].includes(state);
    if (follows && !paid.includes(gatewayId ?? '')) faults.push(`lost: ${id} is ${state}, but was never paid`);
    const isDecided = state === 'unknown' || lies > 0 || history.at(-1)?.from === 'unknown';
    if (!follows && !isDecided && paid.length > 0) faults.push(`lost: ${id} is ${state}, but was paid`);
    for (const [index, { from, to }] of history.slice(1).entries()) {
      const before = history[index]?.to;
      if (from !== before || !TRANSITIONS.some((one) => one.from === from && one.to === to)) {
        faults.push(`history: ${id} went from ${String(before)} (${String(from)}) to ${to}`);
      }
    }
    return faults;
  };

  for (const id of payoutIds) await rig.enqueue(id);
  await ledger.releaseLease(await takeLease(ledger, 'earlier'));
  start('A');
  if (plan.secondWorkerAfter !== undefined) {
    void wait(connect('starter').process, plan.secondWorkerAfter).then(() => {
      start('B');
    });
  }
  for (const each of plan.acts) {
    perform(each).catch((error: unknown) => {
      world.fail(`${each.kind} failed: ${String(error)}`);
    });
  }
  const isSettled = async () => actsLeft === 0 && (await idsIn('queued', 'sending', 'in_progress')).length === 0;
  do {
    world.limit += LOOK_EVERY;
    await world.run();
  } while (world.limit < STEPS_MAX && world.failure === undefined && !(await isSettled()));
  for (const { mismatch } of workers) if (mismatch !== undefined) world.fail(`false alarm: ${mismatch}`);
  // Whatever is on its way must do no harm either.
  for (const process of processes) process.isDead = true;
  for (const worker of workers) worker.stop();
  world.limit = Infinity;
  await world.run();
  // The next worker starts, and finds what the others have left.
  await ledger.markSendsUnknown(await takeLease(ledger, 'Z'), await ledger.readSending(), 'left behind', 0);
  const payouts = await readPayouts();
  for (const fault of payouts.flatMap(findFaults)) world.fail(fault);
  if (payouts.length !== plan.payouts) world.fail('lost: a payout is gone');
  if (world.failure !== undefined) throw new Error(`${world.failure}\n${(world.trace ?? []).join('\n')}\n`);
  counts.begun += seen.begun;
  counts.paid += [...payments.values()].flat().length;
}

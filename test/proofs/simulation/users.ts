import { ConflictError, RedisUnavailableError } from '../../../src/base/errors.js';
import type { StateChange } from '../../../src/ledger/payout-ledger.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { findStale } from '../../../src/cli/bulk/resolve-many.js';
import { adviseAccount } from '../../../src/operator/account-advice.js';
import {
  carryOutAdoption,
  isComplete,
  planAdoption,
  UNWITNESSED,
  type AdoptionLedger,
} from '../../../src/operator/adoption.js';
import { comparePayment } from '../../../src/gateway/compare-payment.js';
import { orderIdOf, readAttempts } from '../../../src/ledger/order-id.js';
import { UNSENT_STATES } from '../../../src/ledger/states.js';
import { truthfulResolution, newPayout, walletOf } from '../../world/worker.js';
import type { WorldLedger } from '../../world/world-ledger.js';
import type { World } from '../../world/world.js';
import type { JournalFile } from './journal-file.js';
import type { SimControl } from './signed/control.js';
import type { Simulation } from './simulation.js';

const BY = { by: 'ann', reason: 'looked it up' };
const RELEASES = 2;
/** More often than the operator, who would settle the payout first. */
const LOOKS_EVERY_MS = 500;

/** The application, which asks for its payouts again until the ledger has them, and the operators, who tell the truth. */
export function openUsers(run: Simulation) {
  const { world, plan, redis, pieces, policy, control, book } = run;
  const { ledger } = redis;
  const signed = control && openSignedUsers(run, control);
  const wanted: string[] = [];
  const retries = new Map<string, number>();
  const operator = {
    ...{ world, ledger, adoptsWithoutProof: pieces.adoptsWithoutProof },
    folders: () => run.hosts.all,
    refuses: () => redis.refuses,
    hasAllPayouts: () => wanted.every((payoutId) => ledger.stateOf(payoutId) !== undefined),
    signResume: control && (() => control.resumeAct()),
  };

  const enqueue = () => {
    if (redis.refuses) return;
    for (const payoutId of wanted) {
      if (signed !== undefined) signed.enqueue(payoutId);
      else if (!ledger.isComplete(payoutId)) ledger.enqueue(policy?.payout(payoutId) ?? newPayout(payoutId));
      policy?.judge.seen(walletOf(payoutId));
    }
  };

  const change = async (payout: Payout, { to, ...rest }: Pick<StateChange, 'to' | 'gatewayId'>) => {
    if (to === 'queued' && signed?.mayStateUnsent(payout) === false) return 'in_flight';
    const act = to === 'queued' ? control?.resendAct(payout) : undefined;
    return move(run, payout, { to, ...rest, ...(act && { act }) });
  };

  /** `payouts gateway find`: what it finds is the payment of this payout, or nothing. */
  const lookUp = async (payout: Payout) => {
    for (const attempt of await readAttempts(ledger.connection, payout.payoutId)) {
      const found = book.findPayment(orderIdOf(attempt));
      if (found === undefined) continue;
      if (comparePayment(found, payout).length === 0) {
        world.situations.meet('a payment is found by its order id');
        return found.gatewayId;
      }
      if (!book.dialect.isMistaken) world.fail(`mistaken: an order id of ${payout.payoutId} is ${found.addressTo}`);
    }
    return undefined;
  };

  const decideUnknown = async (payout: Payout) => {
    const resolution = truthfulResolution((await lookUp(payout)) ?? book.paymentTo(walletOf(payout.payoutId)));
    const refusal = await change(payout, resolution);
    // A colleague has the same finding in a file. While the request was on its way it was none.
    if (resolution.to === 'queued' && refusal !== 'in_flight' && world.fault(0.3))
      stateFromFile(payout, world.now + world.random.between(1_000, 120_000));
  };

  /** The colleague looks again and again, and states it as soon as the payout is unknown once more, and may be stated. */
  const stateFromFile = (then: Payout, until: number) => {
    world.after(LOOKS_EVERY_MS, () => {
      const now = redis.refuses ? undefined : ledger.payout(then.payoutId);
      if (now?.state === 'unknown' && now.attempt > then.attempt) void stateAsWritten(then, now, until);
      else if (world.now < until) stateFromFile(then, until);
    });
  };

  const stateAsWritten = async (then: Payout, now: Payout, until: number) => {
    const { payoutId, attempt, updatedAt } = then;
    if (!pieces.statesAnyAttempt && findStale({ payoutId, attempt, since: Date.parse(updatedAt) }, now) !== undefined) {
      world.situations.meet('a statement about an earlier attempt is refused');
      return;
    }
    const refusal = await change(pieces.statesAnyAttempt ? now : then, { to: 'queued' });
    if (refusal === 'in_flight' && world.now < until) stateFromFile(then, until);
  };

  const retry = async (payout: Payout) => {
    const times = retries.get(payout.payoutId) ?? 0;
    if (times < 2) await change(payout, { to: 'queued' });
    retries.set(payout.payoutId, times + 1);
  };

  const decide = async () => {
    await signed?.endKeptPause();
    await signed?.endUnadopted();
    for (const payout of ledger.payouts()) {
      const { state, held } = payout;
      if (state === 'held' || state === 'queued') await policy?.decide(ledger, payout);
      const isForPeople = held?.kind === 'policy' || held?.kind === 'rejection';
      if (held?.reason === 'ended_before') await change(payout, { to: 'cancelled' });
      else if (state === 'held' && !isForPeople) await signed?.decideHeld(payout);
      // That it was not paid is true at that moment; that it cannot be paid any more, the ledger has to ensure.
      if (state === 'unknown' && !book.isStandingStill && world.fault(0.7)) await decideUnknown(payout);
      if (state === 'rejected' && world.fault(0.5)) await retry(payout);
      if (state === 'queued' && plan.operatorCancels && world.fault(0.05)) await change(payout, { to: 'cancelled' });
    }
    if (world.fault(0.02)) await ledger.pause('ann wants it');
  };

  const check = async () => {
    if (redis.refuses) return;
    // First of all: what the application misses must be there before sends are given up that no journal has.
    enqueue();
    if (world.random.chance(world.faultsOn ? 0.5 : 1)) await endStop(operator, run.hosts.refusing);
    await decide();
  };

  const checkAgain = () => {
    world.after(world.random.between(1_000, 10_000), () => {
      const noteAttacked = (error: Error) => {
        if (!run.isAttacked) throw error;
        world.note(() => `operator: ${error.message}`);
      };
      void check().catch(noteAttacked).then(checkAgain);
    });
  };

  for (let number = 1; number <= plan.payouts; number += 1) {
    world.after(world.random.between(0, plan.enqueueWithinMs), () => {
      wanted.push(policy?.nameOf(number) ?? `p${number}`);
      enqueue();
    });
  }
  checkAgain();

  return {
    get isDrained() {
      if (wanted.length < plan.payouts || run.hosts.refusing.length > 0 || ledger.isObjectedTo) return false;
      const open = signed === undefined && policy === undefined ? ['queued', 'sending'] : ['queued', 'sending', 'held'];
      return wanted.every((payoutId) => !open.includes(ledger.stateOf(payoutId) ?? 'queued'));
    },
  };
}

async function move(
  { world, redis }: Pick<Simulation, 'world' | 'redis'>,
  { payoutId, state: from, attempt }: Payout,
  change: Pick<StateChange, 'to' | 'gatewayId' | 'act'>,
) {
  const isStatement = from === 'unknown' && change.to === 'queued';
  const stated = { payoutId, from, ...(isStatement && { attempt }), ...change, ...BY };
  const rejection = await redis.ledger.change(stated);
  world.note(() => `operator: ${payoutId} ${from} → ${change.to} ${rejection?.kind ?? ''}`);
  return rejection?.kind;
}

export type SignedRun = Pick<Simulation, 'world' | 'pieces' | 'redis' | 'book' | 'hosts'>;

/** What signatures add: who signs, and who deals with what is held as its message says. */
export function openSignedUsers(run: SignedRun, control: SimControl) {
  const { world, pieces, redis, book } = run;
  const { ledger } = redis;
  const releases = new Map<string, number>();
  const isPaid = (payoutId: string) => book.paymentTo(walletOf(payoutId)) !== undefined;

  const renew = (payoutId: string) => {
    world.note(() => `application: signs ${payoutId} again`);
    ledger.enqueue(control.renew(payoutId));
    if (ledger.stateOf(payoutId) === 'queued') world.situations.meet('a payout is renewed');
    // Its data were altered: the same data cannot be enqueued again.
    else releases.set(payoutId, RELEASES);
  };

  const release = async (payout: Payout) => {
    releases.set(payout.payoutId, (releases.get(payout.payoutId) ?? 0) + 1);
    world.situations.meet('a payout is released');
    await move(run, payout, { to: 'queued' });
  };

  const declareComplete = () => {
    const files = run.hosts.all.map(({ file }) => file);
    if (!files.every((file) => control.book.isComplete(file.lines))) return false;
    world.situations.meet('a journal is declared complete');
    for (const file of files) file.declareComplete(world.wallNow());
    return true;
  };

  return {
    enqueue(payoutId: string) {
      if (ledger.payout(payoutId)?.signed === undefined) ledger.enqueue(control.payout(payoutId));
    },

    /** The operator asks the gateway, and does not take Redis's word for how long a request may be on its way. */
    mayStateUnsent: ({ payoutId }: Payout) =>
      pieces.signsInDoubt || !(isPaid(payoutId) || control.book.mayArrive(payoutId)),

    async endKeptPause() {
      if (ledger.pausedReason !== undefined || !run.hosts.all.some(({ file }) => file.isPaused)) return;
      world.note(() => 'operator: payouts resume --key, for a pause that a worker keeps');
      await ledger.resume(control.resumeAct());
    },

    async endUnadopted() {
      if (ledger.isObjectedTo || !run.hosts.isUnadopted) return;
      world.situations.meet('a worker waits: payouts are older than its journal');
      if ((world.faultsOn && control.random.chance(0.5)) || declareComplete()) return;
      // Where that is not true: what another host may have sent is signed again, or given up.
      for (const payout of ledger.payouts()) {
        const { payoutId, state, attempt, held } = payout;
        const waits = state === 'queued' || (state === 'held' && held?.kind === 'policy');
        if (!waits || control.book.mayArrive(payoutId)) continue;
        if (!isPaid(payoutId) && attempt === 0) renew(payoutId);
        else await move(run, payout, { to: 'cancelled' });
      }
    },

    async decideHeld(payout: Payout) {
      const { payoutId, attempt, held } = payout;
      // An objection comes first: until it ends, the ledger may have forgotten a payment.
      if (ledger.isObjectedTo || control.book.mayArrive(payoutId)) return;
      if (world.faultsOn && control.random.chance(0.5)) return;
      const paid = isPaid(payoutId);
      if (held?.reason === 'before_birth' && declareComplete()) await release(payout);
      else if (!paid && attempt === 0 && held?.reason !== 'sent_before') renew(payoutId);
      else if (!paid && (releases.get(payoutId) ?? 0) < RELEASES) await release(payout);
      else await move(run, payout, { to: 'cancelled' });
    },
  };
}

export type JournalFolder = Readonly<{ dir: string; file: JournalFile }>;

type OperatorOptions = Readonly<{
  world: World;
  ledger: WorldLedger;
  folders: () => readonly JournalFolder[];
  adoptsWithoutProof: boolean;
  refuses?: () => boolean;
  hasAllPayouts?: () => boolean;
  signResume?: (() => string) | undefined;
}>;

/** An operator runs the commands that `payouts stats` shows, word for word, and does what their errors say. */
export async function endStop(options: OperatorOptions, refusing: readonly string[]) {
  const { ledger, world } = options;
  const { pausedReason = null, ...view } = await ledger.readSender();
  const [advice] = adviseAccount({ ...view, platformId: 1, paused: pausedReason !== null, pausedReason });
  // A worker may refuse before its objection is recorded: its log says what to run.
  const log = refusing.flatMap((dir) => ['--journal', dir]).join(' ');
  const command = advice?.command ?? (log === '' ? undefined : `payouts adopt-ledger ${log} --reason WHY`);
  if (command === undefined) return;
  world.note(() => `operator: ${command}`);
  try {
    await runCommand(options, command);
  } catch (error) {
    if (!(error instanceof RedisUnavailableError || error instanceof ConflictError)) throw error;
    world.note(() => `operator: ${error.message}`);
  }
}

async function runCommand(options: OperatorOptions, command: string) {
  const { ledger, world, signResume } = options;
  const [program, verb, ...words] = command.split(' ');
  const valuesOf = (option: string) => words.filter((_, index) => words[index - 1] === option);
  if (program === 'payouts' && verb === 'adopt-ledger') {
    await adopt(options, valuesOf('--journal'), valuesOf('--give-up'));
  } else if (program === 'payouts' && verb === 'resume') {
    const resumed = await ledger.resume(signResume?.(), valuesOf('--of')[0]);
    world.note(() => `operator: resume ${String(resumed)}`);
  } else throw new Error(`no operator can run ${command}`);
}

async function adopt(options: OperatorOptions, dirs: readonly string[], giveUp: readonly string[]) {
  const { world } = options;
  const folders = options.folders();
  const read = folders.filter(({ dir }) => dirs.includes(dir));
  const journals = read.map(({ dir, file }) => file.toAdoptable({ host: dir, dir }));
  const ledger = interruptible(options);
  const plan = await planAdoption(ledger, journals, giveUp);
  if (plan.reasons.length === 0) {
    world.note(() => 'operator: there is nothing to adopt');
  } else if (!isComplete(plan) && !options.adoptsWithoutProof) {
    world.note(() => `operator: lacking ${JSON.stringify([plan.unread, plan.unwitnessed])}`);
    const isReadable = ({ journalId, dir }: { journalId: string; dir: string }) =>
      !dirs.includes(dir) && folders.some((folder) => folder.dir === dir && folder.file.journalId === journalId);
    const readable = plan.unread.filter(isReadable);
    const lost = plan.unread.filter((journal) => !isReadable(journal));
    const more = plan.unwitnessed.length > 0 && readable.length === 0 ? [UNWITNESSED] : [];
    const givenUp = [...giveUp, ...lost.map(({ journalId }) => journalId), ...more];
    await adopt(options, [...dirs, ...readable.map(({ dir }) => dir)], givenUp);
  } else if (plan.holdsSendable && options.hasAllPayouts?.() === false) {
    // The command says how many payouts it makes unknown: the operator compares that with what the application has open.
    world.note(() => 'operator: the ledger lacks payouts of the application, which have to be enqueued first');
  } else {
    const adoption = await carryOutAdoption(ledger, journals, plan, { actor: BY, at: 0 });
    world.situations?.meet(giveUp.length > 0 ? 'a ledger is adopted, and a journal given up' : 'a ledger is adopted');
    world.note(() => `operator: adopted ${JSON.stringify({ ...adoption, giveUp })}`);
    if (adoption.putBack.length > 0) world.situations?.meet('an adoption ends a payout again');
    if (options.ledger.ofSender('last') === adoption.token) checkEnded(options, read);
  }
}

/** What a journal has as cancelled or written off must not be sent from the adopted ledger. */
function checkEnded({ world, ledger }: OperatorOptions, read: readonly JournalFolder[]) {
  const lines = read.flatMap(({ file }) => file.lines);
  for (const { payoutId } of lines.flatMap((line) => ('acts' in line ? line.acts.ended : []))) {
    const state = ledger.stateOf(payoutId);
    if (state !== undefined && UNSENT_STATES.includes(state))
      world.fail(`revived: ${payoutId} was ended by a person, and is ${state} after an adoption`);
  }
}

function interruptible({ world, ledger, refuses }: OperatorOptions) {
  const call =
    (name: keyof AdoptionLedger) =>
    async (...args: never[]): Promise<unknown> => {
      await new Promise<void>((resolve) => {
        world.after(world.random.between(0.1, 20), resolve, { kind: 'timeout', label: 'operator' });
      });
      if (refuses?.() === true || world.fault(0.02)) throw new RedisUnavailableError('the command was interrupted');
      return (ledger[name] as (...given: never[]) => Promise<unknown>).apply(ledger, args);
    };
  const names = [
    ...(['readSender', 'findForgottenSends', 'object', 'adoptSends', 'countSendable', 'holdSendable'] as const),
    'putBackEnded' as const,
    ...(['readBookmark', 'adoptLedger'] as const),
  ];
  return Object.fromEntries(names.map((name) => [name, call(name)])) as unknown as AdoptionLedger;
}

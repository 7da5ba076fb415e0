import { ConflictError, RedisUnavailableError } from '../../../src/base/errors.js';
import type { StateChange } from '../../../src/ledger/payout-ledger.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { adviseAccount } from '../../../src/operator/account-advice.js';
import {
  carryOutAdoption,
  isComplete,
  planAdoption,
  UNWITNESSED,
  type AdoptionLedger,
} from '../../../src/operator/adoption.js';
import { truthfulResolution, newPayout, walletOf } from '../../world/worker.js';
import type { WorldLedger } from '../../world/world-ledger.js';
import type { World } from '../../world/world.js';
import type { JournalFile } from './journal-file.js';
import type { SimControl } from './signed/control.js';
import type { Simulation } from './simulation.js';

const BY = { by: 'ann', reason: 'looked it up' };

/**
 * The application, which asks for its payouts again until the ledger has them, and the operators, who see what the gateway
 * really did, report it truthfully, and run the commands that they are shown.
 */
export class SimUsers {
  readonly #run: Simulation;
  readonly #signed: SignedUsers | undefined;
  readonly #operator: SimOperator;
  readonly #wanted: string[] = [];
  readonly #retries = new Map<string, number>();

  constructor(run: Simulation, signed: SignedUsers | undefined) {
    this.#run = run;
    this.#signed = signed;
    const { world, plan, redis, pieces } = run;
    this.#operator = new SimOperator({
      world,
      ledger: redis.ledger,
      inFlightMaxMs: plan.settings.inFlightMaxMs,
      folders: () => run.hosts.all,
      refuses: () => redis.refuses,
      hasAllPayouts: () => this.#wanted.every((payoutId) => this.#ledger.stateOf(payoutId) !== undefined),
      adoptsWithoutProof: pieces.adoptsWithoutProof,
      signResume: signed?.signResume,
    });
    for (let number = 1; number <= plan.payouts; number += 1) {
      world.after(world.random.between(0, plan.enqueueWithinMs), () => {
        this.#wanted.push(run.policy?.nameOf(number) ?? `p${number}`);
        this.#enqueue();
      });
    }
    this.#checkAgain();
  }

  get #ledger(): WorldLedger {
    return this.#run.redis.ledger;
  }

  /** Every payout that was to be paid is known, is neither to be sent nor being sent, and nobody objects to the ledger. */
  get isDrained(): boolean {
    const { plan, hosts, policy } = this.#run;
    if (this.#wanted.length < plan.payouts || hosts.refusing.length > 0 || this.#ledger.isObjectedTo) return false;
    const mayBeHeld = this.#signed === undefined && policy === undefined;
    return this.#wanted.every((payoutId) => {
      const state = this.#ledger.stateOf(payoutId);
      return state !== undefined && state !== 'queued' && state !== 'sending' && (mayBeHeld || state !== 'held');
    });
  }

  #checkAgain() {
    const { world } = this.#run;
    world.after(world.random.between(1_000, 10_000), () => {
      void this.#checkSafely().then(() => {
        this.#checkAgain();
      });
    });
  }

  async #checkSafely() {
    try {
      await this.#check();
    } catch (error) {
      if (!this.#run.isAttacked) throw error;
      this.#run.world.note(() => `operator: ${(error as Error).message}`);
    }
  }

  async #check() {
    const { world, redis, hosts } = this.#run;
    if (redis.refuses) return;
    // First of all: what the application misses must be there before sends are given up that no journal has.
    this.#enqueue();
    if (world.random.chance(world.faultsOn ? 0.5 : 1)) await this.#operator.endStop(hosts.refusing);
    await this.#decide();
  }

  #enqueue() {
    const { redis, policy } = this.#run;
    if (redis.refuses) return;
    for (const payoutId of this.#wanted) {
      if (this.#signed !== undefined) this.#signed.enqueue(payoutId);
      else if (!this.#ledger.isComplete(payoutId)) {
        this.#ledger.enqueue(policy?.payout(payoutId) ?? newPayout(payoutId));
      }
      policy?.enqueued(payoutId);
    }
  }

  async #decide() {
    const { world, plan, policy } = this.#run;
    const signed = this.#signed;
    await signed?.endKeptPause();
    await signed?.endUnadopted();
    for (const payout of this.#ledger.payouts()) {
      const { state, held } = payout;
      if (state === 'held' || state === 'queued') await policy?.decide(this.#ledger, payout);
      if (state === 'held' && held?.kind !== 'policy') await signed?.decideHeld(payout);
      if (state === 'unknown' && world.fault(0.7)) await this.#resolve(payout);
      if (state === 'rejected' && world.fault(0.5)) await this.#retry(payout);
      if (state === 'queued' && plan.operatorCancels && world.fault(0.05))
        await this.#change(payout, { to: 'cancelled' });
    }
    if (world.fault(0.02)) await this.#ledger.pause('ann wants it');
  }

  /** That it was not paid is true at that moment; that it cannot be paid any more, the ledger has to ensure. */
  async #resolve(payout: Payout) {
    await this.#change(payout, truthfulResolution(this.#run.book.paymentTo(walletOf(payout.payoutId))));
  }

  async #retry(payout: Payout) {
    const retries = this.#retries.get(payout.payoutId) ?? 0;
    if (retries < 2) await this.#change(payout, { to: 'queued' });
    this.#retries.set(payout.payoutId, retries + 1);
  }

  async #change(payout: Payout, change: Pick<StateChange, 'to' | 'txhash'>) {
    const { payoutId, state: from } = payout;
    if (change.to === 'queued' && this.#signed?.mayStateUnsent(payout) === false) return;
    const act = change.to === 'queued' ? this.#signed?.signResend(payout) : undefined;
    const rejection = await this.#ledger.change({ payoutId, from, ...change, ...(act && { act }), ...BY });
    this.#run.world.note(() => `operator: ${payoutId} ${from} → ${change.to} ${rejection?.kind ?? ''}`);
  }
}

const RELEASES = 2;

export type SignedRun = Pick<Simulation, 'world' | 'pieces' | 'redis' | 'book' | 'hosts'>;

/** What signatures add to the application and the operators: they sign, and they deal with what is held as its message says. */
export class SignedUsers {
  readonly #run: SignedRun;
  readonly #control: SimControl;
  readonly #releases = new Map<string, number>();

  constructor(run: SignedRun, control: SimControl) {
    this.#run = run;
    this.#control = control;
  }

  get #ledger(): WorldLedger {
    return this.#run.redis.ledger;
  }

  readonly signResume = () => this.#control.resumeAct();

  enqueue(payoutId: string): void {
    const payout = this.#ledger.payout(payoutId);
    if (payout?.signed === undefined) this.#ledger.enqueue(this.#control.payout(payoutId));
  }

  signResend(payout: Payout): string | undefined {
    return this.#control.resendAct(payout);
  }

  /** The operator asks the gateway, and does not take Redis's word for how long a request may be on its way. */
  mayStateUnsent({ payoutId }: Payout): boolean {
    return this.#run.pieces.signsInDoubt || !(this.#isPaid(payoutId) || this.#control.book.mayArrive(payoutId));
  }

  async endKeptPause(): Promise<void> {
    const { hosts, world } = this.#run;
    if (this.#ledger.pausedReason !== undefined || !hosts.all.some(({ file }) => file.isPaused)) return;
    world.note(() => 'operator: payouts resume --key, for a pause that a worker keeps');
    await this.#ledger.resume(this.#control.resumeAct());
  }

  async endUnadopted(): Promise<void> {
    const { hosts, world } = this.#run;
    const control = this.#control;
    if (this.#ledger.isObjectedTo || !hosts.isUnadopted) return;
    world.situations.meet('a worker waits: payouts are older than its journal');
    if (world.faultsOn && control.random.chance(0.5)) return;
    if (this.#declareComplete()) return;
    // Where that is not true: what another host may have sent is signed again, or given up.
    for (const payout of this.#ledger.payouts()) {
      const { payoutId, state, attempt, held } = payout;
      const waits = state === 'queued' || (state === 'held' && held?.kind === 'policy');
      if (!waits || control.book.mayArrive(payoutId)) continue;
      if (!this.#isPaid(payoutId) && attempt === 0) this.#renew(payoutId);
      else await this.#move(payout, 'cancelled');
    }
  }

  async decideHeld(payout: Payout): Promise<void> {
    const { world } = this.#run;
    const control = this.#control;
    const { payoutId, attempt, held } = payout;
    // An objection comes first: until it ends, the ledger may have forgotten a payment.
    if (this.#ledger.isObjectedTo) return;
    if (control.book.mayArrive(payoutId) || (world.faultsOn && control.random.chance(0.5))) return;
    const isPaid = this.#isPaid(payoutId);
    if (held?.reason === 'before_birth' && this.#declareComplete()) await this.#release(payout);
    else if (!isPaid && attempt === 0 && held?.reason !== 'sent_before') this.#renew(payoutId);
    else if (!isPaid && (this.#releases.get(payoutId) ?? 0) < RELEASES) await this.#release(payout);
    else await this.#move(payout, 'cancelled');
  }

  #isPaid(payoutId: string) {
    return this.#run.book.paymentTo(walletOf(payoutId)) !== undefined;
  }

  #renew(payoutId: string) {
    const { world } = this.#run;
    world.note(() => `application: signs ${payoutId} again`);
    this.#ledger.enqueue(this.#control.renew(payoutId));
    if (this.#ledger.stateOf(payoutId) === 'queued') world.situations.meet('a payout is renewed');
    // Its data were altered: the same data cannot be enqueued again.
    else this.#releases.set(payoutId, RELEASES);
  }

  async #release(payout: Payout) {
    this.#releases.set(payout.payoutId, (this.#releases.get(payout.payoutId) ?? 0) + 1);
    this.#run.world.situations.meet('a payout is released');
    await this.#move(payout, 'queued');
  }

  async #move({ payoutId, state: from }: Payout, to: 'queued' | 'cancelled') {
    const rejection = await this.#ledger.change({ payoutId, from, to, ...BY });
    this.#run.world.note(() => `operator: ${payoutId} ${from} → ${to} ${rejection?.kind ?? ''}`);
  }

  #declareComplete() {
    const { hosts, world } = this.#run;
    const files = hosts.all.map(({ file }) => file);
    if (!files.every((file) => this.#control.book.isComplete(file.lines))) return false;
    world.situations.meet('a journal is declared complete');
    for (const file of files) file.declareComplete(this.#control.wallNow);
    return true;
  }
}

export interface JournalFolder {
  readonly dir: string;
  readonly file: JournalFile;
}

type SimOperatorOptions = Readonly<{
  world: World;
  ledger: WorldLedger;
  inFlightMaxMs: number;
  folders: () => readonly JournalFolder[];
  refuses?: () => boolean;
  hasAllPayouts?: () => boolean;
  adoptsWithoutProof: boolean;
  signResume?: (() => string) | undefined;
}>;

/** An operator who runs the commands that `payouts stats` shows, word for word, and does what their errors say. */
export class SimOperator {
  readonly #options: SimOperatorOptions;

  constructor(options: SimOperatorOptions) {
    this.#options = options;
  }

  async endStop(refusing: readonly string[]): Promise<void> {
    const { ledger, world } = this.#options;
    const view = await ledger.readSender();
    const [advice] = adviseAccount({
      ...view,
      platformId: 1,
      objections: view.objections,
      paused: view.pausedReason !== undefined,
      pausedReason: view.pausedReason ?? null,
    });
    // A worker may refuse before its objection is recorded: its log says what to run.
    const log = refusing.flatMap((dir) => ['--journal', dir]).join(' ');
    const command = advice?.command ?? (log === '' ? undefined : `payouts adopt-ledger ${log} --reason WHY`);
    if (command === undefined) return;
    world.note(() => `operator: ${command}`);
    try {
      await this.#run(command);
    } catch (error) {
      if (!(error instanceof RedisUnavailableError || error instanceof ConflictError)) throw error;
      world.note(() => `operator: ${error.message}`);
    }
  }

  async #run(command: string) {
    const { ledger, world, signResume } = this.#options;
    const [program, verb, ...words] = command.split(' ');
    const valuesOf = (option: string) => words.filter((_, index) => words[index - 1] === option);
    if (program === 'payouts' && verb === 'adopt-ledger') {
      await this.#adopt(valuesOf('--journal'), valuesOf('--give-up'));
    } else if (program === 'payouts' && verb === 'resume') {
      const resumed = await ledger.resume(signResume?.());
      world.note(() => `operator: resume ${String(resumed)}`);
    } else throw new Error(`no operator can run ${command}`);
  }

  async #adopt(dirs: readonly string[], giveUp: readonly string[]) {
    const { world, inFlightMaxMs, adoptsWithoutProof, hasAllPayouts } = this.#options;
    const folders = this.#options.folders();
    const journals = folders
      .filter(({ dir }) => dirs.includes(dir))
      .map(({ dir, file }) => file.toAdoptable({ host: dir, dir }));
    const ledger = this.#interruptible();
    const plan = await planAdoption(ledger, journals, giveUp);
    if (plan.reasons.length === 0) {
      world.note(() => 'operator: there is nothing to adopt');
      return;
    }
    if (!isComplete(plan) && !adoptsWithoutProof) {
      world.note(() => `operator: lacking ${JSON.stringify([plan.unread, plan.unwitnessed])}`);
      const isReadable = ({ journalId, dir }: { journalId: string; dir: string }) =>
        !dirs.includes(dir) && folders.some((folder) => folder.dir === dir && folder.file.journalId === journalId);
      const readable = plan.unread.filter(isReadable);
      const lost = plan.unread.filter((journal) => !isReadable(journal));
      const more = plan.unwitnessed.length > 0 && readable.length === 0 ? [UNWITNESSED] : [];
      await this.#adopt(
        [...dirs, ...readable.map(({ dir }) => dir)],
        [...giveUp, ...lost.map(({ journalId }) => journalId), ...more],
      );
      return;
    }
    // The command says how many payouts it makes unknown: the operator compares that with what the application has open.
    if (plan.holdsSendable && hasAllPayouts?.() === false) {
      world.note(() => 'operator: the ledger lacks payouts of the application, which have to be enqueued first');
      return;
    }
    const adoption = await carryOutAdoption(ledger, journals, plan, { actor: BY, at: 0, inFlightMaxMs });
    world.situations?.meet(giveUp.length > 0 ? 'a ledger is adopted, and a journal given up' : 'a ledger is adopted');
    world.note(() => `operator: adopted ${JSON.stringify({ ...adoption, giveUp })}`);
  }

  #interruptible(): AdoptionLedger {
    const { world, ledger, refuses } = this.#options;
    const call =
      (name: keyof AdoptionLedger) =>
      async (...args: never[]): Promise<never> => {
        await new Promise<void>((resolve) => {
          world.after(world.random.between(0.1, 20), resolve, { kind: 'timeout', label: 'operator' });
        });
        if (refuses?.() === true || world.fault(0.02)) throw new RedisUnavailableError('the command was interrupted');
        return (ledger[name] as (...given: never[]) => Promise<never>).apply(ledger, args);
      };
    const names = [
      ...(['readSender', 'findForgottenSends', 'object', 'adoptSends', 'countSendable', 'holdSendable'] as const),
      ...(['readBookmark', 'adoptLedger'] as const),
    ];
    return Object.fromEntries(names.map((name) => [name, call(name)])) as unknown as AdoptionLedger;
  }
}

import type { Payout } from '../../../../src/ledger/payout.js';
import { walletOf } from '../../../world/worker.js';
import type { WorldLedger } from '../../../world/world-ledger.js';
import type { Simulation } from '../simulation.js';
import type { SimControl } from './control.js';

const BY = { by: 'ann', reason: 'did what its message says' };

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

  readonly signResume = (): string => this.#control.resumeAct();

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

  #isPaid(payoutId: string): boolean {
    return this.#run.book.paymentTo(walletOf(payoutId)) !== undefined;
  }

  #renew(payoutId: string): void {
    const { world } = this.#run;
    world.note(() => `application: signs ${payoutId} again`);
    this.#ledger.enqueue(this.#control.renew(payoutId));
    if (this.#ledger.stateOf(payoutId) === 'queued') world.situations.meet('a payout is renewed');
    // Its data were altered: the same data cannot be enqueued again.
    else this.#releases.set(payoutId, RELEASES);
  }

  async #release(payout: Payout): Promise<void> {
    this.#releases.set(payout.payoutId, (this.#releases.get(payout.payoutId) ?? 0) + 1);
    this.#run.world.situations.meet('a payout is released');
    await this.#move(payout, 'queued');
  }

  async #move({ payoutId, state: from }: Payout, to: 'queued' | 'cancelled'): Promise<void> {
    const rejection = await this.#ledger.change({ payoutId, from, to, ...BY });
    this.#run.world.note(() => `operator: ${payoutId} ${from} → ${to} ${rejection?.kind ?? ''}`);
  }

  #declareComplete(): boolean {
    const { hosts, world } = this.#run;
    const files = hosts.all.map(({ file }) => file);
    if (!files.every((file) => this.#control.book.isComplete(file.lines))) return false;
    world.situations.meet('a journal is declared complete');
    for (const file of files) file.declareComplete(this.#control.wallNow);
    return true;
  }
}

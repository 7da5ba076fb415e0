import type { Payout } from '../../../../src/ledger/payout.js';
import type { WorldLedger } from '../../../world/world-ledger.js';
import type { JournalFile } from '../journal-file.js';
import type { SimGateway } from '../sim-gateway.js';
import { walletOf } from '../sim-payout.js';
import type { SimRedis } from '../sim-redis.js';
import type { World } from '../world.js';
import type { SimControl } from './sim-control.js';

export interface SignedUsersOptions {
  readonly world: World;
  readonly redis: SimRedis;
  readonly gateway: SimGateway;
  readonly control: SimControl;
  readonly hosts: () => readonly { readonly file: JournalFile; readonly isUnadopted: boolean }[];
  readonly isAttacked: () => boolean;
  readonly signsInDoubt: boolean;
}

const BY = { by: 'ann', reason: 'did what its message says' };

/** How often an operator releases a payout that is held again and again. */
const RELEASES = 2;

/** What signatures add to the application and the operators: they sign, and they deal with what is held as its message says. */
export class SignedUsers {
  readonly #options: SignedUsersOptions;
  readonly #releases = new Map<string, number>();

  constructor(options: SignedUsersOptions) {
    this.#options = options;
  }

  get isAttacked(): boolean {
    return this.#options.isAttacked();
  }

  get #ledger(): WorldLedger {
    return this.#options.redis.ledger;
  }

  readonly signResume = (): string => this.#options.control.resumeAct();

  /** The application asks again for what the ledger has not, or has from a journal. */
  enqueue(payoutId: string): void {
    const payout = this.#ledger.payout(payoutId);
    if (payout?.signed === undefined) this.#ledger.enqueue(this.#options.control.payout(payoutId));
  }

  signResend(payout: Payout): string | undefined {
    return this.#options.control.resendAct(payout);
  }

  /** The operator asks the gateway, and does not take Redis's word for how long a request may be on its way. */
  mayStateUnsent({ payoutId }: Payout): boolean {
    const { control, signsInDoubt } = this.#options;
    return signsInDoubt || !(this.#isPaid(payoutId) || control.book.mayArrive(payoutId));
  }

  /** A worker says that it keeps a pause which Redis does not have. */
  async endKeptPause(): Promise<void> {
    const { hosts, world, control } = this.#options;
    if (this.#ledger.pausedReason !== undefined || !hosts().some(({ file }) => file.isPaused)) return;
    world.note(() => 'operator: payouts resume --key, for a pause that a worker keeps');
    await this.#ledger.resume(control.resumeAct());
  }

  /** A worker says that its journal cannot know what was sent before. */
  async endUnadopted(): Promise<void> {
    const { hosts, control, world } = this.#options;
    if (this.#ledger.isObjectedTo || !hosts().some(({ isUnadopted }) => isUnadopted)) return;
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
    const { control, world } = this.#options;
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
    return this.#options.gateway.paymentTo(walletOf(payoutId)) !== undefined;
  }

  #renew(payoutId: string): void {
    const { control, world } = this.#options;
    world.note(() => `application: signs ${payoutId} again`);
    this.#ledger.enqueue(control.renew(payoutId));
    if (this.#ledger.stateOf(payoutId) === 'queued') world.situations.meet('a payout is renewed');
    // Its data were altered: the same data cannot be enqueued again.
    else this.#releases.set(payoutId, RELEASES);
  }

  async #release(payout: Payout): Promise<void> {
    this.#releases.set(payout.payoutId, (this.#releases.get(payout.payoutId) ?? 0) + 1);
    this.#options.world.situations.meet('a payout is released');
    await this.#move(payout, 'queued');
  }

  async #move({ payoutId, state: from }: Payout, to: 'queued' | 'cancelled'): Promise<void> {
    const rejection = await this.#ledger.change({ payoutId, from, to, ...BY });
    this.#options.world.note(() => `operator: ${payoutId} ${from} → ${to} ${rejection?.kind ?? ''}`);
  }

  /** `payouts audit adopt-journal`, on each host where it is true. @returns whether it is true on all */
  #declareComplete(): boolean {
    const { control, hosts, world } = this.#options;
    const files = hosts().map(({ file }) => file);
    if (!files.every((file) => control.book.isComplete(file.lines))) return false;
    world.situations.meet('a journal is declared complete');
    for (const file of files) file.declareComplete(control.wallNow);
    return true;
  }
}

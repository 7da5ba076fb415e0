import type { StateChange } from '../../../src/ledger/payout-ledger.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { truthfulResolution } from '../../doubles/truthful-resolution.js';
import { newPayout, walletOf } from '../../world/worker.js';
import type { WorldLedger } from '../../world/world-ledger.js';
import { SimOperator } from './operator.js';
import type { SignedUsers } from './signed/users.js';
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

  #checkAgain(): void {
    const { world } = this.#run;
    world.after(world.random.between(1_000, 10_000), () => {
      void this.#checkSafely().then(() => {
        this.#checkAgain();
      });
    });
  }

  async #checkSafely(): Promise<void> {
    try {
      await this.#check();
    } catch (error) {
      if (!this.#run.isAttacked) throw error;
      this.#run.world.note(() => `operator: ${(error as Error).message}`);
    }
  }

  async #check(): Promise<void> {
    const { world, redis, hosts } = this.#run;
    if (redis.refuses) return;
    // First of all: what the application misses must be there before sends are given up that no journal has.
    this.#enqueue();
    if (world.random.chance(world.faultsOn ? 0.5 : 1)) await this.#operator.endStop(hosts.refusing);
    await this.#decide();
  }

  #enqueue(): void {
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

  async #decide(): Promise<void> {
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
  async #resolve(payout: Payout): Promise<void> {
    await this.#change(payout, truthfulResolution(this.#run.book.paymentTo(walletOf(payout.payoutId))));
  }

  async #retry(payout: Payout): Promise<void> {
    const retries = this.#retries.get(payout.payoutId) ?? 0;
    if (retries < 2) await this.#change(payout, { to: 'queued' });
    this.#retries.set(payout.payoutId, retries + 1);
  }

  async #change(payout: Payout, change: Pick<StateChange, 'to' | 'txhash'>): Promise<void> {
    const { payoutId, state: from } = payout;
    if (change.to === 'queued' && this.#signed?.mayStateUnsent(payout) === false) return;
    const act = change.to === 'queued' ? this.#signed?.signResend(payout) : undefined;
    const rejection = await this.#ledger.change({ payoutId, from, ...change, ...(act && { act }), ...BY });
    this.#run.world.note(() => `operator: ${payoutId} ${from} → ${change.to} ${rejection?.kind ?? ''}`);
  }
}

import type { Payout } from '../../../src/ledger/payout.js';
import type { StateChange } from '../../../src/ledger/payout-ledger.js';
import { truthfulResolution } from '../../doubles/truthful-resolution.js';
import type { WorldLedger } from '../../world/world-ledger.js';
import type { Plan } from './plan.js';
import type { SimGateway } from './sim-gateway.js';
import { SimOperator, type JournalFolder } from './sim-operator.js';
import { newPayout, walletOf } from './sim-payout.js';
import type { SimPolicy } from './policed/sim-policy.js';
import type { SignedUsers } from './signed/signed-users.js';
import type { SimRedis } from './sim-redis.js';
import type { World } from './world.js';

export interface SimUsersOptions {
  readonly world: World;
  readonly plan: Plan;
  readonly redis: SimRedis;
  readonly gateway: SimGateway;
  readonly folders: () => readonly JournalFolder[];
  /** The folders of the hosts of which a running worker refuses to send. */
  readonly refusing: () => readonly string[];
  readonly adoptsWithoutProof: boolean;
  readonly policy?: SimPolicy | undefined;
  /** In signed mode. */
  readonly signed?: SignedUsers | undefined;
}

const BY = { by: 'ann', reason: 'looked it up' };

/**
 * The application, which asks for its payouts again until the ledger has them, and the operators, who see what the gateway
 * really did, report it truthfully, and run the commands that they are shown.
 */
export class SimUsers {
  readonly #options: SimUsersOptions;
  readonly #operator: SimOperator;
  readonly #wanted: string[] = [];
  readonly #retries = new Map<string, number>();

  constructor(options: SimUsersOptions) {
    this.#options = options;
    const hasAllPayouts = (): boolean => this.#wanted.every((payoutId) => this.#ledger.stateOf(payoutId) !== undefined);
    this.#operator = new SimOperator({ ...options, hasAllPayouts, signResume: options.signed?.signResume });
    const { world, plan } = options;
    for (let number = 1; number <= plan.payouts; number += 1) {
      world.after(world.random.between(0, plan.enqueueWithinMs), () => {
        this.#wanted.push(options.policy?.nameOf(number) ?? `p${number}`);
        this.#enqueue();
      });
    }
    this.#checkAgain();
  }

  get #ledger(): WorldLedger {
    return this.#options.redis.ledger;
  }

  /**
   * Whether every payout that was to be paid is known, is neither to be sent nor being sent, and nobody objects to the
   * ledger.
   */
  get isDrained(): boolean {
    if (this.#wanted.length < this.#options.plan.payouts || this.#options.refusing().length > 0) return false;
    if (this.#ledger.isObjectedTo) return false;
    const open = [
      'queued',
      'sending',
      undefined,
      ...(this.#options.signed === undefined && this.#options.policy === undefined ? [] : ['held']),
    ];
    return this.#wanted.every((payoutId) => !open.includes(this.#ledger.stateOf(payoutId)));
  }

  #checkAgain(): void {
    const { world } = this.#options;
    world.after(world.random.between(1_000, 10_000), () => {
      void this.#checkSafely().then(() => {
        this.#checkAgain();
      });
    });
  }

  /** Where an attacker struck, a command may end with an error: its operator comes back later. */
  async #checkSafely(): Promise<void> {
    const { signed, world } = this.#options;
    try {
      await this.#check();
    } catch (error) {
      if (signed?.isAttacked !== true) throw error;
      world.note(() => `operator: ${(error as Error).message}`);
    }
  }

  async #check(): Promise<void> {
    const { world, redis, refusing } = this.#options;
    if (redis.refuses) return;
    // First of all: what the application misses must be there before sends are given up that no journal has.
    this.#enqueue();
    if (world.random.chance(world.faultsOn ? 0.5 : 1)) await this.#operator.endStop(refusing());
    await this.#decide();
  }

  #enqueue(): void {
    if (this.#options.redis.refuses) return;
    const { signed, policy } = this.#options;
    for (const payoutId of this.#wanted) {
      if (signed !== undefined) signed.enqueue(payoutId);
      else if (!this.#ledger.isComplete(payoutId)) {
        this.#ledger.enqueue(policy?.payout(payoutId) ?? newPayout(payoutId));
      }
      policy?.enqueued(payoutId);
    }
  }

  async #decide(): Promise<void> {
    const { world, plan, signed, policy } = this.#options;
    await signed?.endKeptPause();
    await signed?.endUnadopted();
    for (const payout of this.#ledger.payouts()) {
      if (payout.state === 'held' || payout.state === 'queued') await policy?.decide(this.#ledger, payout);
      if (payout.state === 'held' && payout.held?.kind !== 'policy') await signed?.decideHeld(payout);
      if (payout.state === 'unknown' && world.fault(0.7)) await this.#resolve(payout);
      if (payout.state === 'rejected' && world.fault(0.5)) await this.#retry(payout);
      if (payout.state === 'queued' && plan.operatorCancels && world.fault(0.05))
        await this.#change(payout, { to: 'cancelled' });
    }
    if (world.fault(0.02)) await this.#ledger.pause('ann wants it');
  }

  /** That it was not paid is true at that moment; that it cannot be paid any more, the ledger has to ensure. */
  async #resolve(payout: Payout): Promise<void> {
    await this.#change(payout, truthfulResolution(this.#options.gateway.paymentTo(walletOf(payout.payoutId))));
  }

  async #retry(payout: Payout): Promise<void> {
    const retries = this.#retries.get(payout.payoutId) ?? 0;
    if (retries < 2) await this.#change(payout, { to: 'queued' });
    this.#retries.set(payout.payoutId, retries + 1);
  }

  async #change(payout: Payout, change: Pick<StateChange, 'to' | 'txhash'>): Promise<void> {
    const { payoutId, state: from } = payout;
    const { signed } = this.#options;
    if (change.to === 'queued' && signed?.mayStateUnsent(payout) === false) return;
    const act = change.to === 'queued' ? signed?.signResend(payout) : undefined;
    const acts = act === undefined ? {} : { act };
    const rejection = await this.#ledger.change({ payoutId, from, ...change, ...acts, ...BY });
    this.#options.world.note(() => `operator: ${payoutId} ${from} → ${change.to} ${rejection?.kind ?? ''}`);
  }
}

import { parsePolicy, type Policy } from '../../../../src/control/policy/policy.js';
import { Random } from '../../../doubles/random.js';
import type { Plan } from '../plan.js';
import { newPayout } from '../sim-payout.js';
import type { ValidPayout } from '../../../../src/ledger/payout.js';
import type { World } from '../world.js';
import { PLATFORM_ID } from '../signed/sim-keys.js';

/** By how much clocks of hosts differ from the true time, ms: what is allowed for where spends are placed by them. */
const CLOCKS_WITHIN_MS = 1_000;

/** Rates of clocks, and times of day that are whole milliseconds, make a window this much shorter at most, ms. */
const ROUNDING_MS = 50;

interface Paid {
  readonly at: number;
  readonly amount: number;
}

/** A policy with one cap over a short window, and what the gateway sees of it. */
export class SimPolicy {
  readonly policy: Policy;
  readonly hash: string;
  readonly longestWindowMs: number;
  readonly isListed = (): boolean => false;
  readonly #random: Random;
  readonly #world: World;
  readonly #plan: Plan;
  readonly #cap: number;
  readonly #windowMs: number;
  readonly #amounts = new Map<string, number>();
  readonly #paid: Paid[] = [];

  constructor(seed: number, world: World, plan: Plan) {
    const random = (this.#random = new Random(seed ^ 0x706f_6c69));
    this.#world = world;
    this.#plan = plan;
    this.#cap = random.pick([20, 40, 100]);
    this.#windowMs = random.pick([5_000, 20_000, 60_000]);
    this.longestWindowMs = this.#windowMs;
    const cap = { amount: String(this.#cap), within: `${this.#windowMs / 1_000}s` };
    const rules = [{ name: 'window', when: { paymentId: ['7'] }, cap, over: 'wait' }];
    this.policy = parsePolicy({ version: '1', platformId: String(PLATFORM_ID), default: 'hold', rules });
    this.hash = 'f'.repeat(64);
  }

  payout(payoutId: string): ValidPayout {
    const amount =
      this.#amounts.get(payoutId) ?? this.#random.whole(1, this.#random.chance(0.3) ? this.#cap : this.#cap / 2);
    this.#amounts.set(payoutId, amount);
    return { ...newPayout(payoutId), amount: String(amount) };
  }

  withinTolerance(offsetMs: number): number {
    return Math.max(-CLOCKS_WITHIN_MS, Math.min(CLOCKS_WITHIN_MS, offsetMs));
  }

  /** How long a run may take once there are no more faults, ms: each payout may wait for a window. */
  get drainsWithinMs(): number {
    return this.#plan.payouts * (this.#windowMs + 60_000);
  }

  /** The gateway has paid. */
  paid(amount: string): void {
    const { now } = this.#world;
    this.#paid.push({ at: now, amount: Number(amount) });
    const inWindow = this.#paid.filter(({ at }) => at > now - this.#windowMs + ROUNDING_MS);
    const sum = inWindow.reduce((total, each) => total + each.amount, 0);
    if (sum > 0.8 * this.#cap) this.#world.situations.meet('a cap is nearly used up');
    if (sum <= this.#cap || !this.#isPromised) return;
    this.#world.fail(`over the cap: ${sum} of ${this.#cap} arrived within ${this.#windowMs} ms`);
  }

  /** Spends of which the journal that has them cannot be read, and which Redis has forgotten, cannot be counted. */
  get #isPromised(): boolean {
    const { hosts, times, rollbackAtOnce } = this.#plan;
    const mayForget = times.rollback + times.flush + times.deposed + rollbackAtOnce > 0;
    return !mayForget || (hosts === 1 && times.journalLost === 0);
  }
}

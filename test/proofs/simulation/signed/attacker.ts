import type { Payout } from '../../../../src/ledger/payout.js';
import type { Plan } from '../plan.js';
import type { SimRedis } from '../sim-redis.js';
import type { World } from '../world.js';
import { ATTACKS, forgeReply } from './attacks.js';
import type { SimControl } from './sim-control.js';

export interface AttackerOptions {
  readonly world: World;
  readonly plan: Plan;
  readonly redis: SimRedis;
  readonly control: SimControl;
}

const KEPT_RECORDS = 40;

/** Who can write to Redis, and forge its replies, and has no key. */
export class Attacker {
  /** Whether he has done anything yet. */
  hasStruck = false;
  /** Whether he has touched what alone keeps the pace. */
  breaksPace = false;
  readonly #options: AttackerOptions;
  readonly #payouts: Payout[] = [];
  readonly #acts = new Set<string>();
  #strikesLeft: number;

  constructor(options: AttackerOptions) {
    this.#options = options;
    const { control, plan, world, redis } = options;
    const { random } = control;
    this.#strikesLeft = random.whole(1, 12);
    for (let number = random.whole(0, 4); number > 0; number -= 1) {
      world.after(random.between(0, plan.faultsForMs), () => {
        this.#strike();
      });
    }
    redis.onExecuted = (name) => {
      this.#onExecuted(name);
    };
  }

  /** What a process reads of a payout. */
  forge(payout: Payout | undefined): Payout | undefined {
    const { control, world } = this.#options;
    if (payout === undefined || this.#strikesLeft === 0 || !world.faultsOn || !control.random.chance(0.05))
      return payout;
    this.#note('forges a reply');
    return forgeReply(payout, control.random);
  }

  #onExecuted(name: string): void {
    if (!this.#options.world.faultsOn) return;
    this.#look();
    const isRare = ['readSender', 'renewLease', 'queued', 'findForgottenSends', 'readSending'].includes(name);
    if (this.#options.control.random.chance(isRare ? 0.002 : 0.06)) this.#strike();
  }

  /** Remembers what he can put back later. */
  #look(): void {
    const { redis } = this.#options;
    const payouts = redis.ledger.payouts();
    for (const payout of payouts) {
      if (payout.act !== undefined) this.#acts.add(payout.act);
      if (this.#payouts.includes(payout)) continue;
      this.#payouts.push(payout);
      if (this.#payouts.length > KEPT_RECORDS) this.#payouts.shift();
    }
    const { resumeAct } = redis.ledger.snapshot();
    if (resumeAct !== undefined) this.#acts.add(resumeAct);
  }

  #strike(): void {
    const { world, redis, control } = this.#options;
    if (!world.faultsOn || this.#strikesLeft === 0) return;
    const attack = control.random.pick(ATTACKS);
    const all = redis.ledger.snapshot();
    if (!attack.strike(all, { random: control.random, payouts: this.#payouts, acts: [...this.#acts] })) return;
    redis.ledger.restore(all);
    this.breaksPace ||= attack.breaksPace === true;
    this.#note(attack.name);
  }

  #note(what: string): void {
    this.#strikesLeft -= 1;
    this.hasStruck = true;
    this.#options.world.situations.meet('an attacker strikes');
    this.#options.world.note(() => `ATTACKER ${what}`);
  }
}

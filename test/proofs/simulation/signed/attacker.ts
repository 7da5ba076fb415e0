import type { Payout } from '../../../../src/ledger/payout.js';
import type { Plan } from '../plan.js';
import type { SimRedis } from '../sim-redis.js';
import type { World } from '../world.js';
import { type Attack, ATTACKS, endPauseAgain, forgeReply, haveOperatorsDecide } from './attacks.js';
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
  readonly #resumeActs = new Set<string>();
  #strikesLeft: number;

  constructor(options: AttackerOptions) {
    this.#options = options;
    const { control, plan, world, redis } = options;
    const { random } = control;
    this.#strikesLeft = random.whole(1, 12);
    for (let number = random.whole(0, 4); number > 0; number -= 1) {
      world.after(random.between(0, plan.faultsForMs), () => {
        this.#strike(random.pick(ATTACKS));
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
    const { random } = this.#options.control;
    // Two pauses in a run are rare: of the second he makes use.
    if (this.#canEndPauseAgain() && random.chance(0.3)) this.#strike(endPauseAgain);
    // As rare is a request that lingers while an operator looks.
    else if (name === 'beginSend' && random.chance(0.1)) this.#strike(haveOperatorsDecide);
    else if (random.chance(isRare ? 0.002 : 0.06)) this.#strike(random.pick(ATTACKS));
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
    const { resumeAct } = redis.ledger;
    if (resumeAct !== undefined) {
      this.#acts.add(resumeAct);
      this.#resumeActs.add(resumeAct);
    }
  }

  #canEndPauseAgain(): boolean {
    return this.#resumeActs.size > 0 && this.#options.redis.ledger.pausedReason !== undefined;
  }

  #strike(attack: Attack): void {
    const { world, redis, control } = this.#options;
    if (!world.faultsOn || this.#strikesLeft === 0) return;
    const loot = { payouts: this.#payouts, acts: [...this.#acts], resumeActs: [...this.#resumeActs] };
    if (!attack.strike(redis.ledger, { random: control.random, ...loot })) return;
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

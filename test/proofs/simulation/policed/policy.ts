import type { Policy } from '../../../../src/control/policy/policy.js';
import type { IsListed } from '../../../../src/control/policy/rule.js';
import type { WithdrawRequest } from '../../../../src/gateway/gateway.js';
import { walletKey } from '../../../../src/gateway/wallet.js';
import type { Payout, ValidPayout } from '../../../../src/ledger/payout.js';
import { Random } from '../../../doubles/random.js';
import type { WorkerLedger } from '../../../world/ledger-link.js';
import { newPayout, walletOf } from '../../../world/worker.js';
import type { WorldLedger } from '../../../world/world-ledger.js';
import { WALL_START, type WorldProcess } from '../../../world/world.js';
import type { Plan } from '../plan.js';
import type { ChanceWorld } from '../simulation.js';
import { SimApprovers, SpokenApprovals } from './approvers.js';
import { CLOCKS_WITHIN_MS, PolicyJudge } from './judge.js';
import { openRates, drawRules, drawWindow, LIST, LISTED, toPolicy, type SimRules } from './rules.js';

export class SimPolicy {
  readonly isSigned: boolean;
  readonly policy: Policy;
  readonly hash = 'f'.repeat(64);
  readonly longestWindowMs: number;
  readonly rates: ReturnType<typeof openRates>;
  readonly world: ChanceWorld;
  readonly random: Random;
  readonly plan: Plan;
  readonly rules: SimRules;
  readonly spoken = new SpokenApprovals(this);
  readonly judge = new PolicyJudge(this);
  /** Every worker has the journal of the one that saw a rejection. */
  readonly isJournalKept: boolean;
  /** Spends of which the journal that has them cannot be read, and which Redis has forgotten, cannot be counted. */
  readonly isPromised: boolean;
  readonly #approvers = new SimApprovers(this);
  readonly #payouts = new Map<string, ValidPayout>();

  constructor(seed: number, world: ChanceWorld, plan: Plan) {
    const random = (this.random = new Random(seed ^ 0x706f_6c69));
    this.world = world;
    this.plan = plan;
    const isPlain = random.chance(0.3);
    this.isSigned = !isPlain && random.chance(0.75);
    const rules = (this.rules = isPlain ? drawWindow(random) : drawRules(random, this.isSigned));
    this.policy = toPolicy(rules);
    this.longestWindowMs = Math.max(1_000, ...rules.rules.map(({ cap }) => cap?.withinMs ?? 0));
    this.rates = openRates(world, random, rules.rates, plan.faultsForMs);
    this.isJournalKept = plan.hosts === 1 && plan.times.journalLost === 0;
    const { times, rollbackAtOnce } = plan;
    const mayForget = times.rollback + times.flush + times.deposed + rollbackAtOnce > 0;
    this.isPromised = !mayForget || this.isJournalKept;
    world.note(() => JSON.stringify(rules));
  }

  readonly isListed: IsListed = (list, addressTo) => list === LIST && walletKey(addressTo) === LISTED;

  nameOf(number: number) {
    return `${'abcab'.charAt(number % 5)}:${number}`;
  }

  payout(payoutId: string): ValidPayout {
    const known = this.#payouts.get(payoutId) ?? this.#draw(payoutId);
    this.#payouts.set(payoutId, known);
    return known;
  }

  #draw(payoutId: string): ValidPayout {
    const random = this.random;
    const inDollars = this.rules.rates !== undefined;
    const [first] = this.rules.rules;
    const most = first?.cap?.unit === 'amount' ? Number(first.cap.limit) : 20;
    const isTwo = inDollars && random.chance(0.4);
    const whole = isTwo ? random.whole(1, 4) : random.whole(1, random.chance(0.3) ? most : Math.ceil(most / 2));
    const places = inDollars ? random.pick(['', '', '.25']) : random.pick(['', '', '.1', `.${'1'.padStart(18, '0')}`]);
    const person = this.isSigned ? random.pick(['', 'Ann', 'Bob']) : '';
    return {
      ...{ ...newPayout(payoutId), paymentId: isTwo ? 8 : 7, amount: `${whole}${places}` },
      ...(person !== '' && { requestedBy: person }),
    };
  }

  withinTolerance(offsetMs: number) {
    return Math.max(-CLOCKS_WITHIN_MS, Math.min(CLOCKS_WITHIN_MS, offsetMs));
  }

  get drainsWithinMs() {
    const { rules, rates } = this.rules;
    const waitMs = this.longestWindowMs + 60_000 + (rates === undefined ? 0 : 330_000);
    const anchorMs = rates === undefined ? 0 : 40 * 330_000;
    return this.plan.payouts * waitMs + anchorMs + (rules.some(({ open }) => open !== undefined) ? 2_100_000 : 0);
  }

  watchReads(process: WorldProcess, ledger: WorkerLedger): WorkerLedger {
    return {
      ...ledger,
      readPayout: async (payoutId) => {
        const payout = await ledger.readPayout(payoutId);
        if (payout !== undefined) this.spoken.noteRead(process.name, payout);
        return payout;
      },
    };
  }

  enqueued(payoutId: string) {
    this.judge.seen(walletOf(payoutId));
  }

  written(process: WorldProcess, request: WithdrawRequest) {
    const payoutId = request.addressTo.slice(walletOf('').length);
    this.judge.written(process, payoutId, request);
  }

  async decide(ledger: WorldLedger, payout: Payout) {
    const { payoutId } = payout;
    const isHeld = payout.state === 'held' && payout.held?.kind === 'policy';
    // Not at once: meanwhile others approve what someone rejected.
    if (isHeld && this.random.chance(0.3) && this.judge.isHopeless(payoutId, payout)) {
      await ledger.change({ payoutId, from: 'held', to: 'cancelled', by: 'ann', reason: 'no rule will let it pass' });
    } else if (this.isSigned) await this.#approvers.look(ledger, payout);
  }

  get wallNow() {
    return Math.round(WALL_START + this.world.now);
  }

  askedFor(payoutId: string): readonly (string | undefined)[] {
    return ['Shop', this.payout(payoutId).requestedBy];
  }
}

import { hashApproval } from '../../../../src/control/approvals/approval.js';
import type { Policy } from '../../../../src/control/policy/policy.js';
import type { IsListed } from '../../../../src/control/policy/rule.js';
import { walletKey } from '../../../../src/gateway/wallet.js';
import type { ApprovalDecision, SignedApproval } from '../../../../src/ledger/control-record.js';
import type { Payout, ValidPayout } from '../../../../src/ledger/payout.js';
import { Random } from '../../../doubles/random.js';
import type { WorkerLedger } from '../../../world/links.js';
import { newPayout } from '../../../world/worker.js';
import { alterPayout, type WorldLedger } from '../../../world/world-ledger.js';
import type { WorldProcess } from '../../../world/world.js';
import type { Plan } from '../plan.js';
import { APPROVER_KEYS, type ApproverKey, PLATFORM_ID, signApproval, signUnreject } from '../signed/control.js';
import type { ChanceWorld } from '../simulation.js';
import { PolicyJudge } from './judge.js';
import { APPROVERS, drawRules, drawWindow, LIST, LISTED, openRates, type SimRules, toPolicy } from './rules.js';

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
  readonly approvers = new SimApprovers(this);
  readonly judge = new PolicyJudge(this);
  /** Every worker has the journal of the one that saw a rejection. */
  readonly isJournalKept: boolean;
  /** Spends of which the journal that has them cannot be read, and which Redis has forgotten, cannot be counted. */
  readonly isPromised: boolean;
  journaledRejections: (payoutId: string) => number = () => 0;
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
    // A cap in the currency would need the judge to divide.
    const mayHaveSymbol = inDollars && this.rules.rules.every(({ cap }) => cap?.unit !== 'amount');
    const hasSymbol = mayHaveSymbol && random.chance(0.2);
    const person = this.isSigned ? random.pick(['', 'Ann', 'Bob']) : '';
    return {
      ...{ ...newPayout(payoutId), paymentId: isTwo ? 8 : 7, amount: `${whole}${places}` },
      ...(person !== '' && { requestedBy: person }),
      ...(hasSymbol && { symbol: 'USD' }),
    };
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
        if (payout !== undefined) this.approvers.noteRead(process.name, payout);
        return payout;
      },
    };
  }

  async decide(ledger: WorldLedger, payout: Payout) {
    const { payoutId } = payout;
    const isHeld = payout.state === 'held' && (payout.held?.kind === 'policy' || payout.held?.kind === 'rejection');
    // Not at once: meanwhile others approve what someone rejected.
    if (isHeld && this.random.chance(0.3) && this.judge.isHopeless(payoutId, payout)) {
      await ledger.change({ payoutId, from: 'held', to: 'cancelled', by: 'ann', reason: 'no rule will let it pass' });
    } else if (this.isSigned) await this.approvers.look(ledger, payout);
  }

  askedFor(payoutId: string): readonly (string | undefined)[] {
    return ['Shop', this.payout(payoutId).requestedBy];
  }
}

const HOUR_MS = 3_600_000;
const MOST_IN_VAIN = 6;

type Flaw = Readonly<{ about?: Payout; lifetimeMs?: number; decision?: ApprovalDecision; atMs?: number }>;

type Spoken = Readonly<{
  person: string;
  decision: ApprovalDecision;
  payoutId: string;
  about: string;
  /** Infinity for a rejection. */
  expiresAt: number;
  approval: SignedApproval;
}>;

/**
 * The people of the group, who also say what does not count: twice, of what they asked for themselves, too late, of another
 * payout. It knows everything that was really said, and what of it each process had read when it sent.
 */
class SimApprovers {
  readonly #policy: SimPolicy;
  readonly #seen: Payout[] = [];
  readonly #inVain = new Map<string, number>();
  readonly #spoken = new Map<string, Spoken>();
  readonly #read = new Map<string, Payout>();
  readonly #removed: string[] = [];
  /** Signatures of rejections that their person took back. */
  readonly #takenBack = new Set<string>();

  constructor(policy: SimPolicy) {
    this.#policy = policy;
  }

  async look(ledger: WorldLedger, payout: Payout) {
    const { world, random } = this.#policy;
    const { payoutId, signed, held } = payout;
    if (signed === undefined) return;
    if (!this.#seen.some((seen) => seen.signed?.signature === signed.signature)) this.#seen.push(payout);
    const isAsked = (held?.kind === 'policy' && held.reason === 'approve') || this.isRejected(payoutId);
    this.#removeRejections(ledger, payout);
    if (held?.kind === 'rejection' && random.chance(0.3)) await this.#takeBack(ledger, payout);
    else if (held?.kind === 'rejection' && world.faultsOn && random.chance(0.5)) {
      // An operator who did not look at why it is held.
      await ledger.change({ payoutId, from: 'held', to: 'queued', by: 'olga', reason: 'released' });
      world.situations.meet('a rejected payout is released');
      return;
    }
    if (world.faultsOn ? !random.chance(isAsked ? 0.7 : 0.2) : !isAsked) return;
    const [key, flaw] = this.#speaksInVain(payoutId) ? this.#drawFlawed(payout) : [this.#drawSound(payout)];
    if (key !== undefined) await this.#say(ledger, payout, key, flaw);
    if (this.approversOf(payout, 0).size > 0) world.situations.meet('a payout is approved');
  }

  /** Someone who can write to Redis: the worker has journaled the rejection before it held the payout. */
  #removeRejections(ledger: WorldLedger, { payoutId, held, approvals = [] }: Payout) {
    const { world, random, isJournalKept } = this.#policy;
    const isRejected = held?.kind === 'rejection';
    const rejections = approvals.filter(({ decision }) => decision === 'reject');
    if (!isRejected || rejections.length === 0 || !isJournalKept || !world.faultsOn || !random.chance(0.5)) return;
    // A worker that did not see it yet cannot know of it.
    if (this.#policy.journaledRejections(payoutId) < rejections.length) return;
    alterPayout(ledger, payoutId, { approvals: approvals.filter(({ decision }) => decision === 'approve') });
    ledger.redis.call('SADD', [ledger.connection.keys.recheck, payoutId]);
    void ledger.change({ payoutId, from: 'held', to: 'queued', by: 'ann', reason: 'the rejection is gone' });
    for (const { signature } of rejections) this.#removed.push(signature);
    world.situations.meet('a rejection is removed from Redis');
    world.note(() => `the rejections of ${payoutId} are removed`);
  }

  #speaksInVain(payoutId: string) {
    const times = this.#inVain.get(payoutId) ?? 0;
    if (times >= MOST_IN_VAIN || !this.#policy.random.chance(0.65)) return false;
    this.#inVain.set(payoutId, times + 1);
    return true;
  }

  #anyOf(isOne: (person: string) => boolean) {
    const keys = APPROVER_KEYS.filter(({ person }) => isOne(person));
    return keys.length === 0 ? undefined : this.#policy.random.pick(keys);
  }

  #drawSound(payout: Payout) {
    const done = this.approversOf(payout, 60_000);
    const own = this.#policy.askedFor(payout.payoutId);
    return this.#anyOf((person) => person !== 'Eve' && !done.has(person) && !own.includes(person));
  }

  #drawFlawed(payout: Payout): [ApproverKey | undefined, Flaw?] {
    const { random, world } = this.#policy;
    const done = this.approversOf(payout, 0);
    const any = random.pick(APPROVER_KEYS);
    return random.pick<() => [ApproverKey | undefined, Flaw?]>([
      () => [this.#anyOf((person) => done.has(person))],
      () => {
        world.situations.meet('someone approves what he asked for');
        return [this.#anyOf((person) => this.#policy.askedFor(payout.payoutId).includes(person))];
      },
      () => [any, { lifetimeMs: random.between(1_000, 15_000) }],
      () => [any, { about: random.pick(this.#seen) }],
      () => [this.#anyOf((person) => person === 'Eve')],
      () => [any, { decision: 'reject', atMs: random.pick([0, 0, 600_000, -600_000]) }],
    ])();
  }

  async #say(ledger: WorldLedger, payout: Payout, key: ApproverKey, flaw: Flaw = {}) {
    const { world } = this.#policy;
    const { about = payout, lifetimeMs = HOUR_MS, decision = 'approve', atMs = 0 } = flaw;
    const at = world.wallNow() + atMs;
    if (about.signed === undefined) return;
    const approval = signApproval(key, payout, about, decision, [at, at + lifetimeMs]);
    const { payoutId } = payout;
    this.#spoken.set(approval.signature, {
      ...{ person: key.person, decision, payoutId, about: about.signed.signature },
      expiresAt: approval.expiresAt === undefined ? Infinity : Date.parse(approval.expiresAt),
      approval,
    });
    const refusal = await ledger.addApproval(approval);
    // A refused one was never said.
    if (refusal !== undefined) this.#spoken.delete(approval.signature);
    if (refusal === undefined && decision === 'reject') world.situations.meet('a payout is rejected by a person');
    const what = `${payoutId}${about === payout ? '' : ' (of another)'}`;
    world.note(() => `${key.name}: ${decision} ${what} ${refusal?.kind ?? ''}`);
  }

  async #takeBack(ledger: WorldLedger, payout: Payout) {
    const { world } = this.#policy;
    const standing = this.#rejectionsOf(payout.payoutId).filter(({ approval }) =>
      (payout.approvals ?? []).some(({ signature }) => signature === approval.signature),
    );
    for (const { approval, person } of standing) {
      const key = APPROVER_KEYS.find((each) => each.person === person);
      if (key === undefined) continue;
      const intent = hashApproval(PLATFORM_ID, approval);
      // From now on the worker may pass it.
      this.#takenBack.add(approval.signature);
      const refusal = await ledger.addApproval(signUnreject(key, payout, intent, world.wallNow()));
      if (refusal === undefined) world.situations.meet('a rejection is taken back');
      world.note(() => `${key.name}: unreject ${payout.payoutId} ${refusal?.kind ?? ''}`);
    }
  }

  #rejectionsOf(payoutId: string) {
    return [...this.#spoken.values()].filter(
      (spoken) =>
        spoken.payoutId === payoutId && spoken.decision === 'reject' && !this.#takenBack.has(spoken.approval.signature),
    );
  }

  /** Redis may have forgotten that it was taken back. */
  hadRejection(payoutId: string) {
    return [...this.#spoken.values()].some((spoken) => spoken.payoutId === payoutId && spoken.decision === 'reject');
  }

  /** Whether a process had read a rejection, or could not miss it. */
  hasReadRejection(process: string, payoutId: string) {
    const payout = this.#read.get(`${process} ${payoutId}`);
    const read = (payout?.approvals ?? []).map(({ signature }) => signature);
    return this.#rejectionsOf(payoutId).some(
      ({ approval: { signature } }) => read.includes(signature) || this.#removed.includes(signature),
    );
  }

  noteRead(process: string, payout: Payout) {
    this.#read.set(`${process} ${payout.payoutId}`, payout);
  }

  /** Whether a process had read, within the last milliseconds, what lets a payout pass. */
  hasQuorum(process: string, payoutId: string, quorum: number, slackMs: number) {
    const payout = this.#read.get(`${process} ${payoutId}`);
    if (payout === undefined) return false;
    return this.approversOf(payout, -slackMs).size >= quorum;
  }

  approversOf(payout: Payout, forMs: number): Set<string> {
    const own = this.#policy.askedFor(payout.payoutId);
    const persons = this.#of(payout, 'approve', this.#policy.world.wallNow() + forMs).map(({ person }) => person);
    return new Set(persons.filter((person) => APPROVERS.includes(person) && !own.includes(person)));
  }

  isRejected(payoutId: string) {
    return this.#rejectionsOf(payoutId).length > 0;
  }

  #of(
    { payoutId, approvals = [], signed }: Payout,
    decision: ApprovalDecision,
    at: number,
    signatures = approvals.map(({ signature }) => signature),
  ) {
    return signatures
      .flatMap((signature) => this.#spoken.get(signature) ?? [])
      .filter((spoken) => spoken.payoutId === payoutId && spoken.about === signed?.signature)
      .filter((spoken) => spoken.decision === decision && spoken.expiresAt > at);
  }
}

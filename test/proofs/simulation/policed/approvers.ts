import type { ApprovalDecision } from '../../../../src/ledger/control-record.js';
import type { Payout } from '../../../../src/ledger/payout.js';
import { alterPayout } from '../../../world/tamper.js';
import type { WorldLedger } from '../../../world/world-ledger.js';
import { APPROVER_KEYS, signApproval, type ApproverKey } from '../signed/control.js';
import type { SimPolicy } from './policy.js';
import { APPROVERS } from './rules.js';

const GROUP: readonly string[] = APPROVERS;
const HOUR_MS = 3_600_000;
const MOST_IN_VAIN = 6;

type Flaw = Readonly<{ about?: Payout; lifetimeMs?: number; decision?: ApprovalDecision }>;

/** The people of the group, who also say what does not count: twice, of what they asked for themselves, too late, of another payout. */
export class SimApprovers {
  readonly #policy: SimPolicy;
  readonly #seen: Payout[] = [];
  readonly #inVain = new Map<string, number>();

  constructor(policy: SimPolicy) {
    this.#policy = policy;
  }

  async look(ledger: WorldLedger, payout: Payout) {
    const { world, spoken, random } = this.#policy;
    const { payoutId, signed, held } = payout;
    if (signed === undefined) return;
    if (!this.#seen.some((seen) => seen.signed?.signature === signed.signature)) this.#seen.push(payout);
    const isAsked = held?.kind === 'policy' && (held.reason === 'approve' || spoken.isRejected(payoutId));
    this.#removeRejections(ledger, payout);
    if (world.faultsOn ? !random.chance(isAsked ? 0.7 : 0.2) : !isAsked) return;
    const [key, flaw] = this.#speaksInVain(payoutId) ? this.#drawFlawed(payout) : [this.#drawSound(payout)];
    if (key !== undefined) await this.#say(ledger, payout, key, flaw);
    if (spoken.approversOf(payout, 0).size > 0) world.situations.meet('a payout is approved');
  }

  /** Someone who can write to Redis: the worker has journaled the rejection before it held the payout. */
  #removeRejections(ledger: WorldLedger, { payoutId, held, approvals = [] }: Payout) {
    const { world, random, spoken, isJournalKept } = this.#policy;
    const isRejected = held?.kind === 'policy' && held.message.includes(' rejected it.');
    const rejections = approvals.filter(({ decision }) => decision === 'reject');
    if (!isRejected || rejections.length === 0 || !isJournalKept || !world.faultsOn || !random.chance(0.8)) return;
    alterPayout(ledger, payoutId, { approvals: approvals.filter(({ decision }) => decision === 'approve') });
    ledger.redis.call('SADD', [ledger.connection.keys.recheck, payoutId]);
    for (const { signature } of rejections) spoken.noteRemoved(signature);
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
    const done = this.#policy.spoken.approversOf(payout, 60_000);
    const own = this.#policy.askedFor(payout.payoutId);
    return this.#anyOf((person) => person !== 'Eve' && !done.has(person) && !own.includes(person));
  }

  #drawFlawed(payout: Payout): [ApproverKey | undefined, Flaw?] {
    const { random, spoken, world } = this.#policy;
    const done = spoken.approversOf(payout, 0);
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
      () => [random.chance(0.5) ? any : undefined, { decision: 'reject' }],
    ])();
  }

  async #say(ledger: WorldLedger, payout: Payout, key: ApproverKey, flaw: Flaw = {}) {
    const { world, spoken, wallNow: at } = this.#policy;
    const { about = payout, lifetimeMs = HOUR_MS, decision = 'approve' } = flaw;
    if (about.signed === undefined) return;
    const approval = signApproval(key, payout, about, decision, [at, at + lifetimeMs]);
    const { payoutId } = payout;
    spoken.note(approval.signature, {
      ...{ person: key.person, decision, payoutId, about: about.signed.signature },
      expiresAt: Date.parse(approval.expiresAt),
    });
    const refusal = await ledger.addApproval(approval);
    if (refusal === undefined && decision === 'reject') world.situations.meet('a payout is rejected by a person');
    const what = `${payoutId}${about === payout ? '' : ' (of another)'}`;
    world.note(() => `${key.name}: ${decision} ${what} ${refusal?.kind ?? ''}`);
  }
}

type Spoken = Readonly<{
  person: string;
  decision: ApprovalDecision;
  payoutId: string;
  about: string;
  expiresAt: number;
}>;

/** Everything that people really said, and what of it each process had read when it sent. It verifies no signature. */
export class SpokenApprovals {
  readonly #policy: SimPolicy;
  readonly #spoken = new Map<string, Spoken>();
  readonly #read = new Map<string, Payout>();
  readonly #removed: string[] = [];

  constructor(policy: SimPolicy) {
    this.#policy = policy;
  }

  note(signature: string, spoken: Spoken) {
    this.#spoken.set(signature, spoken);
  }

  noteRemoved(signature: string) {
    this.#removed.push(signature);
  }

  noteRead(process: string, payout: Payout) {
    this.#read.set(`${process} ${payout.payoutId}`, payout);
  }

  /** Whether a process had read, within the last milliseconds, what lets a payout pass. */
  hasQuorum(process: string, payoutId: string, quorum: number, slackMs: number) {
    const payout = this.#read.get(`${process} ${payoutId}`);
    if (payout === undefined) return false;
    const signatures = [...(payout.approvals ?? []).map(({ signature }) => signature), ...this.#removed];
    const rejections = this.#of(payout, 'reject', this.#policy.wallNow + slackMs, signatures);
    return rejections.length === 0 && this.approversOf(payout, -slackMs).size >= quorum;
  }

  approversOf(payout: Payout, forMs: number): Set<string> {
    const own = this.#policy.askedFor(payout.payoutId);
    const persons = this.#of(payout, 'approve', this.#policy.wallNow + forMs).map(({ person }) => person);
    return new Set(persons.filter((person) => GROUP.includes(person) && !own.includes(person)));
  }

  isRejected(payoutId: string) {
    return [...this.#spoken.values()].some((spoken) => spoken.payoutId === payoutId && spoken.decision === 'reject');
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

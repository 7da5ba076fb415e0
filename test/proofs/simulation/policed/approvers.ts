import type { ApprovalDecision } from '../../../../src/ledger/control-record.js';
import type { Payout } from '../../../../src/ledger/payout.js';
import { alterPayout } from '../../../world/tamper.js';
import type { WorldLedger } from '../../../world/world-ledger.js';
import { APPROVER_KEYS, signApproval, type ApproverKey } from '../signed/control.js';
import type { SimPolicy } from './policy.js';
import { APPROVERS } from './rules.js';

const HOUR_MS = 3_600_000;

const MOST_IN_VAIN = 6;

type Flaw = Readonly<{
  about?: Payout;
  lifetimeMs?: number;
  decision?: ApprovalDecision;
}>;

/** The people of the group, who also say what does not count: twice, of what they asked for themselves, too late, of another payout. */
export class SimApprovers {
  readonly #policy: SimPolicy;
  readonly #seen: Payout[] = [];

  readonly #inVain = new Map<string, number>();

  constructor(policy: SimPolicy) {
    this.#policy = policy;
  }

  async look(ledger: WorldLedger, payout: Payout): Promise<void> {
    const { world, spoken } = this.#policy;
    if (payout.signed === undefined) return;
    if (!this.#seen.some(({ signed }) => signed?.signature === payout.signed?.signature)) this.#seen.push(payout);
    const isAsked =
      payout.held?.kind === 'policy' && (payout.held.reason === 'approve' || spoken.isRejected(payout.payoutId));
    if (this.#removesRejections(payout)) this.#removeRejections(ledger, payout);
    if (!this.#mayLook(isAsked)) return;
    if (this.#speaksInVain(payout)) await this.#speakInVain(ledger, payout);
    else await this.#approve(ledger, payout);
    const said = spoken.approversOf(payout, 0).size;
    if (said > 0) world.situations.meet('a payout is approved');
  }

  /** Someone who can write to Redis: the worker has journaled the rejection before it held the payout. */
  #removesRejections({ held, approvals = [] }: Payout) {
    const { world, random, isJournalKept } = this.#policy;
    const isRejected = held?.kind === 'policy' && held.message.includes(' rejected it.');
    const isThere = approvals.some(({ decision }) => decision === 'reject');
    return isRejected && isThere && isJournalKept && world.faultsOn && random.chance(0.8);
  }

  #removeRejections(ledger: WorldLedger, { payoutId, approvals = [] }: Payout) {
    const { world, spoken } = this.#policy;
    alterPayout(ledger, payoutId, { approvals: approvals.filter(({ decision }) => decision === 'approve') });
    ledger.redis.call('SADD', [ledger.connection.keys.recheck, payoutId]);
    for (const { decision, signature } of approvals) if (decision === 'reject') spoken.noteRemoved(signature);
    world.situations.meet('a rejection is removed from Redis');
    world.note(() => `the rejections of ${payoutId} are removed`);
  }

  #mayLook(isAsked: boolean) {
    const { world, random } = this.#policy;
    return world.faultsOn ? random.chance(isAsked ? 0.7 : 0.2) : isAsked;
  }

  #speaksInVain({ payoutId }: Payout) {
    const times = this.#inVain.get(payoutId) ?? 0;
    if (times >= MOST_IN_VAIN || !this.#policy.random.chance(0.65)) return false;
    this.#inVain.set(payoutId, times + 1);
    return true;
  }

  async #approve(ledger: WorldLedger, payout: Payout) {
    const { random, spoken } = this.#policy;
    const done = spoken.approversOf(payout, 60_000);
    const left = APPROVER_KEYS.filter(
      ({ person }) => person !== 'Eve' && !done.has(person) && !this.#policy.askedFor(payout.payoutId).includes(person),
    );
    if (left.length > 0) await this.#say(ledger, payout, random.pick(left));
  }

  async #speakInVain(ledger: WorldLedger, payout: Payout) {
    const { random, spoken, world } = this.#policy;
    const own = this.#policy.askedFor(payout.payoutId);
    const done = spoken.approversOf(payout, 0);
    const anyOf = (isOne: (person: string) => boolean): ApproverKey | undefined => {
      const keys = APPROVER_KEYS.filter(({ person }) => isOne(person));
      return keys.length === 0 ? undefined : random.pick(keys);
    };
    const any = random.pick(APPROVER_KEYS);
    const [key, flaw] = random.pick<() => [ApproverKey | undefined, Flaw?]>([
      () => [anyOf((person) => done.has(person))],
      () => {
        world.situations.meet('someone approves what he asked for');
        return [anyOf((person) => own.includes(person))];
      },
      () => [any, { lifetimeMs: random.between(1_000, 15_000) }],
      () => [any, { about: random.pick(this.#seen) }],
      () => [anyOf((person) => person === 'Eve')],
      () => [random.chance(0.5) ? any : undefined, { decision: 'reject' }],
    ])();
    if (key !== undefined) await this.#say(ledger, payout, key, flaw);
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
    world.note(
      () => `${key.name}: ${decision} ${payoutId}${about === payout ? '' : ' (of another)'} ${refusal?.kind ?? ''}`,
    );
  }
}

const GROUP: readonly string[] = APPROVERS;

type Spoken = Readonly<{
  person: string;
  decision: 'approve' | 'reject';
  payoutId: string;
  about: string;
  expiresAt: number;
}>;

/** Everything that people really said, and what of it each process had read when it sent. It verifies no signature. */
export class SpokenApprovals {
  readonly #policy: SimPolicy;
  readonly #spoken = new Map<string, Spoken>();
  readonly #read = new Map<string, Payout>();
  readonly #removed: Spoken[] = [];

  constructor(policy: SimPolicy) {
    this.#policy = policy;
  }

  note(signature: string, spoken: Spoken): void {
    this.#spoken.set(signature, spoken);
  }

  noteRemoved(signature: string): void {
    const spoken = this.#spoken.get(signature);
    if (spoken !== undefined) this.#removed.push(spoken);
  }

  noteRead(process: string, payout: Payout): void {
    this.#read.set(`${process} ${payout.payoutId}`, payout);
  }

  /** Whether a process had read, within the last milliseconds, what lets a payout pass. */
  hasQuorum(process: string, payoutId: string, quorum: number, slackMs: number): boolean {
    const payout = this.#read.get(`${process} ${payoutId}`);
    if (payout === undefined) return false;
    const now = this.#policy.wallNow;
    const isRejected =
      this.#of(payout, 'reject', now + slackMs).length > 0 ||
      this.#removed.some(
        (spoken) =>
          spoken.payoutId === payoutId && spoken.about === payout.signed?.signature && spoken.expiresAt > now + slackMs,
      );
    return !isRejected && this.approversOf(payout, -slackMs).size >= quorum;
  }

  approversOf(payout: Payout, forMs: number): Set<string> {
    const own = this.#policy.askedFor(payout.payoutId);
    const persons = this.#of(payout, 'approve', this.#policy.wallNow + forMs).map(({ person }) => person);
    return new Set(persons.filter((person) => GROUP.includes(person) && !own.includes(person)));
  }

  isRejected(payoutId: string): boolean {
    return [...this.#spoken.values()].some((spoken) => spoken.payoutId === payoutId && spoken.decision === 'reject');
  }

  #of({ payoutId, approvals = [], signed }: Payout, decision: Spoken['decision'], at: number): Spoken[] {
    return approvals
      .flatMap(({ signature }) => this.#spoken.get(signature) ?? [])
      .filter((spoken) => spoken.payoutId === payoutId && spoken.about === signed?.signature)
      .filter((spoken) => spoken.decision === decision && spoken.expiresAt > at);
  }
}

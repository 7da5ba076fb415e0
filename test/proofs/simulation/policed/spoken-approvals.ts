import type { Payout } from '../../../../src/ledger/payout.js';
import type { SimPolicy } from './policy.js';
import { APPROVERS } from './rules.js';

const GROUP: readonly string[] = APPROVERS;

export interface Spoken {
  readonly person: string;
  readonly decision: 'approve' | 'reject';
  readonly payoutId: string;
  readonly about: string;
  readonly expiresAt: number;
}

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

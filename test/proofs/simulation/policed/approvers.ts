import { formatApproval } from '../../../../src/control/approvals/approval.js';
import type { ApprovalDecision, SignedApproval } from '../../../../src/ledger/control-record.js';
import { signText } from '../../../../src/control/keys/ed25519.js';
import { hashIntent, intentOf } from '../../../../src/control/intents/intent.js';
import type { Payout } from '../../../../src/ledger/payout.js';
import type { Random } from '../../../doubles/random.js';
import { alterPayout } from '../../../world/tamper.js';
import type { WorldLedger } from '../../../world/world-ledger.js';
import { APPROVER_KEYS, PLATFORM_ID, type ApproverKey } from '../signed/keys.js';
import type { ChanceWorld } from '../chance-world.js';
import type { SpokenApprovals } from './spoken-approvals.js';
import { TEST_AUDIENCE } from '../../../control/support/keys.js';

export interface SimApproversOptions {
  readonly world: ChanceWorld;
  readonly random: Random;
  readonly spoken: SpokenApprovals;
  readonly wallNow: () => number;
  readonly askedFor: (payoutId: string) => readonly (string | undefined)[];
  readonly isJournalKept: boolean;
}

const HOUR_MS = 3_600_000;

const MOST_IN_VAIN = 6;

interface Flaw {
  readonly about?: Payout;
  readonly lifetimeMs?: number;
  readonly decision?: ApprovalDecision;
}

/** The people of the group, who also say what does not count: twice, of what they asked for themselves, too late, of another payout. */
export class SimApprovers {
  readonly #options: SimApproversOptions;
  readonly #seen: Payout[] = [];

  readonly #inVain = new Map<string, number>();

  constructor(options: SimApproversOptions) {
    this.#options = options;
  }

  async look(ledger: WorldLedger, payout: Payout): Promise<void> {
    const { world, spoken } = this.#options;
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
  #removesRejections({ held, approvals = [] }: Payout): boolean {
    const { world, random, isJournalKept } = this.#options;
    const isRejected = held?.kind === 'policy' && held.message.includes(' rejected it.');
    const isThere = approvals.some(({ decision }) => decision === 'reject');
    return isRejected && isThere && isJournalKept && world.faultsOn && random.chance(0.8);
  }

  #removeRejections(ledger: WorldLedger, { payoutId, approvals = [] }: Payout): void {
    const { world, spoken } = this.#options;
    alterPayout(ledger, payoutId, { approvals: approvals.filter(({ decision }) => decision === 'approve') });
    ledger.redis.call('SADD', [ledger.connection.keys.recheck, payoutId]);
    for (const { decision, signature } of approvals) if (decision === 'reject') spoken.noteRemoved(signature);
    world.situations.meet('a rejection is removed from Redis');
    world.note(() => `the rejections of ${payoutId} are removed`);
  }

  #mayLook(isAsked: boolean): boolean {
    const { world, random } = this.#options;
    return world.faultsOn ? random.chance(isAsked ? 0.7 : 0.2) : isAsked;
  }

  #speaksInVain({ payoutId }: Payout): boolean {
    const times = this.#inVain.get(payoutId) ?? 0;
    if (times >= MOST_IN_VAIN || !this.#options.random.chance(0.65)) return false;
    this.#inVain.set(payoutId, times + 1);
    return true;
  }

  async #approve(ledger: WorldLedger, payout: Payout): Promise<void> {
    const { random, spoken, askedFor } = this.#options;
    const done = spoken.approversOf(payout, 60_000);
    const left = APPROVER_KEYS.filter(
      ({ person }) => person !== 'Eve' && !done.has(person) && !askedFor(payout.payoutId).includes(person),
    );
    if (left.length > 0) await this.#say(ledger, payout, random.pick(left), {});
  }

  async #speakInVain(ledger: WorldLedger, payout: Payout): Promise<void> {
    const { random, spoken, askedFor, world } = this.#options;
    const own = askedFor(payout.payoutId);
    const done = spoken.approversOf(payout, 0);
    const of = (isOne: (person: string) => boolean): ApproverKey[] =>
      APPROVER_KEYS.filter(({ person }) => isOne(person));
    const any = random.pick(APPROVER_KEYS);
    await random.pick<() => Promise<void>>([
      async () => {
        const again = of((person) => done.has(person));
        if (again.length > 0) await this.#say(ledger, payout, random.pick(again), {});
      },
      async () => {
        world.situations.meet('someone approves what he asked for');
        await this.#say(ledger, payout, random.pick(of((person) => own.includes(person))), {});
      },
      async () => {
        await this.#say(ledger, payout, any, { lifetimeMs: random.between(1_000, 15_000) });
      },
      async () => {
        await this.#say(ledger, payout, any, { about: random.pick(this.#seen) });
      },
      async () => {
        await this.#say(ledger, payout, random.pick(of((person) => person === 'Eve')), {});
      },
      async () => {
        if (random.chance(0.5)) await this.#say(ledger, payout, any, { decision: 'reject' });
      },
    ])();
  }

  async #say(ledger: WorldLedger, payout: Payout, key: ApproverKey, flaw: Flaw): Promise<void> {
    const { world, spoken, wallNow } = this.#options;
    const { about = payout, lifetimeMs = HOUR_MS, decision = 'approve' } = flaw;
    if (about.signed === undefined) return;
    const at = wallNow();
    const times = { at: new Date(at).toISOString(), expiresAt: new Date(at + lifetimeMs).toISOString() };
    const stated = {
      ...{ audience: TEST_AUDIENCE, payoutId: payout.payoutId, intent: intentHashOf(about), decision, by: key.name },
      ...times,
    };
    const approval: SignedApproval = {
      ...stated,
      signature: signText(formatApproval(PLATFORM_ID, stated), key.private),
    };
    const { payoutId } = payout;
    spoken.note(approval.signature, {
      ...{ person: key.person, decision, payoutId, about: about.signed.signature },
      expiresAt: Date.parse(times.expiresAt),
    });
    const refusal = await ledger.addApproval(approval);
    if (refusal === undefined && decision === 'reject') world.situations.meet('a payout is rejected by a person');
    world.note(
      () => `${key.name}: ${decision} ${payoutId}${about === payout ? '' : ' (of another)'} ${refusal?.kind ?? ''}`,
    );
  }
}

export function intentHashOf(payout: Payout): string {
  if (payout.signed === undefined) throw new Error('it is not signed');
  return hashIntent(intentOf(PLATFORM_ID, payout, payout.signed));
}

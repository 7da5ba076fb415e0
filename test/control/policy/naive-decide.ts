import type { Policy } from '../../../src/control/policy/policy.js';
import type { PolicyRule } from '../../../src/control/policy/rule.js';

/**
 * The same decisions from a list of everything that was ever sent, without windows that are kept up to date, and with
 * fractions in place of units: slow, and easy to compare with the description of policies.
 */

export interface PastSend {
  readonly paymentId: number;
  readonly addressTo: string;
  readonly signer: string;
  /** In the smallest units of both. */
  readonly amount: bigint;
  readonly usd: bigint | undefined;
  /** Undefined where no answer came. */
  readonly answeredAt: number | undefined;
}

export interface NaiveCase {
  readonly policy: Policy;
  readonly payout: Omit<PastSend, 'answeredAt'>;
  readonly past: readonly PastSend[];
  readonly now: number;
  readonly seenAt: number | undefined;
  readonly approvedBy: readonly string[];
  readonly rejected: boolean;
}

const ORDER = ['send', 'wait', 'approve', 'refuse'];

export function naiveKind(given: NaiveCase): string {
  const kinds = given.policy.rules.flatMap((rule) => naiveRule(rule, given));
  const isCovered = given.policy.rules.some(
    (rule) =>
      rule.cap !== undefined &&
      isAbout(rule, given) !== false &&
      (rule.when.addressIn === undefined || isNaivelyListed(given.payout.addressTo, 'recipient')),
  );
  if (!isCovered && given.policy.uncovered === 'hold') kinds.push('refuse');
  return kinds.reduce((one, other) => (ORDER.indexOf(other) > ORDER.indexOf(one) ? other : one), 'send');
}

/** The list has two lines: `listed` and `tagged:1`. */
export function isNaivelyListed(addressTo: string, as: 'wallet' | 'recipient'): boolean {
  return as === 'wallet' ? /^(listed|tagged)(:|$)/.test(addressTo) : /^(listed|tagged:1)$/.test(addressTo);
}

function isAbout({ when }: PolicyRule, { payout }: NaiveCase): boolean | undefined {
  if (when.paymentId && ![...when.paymentId].includes(payout.paymentId)) return false;
  if (when.addressIn !== undefined && !isNaivelyListed(payout.addressTo, 'wallet')) return false;
  if (when.usdAbove === undefined) return true;
  return payout.usd === undefined ? undefined : payout.usd > when.usdAbove;
}

function naiveRule(rule: PolicyRule, given: NaiveCase): string[] {
  const applies = isAbout(rule, given);
  if (applies === false) return [];
  if (applies === undefined) return ['wait'];
  const { over, cap, hours } = rule;
  const fail = (): string => {
    if (over.kind === 'wait') return 'wait';
    if (over.kind !== 'approve') return 'refuse';
    if (given.rejected) return 'refuse';
    const group = given.policy.groups.get(over.by);
    return given.approvedBy.filter((person) => group?.has(person)).length >= over.quorum ? 'send' : 'approve';
  };
  if (cap === undefined) {
    if (hours !== undefined) return [hours.isOpen(given.now) ? 'send' : fail()];
    if (over.kind === 'cool_down') return [(given.seenAt ?? given.now) + over.ms <= given.now ? 'send' : 'wait'];
    return [fail()];
  }
  const worth = (send: Omit<PastSend, 'answeredAt'>): bigint | undefined =>
    cap.unit === 'count' ? 1n : cap.unit === 'amount' ? send.amount : send.usd;
  const own = worth(given.payout);
  if (own === undefined) return ['wait'];
  if (own > cap.limit) return [over.kind === 'wait' ? 'refuse' : fail()];
  if (cap.withinMs === undefined) return ['send'];
  const counted = given.past.filter(
    (send) =>
      isAbout(rule, { ...given, payout: send }) === true &&
      (cap.per !== 'address' || send.addressTo.split(':')[0] === given.payout.addressTo.split(':')[0]) &&
      (cap.per !== 'signer' || send.signer === given.payout.signer) &&
      (send.answeredAt === undefined || given.now - send.answeredAt < (cap.withinMs ?? 0)),
  );
  const sum = counted.reduce((total, send) => total + (worth(send) ?? 0n), own);
  return [sum <= cap.limit ? 'send' : fail()];
}

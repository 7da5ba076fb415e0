import fc from 'fast-check';
import { fromUnits } from '../../../src/base/decimal.js';
import { decide } from '../../../src/control/policy/decide.js';
import { parsePolicy, type Policy } from '../../../src/control/policy/policy.js';
import {
  bucketOf,
  valueOf,
  type PolicyRule,
  type PolicySubject,
  type PolicyWorld,
} from '../../../src/control/policy/rule.js';
import { SpendingLog } from '../../../src/control/policy/spending-log.js';
import { HOUR_MS } from '../support/signed.js';

const NOW = Date.parse('2026-11-23T10:00:00Z');

/** `amount` and `usd` are in the smallest units of both; `answeredAt` is undefined where no answer came. */
interface Send extends Pick<PolicySubject, 'paymentId' | 'addressTo'> {
  readonly signer: string;
  readonly amount: bigint;
  readonly usd: bigint | undefined;
  readonly answeredAt: number | undefined;
}

const approve = (quorum: string): object => ({ approve: { by: 'finance', quorum } });
const condition = fc.constantFrom<object>(
  ...[{}, { paymentId: ['6'] }, { paymentId: ['6', '7'] }, { usdAbove: '9' }, { addressIn: 'l' }],
);
const capRule = fc
  .record({
    ...{ limit: fc.integer({ min: 0, max: 40 }).map(String), condition },
    over: fc.constantFrom('refuse', 'wait', approve('2'), approve('1')),
    unit: fc.constantFrom('usd', 'amount', 'count'),
    within: fc.constantFrom(undefined, '1h', '2h'),
    per: fc.constantFrom(undefined, undefined, 'address', 'signer'),
  })
  .map(({ limit, over, condition: given, unit, within, per }): object => {
    const needsWindow = over === 'wait' || unit === 'count' || per !== undefined;
    const length = within ?? (needsWindow ? '1h' : undefined);
    const cap = { [unit]: limit, ...(length && { within: length }), ...(per && { per }) };
    return { when: unit === 'amount' ? { paymentId: ['6'] } : given, cap, over };
  });
const otherRule = fc.constantFrom<object>(
  { when: { usdAbove: '9' }, window: 'Mon 18:00-19:00 UTC', over: 'wait' },
  { when: { usdAbove: '9' }, window: 'Mon 09:00-11:00 UTC', over: 'refuse' },
  { when: { address: 'new', usdAbove: '20' }, over: { wait: '24h' } },
  { when: { addressIn: 'l' }, over: 'refuse' },
);
const rules = fc.array(fc.oneof({ weight: 4, arbitrary: capRule }, otherRule), { maxLength: 6 });
const sends: fc.Arbitrary<Send> = fc.record({
  paymentId: fc.constantFrom(6, 7),
  addressTo: fc.constantFrom('w1', 'w1:2', 'w2', 'listed', 'listed:1', 'listed:2', 'tagged:1', 'tagged:2'),
  signer: fc.constantFrom('shop', 'other'),
  amount: fc.bigInt({ min: 1n, max: 20n * 10n ** 18n }).map((units) => units * 10n ** 18n),
  usd: fc.option(fc.bigInt({ min: 1n, max: 25_000_000n }), { nil: undefined, freq: 8 }),
  answeredAt: fc.option(fc.integer({ min: NOW - 3 * HOUR_MS, max: NOW }), { nil: undefined }),
});

/** Compares `decide` with a naive model, on policies and histories that are drawn. @returns how many of each verdict there were */
export function compareWithModel(runs: number): ReadonlyMap<string, number> {
  const kinds = new Map<string, number>();
  const persons = fc.subarray(['ann', 'bob', 'eve']);
  fc.assert(
    fc.property(
      rules,
      fc.array(sends, { maxLength: 8 }),
      sends,
      persons,
      fc.boolean(),
      (drawn, all, payout, approvedBy, strict) => {
        const policy = parsePolicy({
          ...{ version: '1', platformId: '1', default: strict ? 'hold' : 'send' },
          groups: { finance: ['ann', 'bob', 'cy'] },
          rules: drawn.map((rule, index) => ({ name: `r${index}`, ...rule })),
        });
        const past = all.filter(({ usd }) => usd !== undefined);
        const expected = naiveKind({ policy, payout, past, approvedBy });
        const { kind } = decide(policy, subjectOf(payout), worldOf(policy, past, payout, approvedBy)).verdict;
        kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
        if (kind !== expected) throw new Error(`decide says ${kind}, the model ${expected}`);
      },
    ),
    { numRuns: runs },
  );
  return kinds;
}

const subjectOf = ({ paymentId, amount, addressTo, signer }: Send): PolicySubject => ({
  ...{ paymentId, amount: fromUnits(amount), addressTo, signer },
});

/** Windows as a worker keeps them: each send goes into the logs of the rules that are about it. */
function worldOf(policy: Policy, past: readonly Send[], { usd }: Send, approvedBy: readonly string[]): PolicyWorld {
  const lengths = new Map(policy.rules.map(({ name, cap }) => [name, cap?.withinMs ?? 0]));
  const logs = new Map(policy.rules.map(({ name }) => [name, new SpendingLog(2 * HOUR_MS)]));
  const ordered = past.toSorted((one, other) => (one.answeredAt ?? Infinity) - (other.answeredAt ?? Infinity));
  for (const each of ordered) {
    for (const rule of policy.rules) {
      if (rule.cap?.withinMs === undefined || isAbout(rule, each) !== true) continue;
      const value = valueOf(rule.cap, subjectOf(each), { kind: 'known', micros: each.usd ?? 0n });
      const log = logs.get(rule.name);
      const spend = log?.begin(bucketOf(rule.cap, subjectOf(each)), value as bigint);
      if (each.answeredAt !== undefined && spend !== undefined) log?.answer(spend, each.answeredAt);
    }
  }
  return {
    ...{ now: NOW, wallNow: NOW, addressSeenAt: undefined, rejectedBy: undefined, stranger: undefined },
    isListed: (_, addressTo, as) => isListed(addressTo, as),
    worth: usd === undefined ? { kind: 'unknown', reason: 'none' } : { kind: 'known', micros: usd },
    approvedBy: new Set(approvedBy),
    window: (rule, bucket) => ({
      sum: (now) => logs.get(rule)?.sum(bucket, lengths.get(rule) ?? 0, now) ?? 0n,
      freeAt: (most, now) => logs.get(rule)?.freeAt(bucket, lengths.get(rule) ?? 0, most, now),
      ahead: 0n,
    }),
  };
}

/** The list has two lines: `listed` and `tagged:1`. */
function isListed(addressTo: string, as: 'wallet' | 'recipient'): boolean {
  return as === 'wallet' ? /^(listed|tagged)(:|$)/.test(addressTo) : /^(listed|tagged:1)$/.test(addressTo);
}

/** Undefined where it depends on a worth that nobody knows. */
function isAbout({ when }: PolicyRule, send: Send): boolean | undefined {
  if (when.paymentId && ![...when.paymentId].includes(send.paymentId)) return false;
  if (when.addressIn !== undefined && !isListed(send.addressTo, 'wallet')) return false;
  if (when.usdAbove === undefined) return true;
  return send.usd === undefined ? undefined : send.usd > when.usdAbove;
}

interface NaiveCase {
  readonly policy: Policy;
  readonly payout: Send;
  readonly past: readonly Send[];
  readonly approvedBy: readonly string[];
}

const ORDER = ['send', 'wait', 'approve', 'refuse'];

/** The same decision from a list of everything that was ever sent, without windows that are kept up to date. */
function naiveKind(given: NaiveCase): string {
  const { policy, payout } = given;
  const kinds = policy.rules.flatMap((rule) => naiveRule(rule, given));
  const isCovered = policy.rules.some(
    (rule) =>
      rule.cap !== undefined &&
      isAbout(rule, payout) !== false &&
      (rule.when.addressIn === undefined || isListed(payout.addressTo, 'recipient')),
  );
  if (!isCovered && policy.uncovered === 'hold') kinds.push('refuse');
  return kinds.reduce((one, other) => (ORDER.indexOf(other) > ORDER.indexOf(one) ? other : one), 'send');
}

function naiveRule(rule: PolicyRule, { policy, payout, past, approvedBy }: NaiveCase): string[] {
  const applies = isAbout(rule, payout);
  if (applies === false) return [];
  if (applies === undefined) return ['wait'];
  const { over, cap, hours } = rule;
  const fail = (): string => {
    if (over.kind === 'wait') return 'wait';
    if (over.kind !== 'approve') return 'refuse';
    const group = policy.groups.get(over.by);
    return approvedBy.filter((person) => group?.has(person)).length >= over.quorum ? 'send' : 'approve';
  };
  if (cap === undefined) {
    if (hours !== undefined) return [hours.isOpen(NOW) ? 'send' : fail()];
    // Nobody has seen the address.
    return [over.kind === 'cool_down' ? 'wait' : fail()];
  }
  const worth = (send: Send): bigint | undefined =>
    cap.unit === 'count' ? 1n : cap.unit === 'amount' ? send.amount : send.usd;
  const own = worth(payout);
  if (own === undefined) return ['wait'];
  if (own > cap.limit) return [over.kind === 'wait' ? 'refuse' : fail()];
  if (cap.withinMs === undefined) return ['send'];
  const within = cap.withinMs;
  const walletOf = (send: Send): string | undefined => send.addressTo.split(':')[0];
  const counted = past.filter(
    (send) =>
      isAbout(rule, send) === true &&
      (cap.per !== 'address' || walletOf(send) === walletOf(payout)) &&
      (cap.per !== 'signer' || send.signer === payout.signer) &&
      (send.answeredAt === undefined || NOW - send.answeredAt < within),
  );
  const sum = counted.reduce((total, send) => total + (worth(send) ?? 0n), own);
  return [sum <= cap.limit ? 'send' : fail()];
}

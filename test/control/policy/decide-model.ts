import fc from 'fast-check';
import { fromUnits } from '../../../src/base/decimal.js';
import { decide } from '../../../src/control/policy/decide.js';
import { parsePolicy, type Policy } from '../../../src/control/policy/policy.js';
import { bucketOf, valueOf, type PolicyRule, type PolicySubject } from '../../../src/control/policy/rule.js';

const NOW = Date.parse('2026-11-23T10:00:00Z');

/** `amount` and `usd` are in the smallest units of both. */
interface Send extends Pick<PolicySubject, 'paymentId' | 'addressTo'> {
  readonly signer: string;
  readonly amount: bigint;
  readonly usd: bigint | undefined;
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
    within: fc.constantFrom(undefined, '1h'),
    per: fc.constantFrom(undefined, undefined, 'address', 'signer'),
  })
  .map(({ limit, over, condition: given, unit, within, per }): object => {
    const needsWindow = over === 'wait' || unit === 'count' || per !== undefined;
    const length = needsWindow ? '1h' : within;
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
});
const cases = fc.record({
  ...{ drawn: rules, all: fc.array(sends, { maxLength: 8 }), payout: sends, strict: fc.boolean() },
  approvedBy: fc.subarray(['ann', 'bob', 'eve']),
});

/** Compares `decide` with a naive model, on policies and histories that are drawn. @returns how many of each verdict there were */
export function compareWithModel(runs: number): ReadonlyMap<string, number> {
  const kinds = new Map<string, number>();
  fc.assert(
    fc.property(cases, ({ drawn, all, payout, approvedBy, strict }) => {
      const policy = parsePolicy({
        ...{ version: '1', platformId: '1', default: strict ? 'hold' : 'send' },
        groups: { finance: ['ann', 'bob', 'cy'] },
        rules: drawn.map((rule, index) => ({ name: `r${index}`, ...rule })),
      });
      const given = { policy, payout, past: all.filter(({ usd }) => usd !== undefined), approvedBy };
      const [kind, expected] = [decidedKind(given), naiveKind(given)];
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
      if (kind !== expected) throw new Error(`decide says ${kind}, the model ${expected}`);
    }),
    { numRuns: runs },
  );
  return kinds;
}

interface NaiveCase {
  readonly policy: Policy;
  readonly payout: Send;
  readonly past: readonly Send[];
  readonly approvedBy: readonly string[];
}

function decidedKind({ policy, payout, past, approvedBy }: NaiveCase): string {
  const subjectOf = (send: Send): PolicySubject => ({ ...send, amount: fromUnits(send.amount) });
  const worthOf = ({ usd }: Send) =>
    usd === undefined ? ({ kind: 'unknown', reason: 'none' } as const) : ({ kind: 'known', micros: usd } as const);
  // In the worker's buckets and units; spending-log.test.ts has how windows are kept.
  const sumOf = (name: string, bucket: string): bigint => {
    const rule = policy.rules.find((each) => each.name === name);
    if (rule?.cap === undefined) return 0n;
    const { cap } = rule;
    const counted = past.filter((send) => isAbout(rule, send) === true && bucketOf(cap, subjectOf(send)) === bucket);
    return counted.reduce((sum, send) => sum + (valueOf(cap, subjectOf(send), worthOf(send)) as bigint), 0n);
  };
  return decide(policy, subjectOf(payout), {
    ...{ now: NOW, wallNow: NOW, addressSeenAt: undefined, rejectedBy: undefined, stranger: undefined },
    ...{ worth: worthOf(payout), approvedBy: new Set(approvedBy) },
    isListed: (_, addressTo, as) => isListed(addressTo, as),
    window: (rule, bucket) => ({ sum: () => sumOf(rule, bucket), freeAt: () => undefined, ahead: 0n }),
  }).verdict.kind;
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

const ORDER = ['send', 'wait', 'approve', 'refuse'];

function naiveKind(given: NaiveCase): string {
  const { policy, payout } = given;
  const kinds = policy.rules.map((rule) => naiveRule(rule, given));
  const isCovered = policy.rules.some(
    ({ cap, when }, index) =>
      cap !== undefined &&
      kinds[index] !== 'none' &&
      (when.addressIn === undefined || isListed(payout.addressTo, 'recipient')),
  );
  if (!isCovered && policy.uncovered === 'hold') kinds.push('refuse');
  return kinds.reduce((one, other) => (ORDER.indexOf(other) > ORDER.indexOf(one) ? other : one), 'send');
}

function naiveRule(rule: PolicyRule, { policy, payout, past, approvedBy }: NaiveCase): string {
  const applies = isAbout(rule, payout);
  if (applies === false) return 'none';
  const { over, cap, hours } = rule;
  const fail = (): string => {
    if (over.kind !== 'approve') return over.kind === 'refuse' ? 'refuse' : 'wait';
    const group = policy.groups.get(over.by);
    return approvedBy.filter((person) => group?.has(person)).length >= over.quorum ? 'send' : 'approve';
  };
  if (applies === undefined) return 'wait';
  // Nobody has seen the address.
  if (cap === undefined) return hours?.isOpen(NOW) === true ? 'send' : fail();
  const worth = (send: Send): bigint | undefined =>
    cap.unit === 'count' ? 1n : cap.unit === 'amount' ? send.amount : send.usd;
  const own = worth(payout);
  if (own === undefined) return 'wait';
  if (own > cap.limit) return over.kind === 'wait' ? 'refuse' : fail();
  if (cap.withinMs === undefined) return 'send';
  const walletOf = (send: Send): string | undefined => send.addressTo.split(':')[0];
  const counted = past.filter(
    (send) =>
      isAbout(rule, send) === true &&
      (cap.per !== 'address' || walletOf(send) === walletOf(payout)) &&
      (cap.per !== 'signer' || send.signer === payout.signer),
  );
  return counted.reduce((total, send) => total + (worth(send) ?? 0n), own) <= cap.limit ? 'send' : fail();
}

import fc from 'fast-check';
import { decide } from '../../../src/control/policy/decide.js';
import { bucketOf, valueOf, type PolicySubject, type PolicyWorld } from '../../../src/control/policy/rule.js';
import { parsePolicy, type Policy } from '../../../src/control/policy/policy.js';
import { SpendingLog } from '../../../src/control/policy/spending-log.js';
import { fromUnits } from '../../../src/base/decimal.js';
import { isNaivelyListed, naiveKind, type PastSend } from './naive-decide.js';

const NOW = Date.parse('2026-11-23T10:00:00Z');
const HOUR_MS = 3_600_000;

const approve = (quorum: string): object => ({ approve: { by: 'finance', quorum } });
const condition = fc.constantFrom<object>(
  {},
  { paymentId: ['6'] },
  { paymentId: ['6', '7'] },
  { usdAbove: '9' },
  { addressIn: 'l' },
);
const capRule = fc
  .record({
    limit: fc.integer({ min: 0, max: 40 }).map(String),
    over: fc.constantFrom('refuse', 'wait', approve('2'), approve('1')),
    condition,
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
const send = fc.record({
  paymentId: fc.constantFrom(6, 7),
  addressTo: fc.constantFrom('w1', 'w1:2', 'w2', 'listed', 'listed:1', 'listed:2', 'tagged:1', 'tagged:2'),
  signer: fc.constantFrom('shop', 'other'),
  amount: fc.bigInt({ min: 1n, max: 20n * 10n ** 18n }).map((units) => units * 10n ** 18n),
  usd: fc.option(fc.bigInt({ min: 1n, max: 25_000_000n }), { nil: undefined, freq: 8 }),
  answeredAt: fc.option(fc.integer({ min: -3 * HOUR_MS, max: 0 }), { nil: undefined }),
});

/**
 * Compares `decide` with a naive model, on policies and histories that are drawn.
 * @returns how many of each verdict there were
 * @throws Error with the smallest case in which they differ
 */
export function compareWithModel(runs: number): ReadonlyMap<string, number> {
  const kinds = new Map<string, number>();
  const history = fc.array(send, { maxLength: 8 });
  const persons = fc.subarray(['ann', 'bob', 'eve']);
  fc.assert(
    fc.property(rules, history, send, persons, fc.boolean(), (drawn, past, payout, approvedBy, strict) => {
      const policy = readPolicy(drawn, strict);
      const known = past.filter(({ usd }) => usd !== undefined);
      const about = { policy, payout, now: NOW, seenAt: undefined, approvedBy, rejected: false };
      const expected = naiveKind({ ...about, past: known.map(atNow) });
      const { kind } = decide(policy, subjectOf(payout), worldOf(policy, known, payout, approvedBy)).verdict;
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
      if (kind !== expected) throw new Error(`decide says ${kind}, the model ${expected}`);
    }),
    { numRuns: runs },
  );
  return kinds;
}

function readPolicy(drawn: readonly object[], strict: boolean): Policy {
  return parsePolicy({
    ...{ version: '1', platformId: '1', default: strict ? 'hold' : 'send' },
    groups: { finance: ['ann', 'bob', 'cy'] },
    rules: drawn.map((rule, index) => ({ name: `r${index}`, ...rule })),
  });
}

function worldOf(
  policy: Policy,
  past: readonly PastSend[],
  { usd }: PastSend,
  approvedBy: readonly string[],
): PolicyWorld {
  return {
    ...{ now: 0, wallNow: NOW, addressSeenAt: undefined, rejectedBy: undefined, stranger: undefined },
    isListed: (_, addressTo, as) => isNaivelyListed(addressTo, as),
    worth: usd === undefined ? { kind: 'unknown', reason: 'none' } : { kind: 'known', micros: usd },
    approvedBy: new Set(approvedBy),
    window: windowsOf(policy, past),
  };
}

function atNow(past: PastSend): PastSend {
  return { ...past, answeredAt: past.answeredAt === undefined ? undefined : NOW + past.answeredAt };
}

function subjectOf({ paymentId, amount, addressTo, signer }: PastSend): PolicySubject {
  return { paymentId, amount: fromUnits(amount), addressTo, signer };
}

/** Windows as a worker keeps them: each send goes into the logs of the rules that are about it. */
function windowsOf(policy: Policy, past: readonly PastSend[]): PolicyWorld['window'] {
  const lengths = new Map(policy.rules.map(({ name, cap }) => [name, cap?.withinMs ?? 0]));
  const logs = new Map(policy.rules.map(({ name }) => [name, new SpendingLog(2 * HOUR_MS)]));
  const ordered = past.toSorted((one, other) => (one.answeredAt ?? Infinity) - (other.answeredAt ?? Infinity));
  for (const each of ordered) {
    for (const { name, cap, when } of policy.rules) {
      if (cap?.withinMs === undefined || (when.paymentId && !when.paymentId.has(each.paymentId))) continue;
      if (when.addressIn !== undefined && !isNaivelyListed(each.addressTo, 'wallet')) continue;
      if (when.usdAbove !== undefined && (each.usd ?? 0n) <= when.usdAbove) continue;
      const value = valueOf(cap, subjectOf(each), { kind: 'known', micros: each.usd ?? 0n });
      const log = logs.get(name);
      const spend = log?.begin(bucketOf(cap, subjectOf(each)), value as bigint);
      if (each.answeredAt !== undefined && spend !== undefined) log?.answer(spend, each.answeredAt);
    }
  }
  return (rule, bucket) => ({
    sum: (now) => logs.get(rule)?.sum(bucket, lengths.get(rule) ?? 0, now) ?? 0n,
    freeAt: (most, now) => logs.get(rule)?.freeAt(bucket, lengths.get(rule) ?? 0, most, now),
    ahead: 0n,
  });
}

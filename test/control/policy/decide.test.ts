import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parse } from 'yaml';
import { bucketOf, decide, valueOf, type PolicyWorld, type Verdict } from '../../../src/control/policy/decide.js';
import { parsePolicy, type Policy } from '../../../src/control/policy/policy.js';
import { SpendingLog } from '../../../src/control/policy/spending-log.js';
import { worthInMicros } from '../../../src/control/policy/usd.js';
import { fromUnits } from '../../../src/decimal.js';
import { naiveKind, type PastSend } from './naive-decide.js';

const NOW = Date.parse('2026-11-23T10:00:00Z');
const HOUR_MS = 3_600_000;
const PAYOUT = { paymentId: 6, amount: '10', addressTo: 'wallet-1', signer: 'shop' };

function policyOf(...rules: string[]): Policy {
  const text = `{ version: 1, platformId: "1", default: send, groups: { finance: [ann, bob, cy] }, rules: [${rules.join()}] }`;
  return parsePolicy(parse(text, { schema: 'failsafe' }));
}

function worldOf(given: Partial<PolicyWorld> = {}): PolicyWorld {
  const log = new SpendingLog(HOUR_MS);
  return {
    ...{ now: 0, wallNow: NOW, worth: { kind: 'known', micros: 10_000_000n }, addressSeenAt: undefined },
    ...{ isListed: () => false, approvedBy: new Set(), rejectedBy: undefined },
    window: () => ({
      sum: (now) => log.sum('', HOUR_MS, now),
      freeAt: (most, now) => log.freeAt('', HOUR_MS, most, now),
      ahead: 0n,
    }),
    ...given,
  };
}

/** The view of a window in which something was spent and answered. */
function spent(value: bigint, answeredAt: number | undefined, withinMs = HOUR_MS): Pick<PolicyWorld, 'window'> {
  const log = new SpendingLog(withinMs);
  const spend = log.begin('', value);
  if (answeredAt !== undefined) log.answer(spend, answeredAt);
  return {
    window: () => ({
      sum: (now) => log.sum('', withinMs, now),
      freeAt: (most, now) => log.freeAt('', withinMs, most, now),
      ahead: 0n,
    }),
  };
}

const verdictOf = (policy: Policy, world: PolicyWorld, payout = PAYOUT): Verdict =>
  decide(policy, payout, world).verdict;

describe('a cap', () => {
  const ALONE = policyOf('{ name: a, cap: { usd: "10" }, over: refuse }');
  const HOURLY = policyOf('{ name: h, cap: { usd: "15", within: 1h }, over: wait }');

  it.each([
    [10_000_000n, 'send'],
    [10_000_001n, 'refuse'],
  ])('of one payout: %s micros %s', (micros, kind) => {
    expect(verdictOf(ALONE, worldOf({ worth: { kind: 'known', micros } })).kind).toBe(kind);
  });

  it.each([
    ['what equals it passes', 5_000_000n, 'send'],
    ['one more does not', 5_000_001n, 'wait'],
  ])('of an hour: %s', (_, sum, kind) => {
    expect(verdictOf(HOURLY, worldOf(spent(sum, 0))).kind).toBe(kind);
  });

  it('says when there is room: so long after the answer, not after the begin', () => {
    const world = worldOf({ ...spent(6_000_000n, 60_000), now: 120_000 });
    expect(verdictOf(HOURLY, world)).toEqual({
      ...{ kind: 'wait', rule: 'h', until: NOW + HOUR_MS - 60_000 },
      reason: '6.00 USD of 15.00 USD are spent, and it is 10.00 USD',
      waitsFor: { bucket: '', value: 10_000_000n },
    });
  });

  it('knows no time where a send has no answer', () => {
    expect(verdictOf(HOURLY, worldOf(spent(6_000_000n, undefined)))).toMatchObject({ kind: 'wait', until: undefined });
  });

  it('that one payout alone exceeds never has room for it', () => {
    const worth = { kind: 'known', micros: 15_000_001n } as const;
    expect(verdictOf(HOURLY, worldOf({ worth }))).toMatchObject({
      kind: 'refuse',
      reason: expect.stringContaining('more than 15.00 USD'),
    });
  });

  it('in dollars holds what nobody knows the worth of; one in amounts does not ask', () => {
    const worth = { kind: 'unknown', reason: 'the rate is 20 min old' } as const;
    expect(verdictOf(ALONE, worldOf({ worth }))).toMatchObject({
      kind: 'wait',
      reason: expect.stringContaining('20 min old'),
    });
    const amounts = policyOf('{ name: a, when: { paymentId: ["6"] }, cap: { amount: "10" }, over: refuse }');
    expect(verdictOf(amounts, worldOf({ worth })).kind).toBe('send');
    expect(verdictOf(amounts, worldOf({ worth }), { ...PAYOUT, amount: '10.000000000000000001' }).kind).toBe('refuse');
  });
});

describe('an approval', () => {
  const POLICY = policyOf('{ name: four-eyes, cap: { usd: "1" }, over: { approve: { by: finance, quorum: 2 } } }');

  it.each([
    [[], 'approve', 2],
    [['ann'], 'approve', 1],
    [['ann', 'mallory'], 'approve', 1],
    [['ann', 'bob'], 'send', undefined],
  ])('of %j: %s', (persons, kind, missing) => {
    const verdict = verdictOf(POLICY, worldOf({ approvedBy: new Set(persons) }));
    expect(verdict).toMatchObject({ kind, ...(missing === undefined ? {} : { missing, by: 'finance' }) });
  });

  it('is ended by one rejection', () => {
    const world = worldOf({ approvedBy: new Set(['ann', 'bob']), rejectedBy: 'cy' });
    expect(verdictOf(POLICY, world)).toMatchObject({ kind: 'refuse', reason: 'cy rejected it' });
  });
});

describe('rules together', () => {
  it('are all asked, and the strictest counts, in any order', () => {
    const rules = [
      '{ name: ok, cap: { usd: "100" }, over: refuse }',
      '{ name: late, when: { usdAbove: "1" }, window: "Mon 18:00-19:00 UTC", over: wait }',
      '{ name: two, cap: { usd: "1" }, over: { approve: { by: finance, quorum: 1 } } }',
      '{ name: listed, when: { addressIn: deny.txt }, over: refuse }',
    ];
    const kinds = (world: PolicyWorld): string[] =>
      decide(policyOf(...rules), PAYOUT, world).all.map(({ kind }) => kind);
    expect(kinds(worldOf())).toEqual(['send', 'wait', 'approve']);
    expect(verdictOf(policyOf(...rules), worldOf()).kind).toBe('approve');
    expect(verdictOf(policyOf(...rules.toReversed()), worldOf()).kind).toBe('approve');
    expect(verdictOf(policyOf(...rules), worldOf({ approvedBy: new Set(['ann']) })).kind).toBe('wait');
    expect(verdictOf(policyOf(...rules), worldOf({ isListed: () => true })).kind).toBe('refuse');
  });

  it('hold a payout that none with a cap is about, where the policy says so', () => {
    const rules = ['{ name: btc, when: { paymentId: ["10"] }, cap: { amount: "1" }, over: refuse }'];
    expect(verdictOf(policyOf(...rules), worldOf()).kind).toBe('send');
    const strict: Policy = { ...policyOf(...rules), uncovered: 'hold' };
    expect(verdictOf(strict, worldOf())).toMatchObject({ kind: 'refuse', rule: 'default' });
    expect(verdictOf(strict, worldOf(), { ...PAYOUT, paymentId: 10, amount: '1' }).kind).toBe('send');
  });

  it('let a new address wait from the first time that it was seen, whatever was paid to it', () => {
    const policy = policyOf('{ name: cool, when: { address: new, usdAbove: "5" }, over: { wait: 24h } }');
    expect(verdictOf(policy, worldOf())).toMatchObject({ kind: 'wait', until: NOW + 24 * HOUR_MS });
    const seen = (ms: number): PolicyWorld => worldOf({ addressSeenAt: NOW - ms });
    expect(verdictOf(policy, seen(24 * HOUR_MS - 1)).kind).toBe('wait');
    expect(verdictOf(policy, seen(24 * HOUR_MS)).kind).toBe('send');
    expect(verdictOf(policy, worldOf({ worth: { kind: 'known', micros: 5_000_000n } })).kind).toBe('send');
  });
});

describe('compared with a model that keeps no windows', () => {
  const RUNS = Number(process.env['DECIDE_RUNS'] ?? 3_000);
  const limit = fc.bigInt({ min: 0n, max: 40n }).map(String);
  const over = fc.constantFrom(
    'refuse',
    'wait',
    '{ approve: { by: finance, quorum: 2 } }',
    '{ approve: { by: finance, quorum: 1 } }',
  );
  const condition = fc.constantFrom(
    '{}',
    '{ paymentId: ["6"] }',
    '{ paymentId: ["6", "7"] }',
    '{ usdAbove: "9" }',
    '{ addressIn: l }',
  );
  const capRule = fc
    .record({
      limit,
      over,
      condition,
      unit: fc.constantFrom('usd', 'amount', 'count'),
      within: fc.constantFrom('', ', within: 1h', ', within: 2h'),
      per: fc.constantFrom('', ', per: address', ', per: signer'),
    })
    .map(
      (r) =>
        `when: ${r.unit === 'amount' ? '{ paymentId: ["6"] }' : r.condition}, cap: { ${r.unit}: "${r.limit}"${r.within}${r.per} }, over: ${r.over}`,
    );
  const otherRule = fc.constantFrom(
    'when: { usdAbove: "9" }, window: "Mon 18:00-19:00 UTC", over: wait',
    'when: { usdAbove: "9" }, window: "Mon 09:00-11:00 UTC", over: refuse',
    'when: { address: new, usdAbove: "20" }, over: { wait: 24h }',
    'when: { addressIn: l }, over: refuse',
  );
  const rules = fc.array(fc.oneof({ weight: 4, arbitrary: capRule }, otherRule), { maxLength: 6 });
  const send = fc.record({
    paymentId: fc.constantFrom(6, 7),
    addressTo: fc.constantFrom('w1', 'w2', 'listed'),
    signer: fc.constantFrom('shop', 'other'),
    amount: fc.bigInt({ min: 1n, max: 20n * 10n ** 18n }).map((units) => units * 10n ** 18n),
    usd: fc.option(fc.bigInt({ min: 1n, max: 25_000_000n }), { nil: undefined, freq: 8 }),
    answeredAt: fc.option(fc.integer({ min: -3 * HOUR_MS, max: 0 }), { nil: undefined }),
  });

  it('decides alike', () => {
    const met = new Map<string, number>();
    fc.assert(
      fc.property(
        rules,
        fc.array(send, { maxLength: 8 }),
        send,
        fc.subarray(['ann', 'bob', 'eve']),
        fc.boolean(),
        (given, past, payout, approvedBy, strict) => {
          let policy: Policy;
          try {
            policy = {
              ...policyOf(...given.map((rule, index) => `{ name: r${index}, ${rule} }`)),
              uncovered: strict ? 'hold' : 'send',
            };
          } catch {
            return; // Rules that make no sense together are refused when they are read.
          }
          const known = past.filter(({ usd }) => usd !== undefined);
          const expected = naiveKind({
            policy,
            payout,
            past: known.map(atNow),
            now: NOW,
            seenAt: undefined,
            approvedBy,
            rejected: false,
          });
          const { verdict } = decide(policy, subjectOf(payout), {
            ...worldOf({ approvedBy: new Set(approvedBy), isListed: (_, key) => key.startsWith('listed') }),
            worth:
              payout.usd === undefined ? { kind: 'unknown', reason: 'none' } : { kind: 'known', micros: payout.usd },
            window: windowsOf(policy, known),
          });
          met.set(verdict.kind, (met.get(verdict.kind) ?? 0) + 1);
          expect(verdict.kind).toBe(expected);
        },
      ),
      { numRuns: RUNS },
    );
    for (const kind of ['send', 'wait', 'approve', 'refuse']) expect(met.get(kind) ?? 0).toBeGreaterThan(RUNS / 50);
  });

  const atNow = (past: PastSend): PastSend => ({
    ...past,
    answeredAt: past.answeredAt === undefined ? undefined : NOW + past.answeredAt,
  });
  const subjectOf = ({ paymentId, amount, addressTo, signer }: PastSend): typeof PAYOUT => ({
    paymentId,
    amount: fromUnits(amount),
    addressTo,
    signer,
  });

  /** Windows as a worker keeps them: each send goes into those of the rules that are about it. */
  function windowsOf(policy: Policy, past: readonly PastSend[]): PolicyWorld['window'] {
    const lengths = new Map(policy.rules.map(({ name, cap }) => [name, cap?.withinMs ?? 0]));
    const logs = new Map(policy.rules.map(({ name }) => [name, new SpendingLog(2 * HOUR_MS)]));
    const ordered = past.toSorted((one, other) => (one.answeredAt ?? Infinity) - (other.answeredAt ?? Infinity));
    for (const each of ordered) {
      for (const rule of policy.rules) {
        const { cap, when } = rule;
        if (cap?.withinMs === undefined || (when.paymentIds && !when.paymentIds.has(each.paymentId))) continue;
        if (when.addressIn !== undefined && !each.addressTo.startsWith('listed')) continue;
        if (when.usdAbove !== undefined && (each.usd ?? 0n) <= when.usdAbove) continue;
        const value = valueOf(cap, subjectOf(each), { kind: 'known', micros: each.usd ?? 0n });
        const log = logs.get(rule.name);
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
});

it('dollars are exact at 30 digits and 18 places, and never rounded down', () => {
  const digits = (length: number): fc.Arbitrary<string> =>
    fc.array(fc.integer({ min: 0, max: 9 }), { minLength: length, maxLength: length }).map((all) => all.join(''));
  fc.assert(
    fc.property(digits(29), digits(18), digits(11), digits(18), (whole, places, rateWhole, ratePlaces) => {
      const micros = worthInMicros(`1${whole}.${places}`, `1${rateWhole}.${ratePlaces}`);
      const exact = BigInt(`1${whole}${places}`) * BigInt(`1${rateWhole}${ratePlaces}`);
      expect(micros * 10n ** 30n >= exact && (micros - 1n) * 10n ** 30n < exact).toBe(true);
    }),
  );
});

import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parse } from 'yaml';
import { decide } from '../../../src/control/policy/decide.js';
import type { PolicyWorld, Verdict } from '../../../src/control/policy/rule.js';
import { parsePolicy, type Policy } from '../../../src/control/policy/policy.js';
import { SpendingLog } from '../../../src/control/policy/spending-log.js';
import { worthInMicros } from '../../../src/control/policy/values.js';
import { compareWithModel } from './compare-with-model.js';

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
    ...{ isListed: () => false, approvedBy: new Set(), rejectedBy: undefined, stranger: undefined },
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

  it('of what nobody of the keyring asked for is not enough, unless the policy lets applications name others', () => {
    const world = worldOf({ approvedBy: new Set(['ann', 'bob']), stranger: '"customer-7"' });
    const reason = expect.stringMatching(/^it asks for approvals, and no key .*\("customer-7"\).*requestedBy: any/);
    expect(verdictOf(POLICY, world)).toMatchObject({ kind: 'refuse', reason });
    expect(verdictOf({ ...POLICY, anyoneMayRequest: true }, world)).toMatchObject({ kind: 'send' });
    expect(verdictOf(POLICY, { ...world, worth: { kind: 'known', micros: 1n } })).toMatchObject({ kind: 'send' });
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

  it('with a cap let pass the very recipients of a list, and hold each tag of a wallet that is on it', () => {
    const named = '{ name: own, when: { addressIn: own.txt }, cap: { usd: "100" }, over: refuse }';
    const asked: string[] = [];
    const isListed: PolicyWorld['isListed'] = (list, addressTo, as) => {
      asked.push(`${list} ${addressTo} ${as}`);
      return as === 'wallet';
    };
    const strict: Policy = { ...policyOf(named), uncovered: 'hold' };
    const decision = decide(strict, { ...PAYOUT, addressTo: 'rExchange:66666' }, worldOf({ isListed }));
    expect(decision.all.map(({ kind, rule }) => `${rule} ${kind}`)).toEqual(['own send', 'default refuse']);
    expect(asked).toEqual(['own.txt rExchange:66666 wallet', 'own.txt rExchange:66666 recipient']);
    expect(verdictOf(strict, worldOf({ isListed: () => true })).kind).toBe('send');
    const denied = policyOf('{ name: denied, when: { addressIn: deny.txt }, over: refuse }');
    expect(verdictOf(denied, worldOf({ isListed }))).toMatchObject({ kind: 'refuse', rule: 'denied' });
  });

  it('hold an address that cannot be read, where one says so', () => {
    const policy = policyOf('{ name: odd, when: { address: unparsed }, over: refuse }');
    const kindOf = (addressTo: string): string => verdictOf(policy, worldOf(), { ...PAYOUT, addressTo }).kind;
    const right = 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4';
    expect(kindOf(right)).toBe('send');
    for (const odd of [right.replace('t4', 't5'), `${right}:5`, 'rExchange:1', 'bitcoincash:qA', 'wallet-1']) {
      expect([odd, kindOf(odd)]).toEqual([odd, 'refuse']);
    }
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

it('decides like a model that keeps no windows', () => {
  const runs = 3_000;
  const kinds = compareWithModel(runs);
  for (const kind of ['send', 'wait', 'approve', 'refuse']) expect(kinds.get(kind) ?? 0).toBeGreaterThan(runs / 50);
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

import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parse } from 'yaml';
import { decide } from '../../../src/control/policy/decide.js';
import { parsePolicy, type Policy } from '../../../src/control/policy/policy.js';
import type { PolicyWorld, Verdict } from '../../../src/control/policy/rule.js';
import { SpendingLog } from '../../../src/control/policy/spending-log.js';
import { worthInMicros } from '../../../src/control/policy/values.js';
import { DAY_MS, HOUR_MS } from '../support/signed.js';
import { compareWithModel } from './decide-model.js';

const NOW = Date.parse('2026-11-23T10:00:00Z');
const PAYOUT = { paymentId: 6, amount: '10', addressTo: 'wallet-1', signer: 'shop' };

function policyOf(...rules: string[]): Policy {
  const named = rules.map((rule, index) => `{ name: r${index}, ${rule} }`);
  const head = 'version: 1, platformId: "1", default: send, groups: { finance: [ann, bob, cy] }';
  return parsePolicy(parse(`{ ${head}, rules: [${named.join()}] }`, { schema: 'failsafe' }));
}

function worldOf(given: Partial<PolicyWorld> = {}, log = new SpendingLog(HOUR_MS)): PolicyWorld {
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
const worth = (micros: bigint): PolicyWorld => worldOf({ worth: { kind: 'known', micros } });

/** Something was spent in the window, and perhaps answered. */
function spent(value: bigint, answeredAt?: number, given: Partial<PolicyWorld> = {}): PolicyWorld {
  const log = new SpendingLog(HOUR_MS);
  const spend = log.begin('', value);
  if (answeredAt !== undefined) log.answer(spend, answeredAt);
  return worldOf(given, log);
}

const verdictOf = (policy: Policy, world = worldOf(), payout: Partial<typeof PAYOUT> = {}): Verdict =>
  decide(policy, { ...PAYOUT, ...payout }, world).verdict;

describe('a cap', () => {
  const ALONE = policyOf('cap: { usd: "10" }, over: refuse');
  const HOURLY = policyOf('cap: { usd: "15", within: 1h }, over: wait');
  const AMOUNTS = policyOf('when: { paymentId: ["6"] }, cap: { amount: "10" }, over: refuse');
  const unknown = worldOf({ worth: { kind: 'unknown', reason: 'the rate is 20 min old' } });

  it.each<[string, Policy, PolicyWorld, Verdict['kind'], string?]>([
    ['of one payout lets pass what equals it', ALONE, worth(10_000_000n), 'send'],
    ['of one payout, and a millionth more', ALONE, worth(10_000_001n), 'refuse'],
    ['of an hour lets pass what equals it', HOURLY, spent(5_000_000n, 0), 'send'],
    ['of an hour, and a millionth more', HOURLY, spent(5_000_001n, 0), 'wait'],
    ['that one alone exceeds never has room for it', HOURLY, worth(15_000_001n), 'refuse', 'more than 15.00 USD'],
    ['in dollars, where nobody knows the worth', ALONE, unknown, 'wait', '20 min old'],
    ['in amounts, which does not ask for it', AMOUNTS, unknown, 'send'],
  ])('%s', (_, policy, world, kind, reason = '') => {
    expect(verdictOf(policy, world)).toMatchObject({
      kind,
      ...(reason && { reason: expect.stringContaining(reason) }),
    });
  });

  it('in amounts is exact', () => {
    expect(verdictOf(AMOUNTS, unknown, { amount: '10.000000000000000001' }).kind).toBe('refuse');
  });

  it('says when there is room: so long after the answer, not after the begin, and not before there is one', () => {
    expect(verdictOf(HOURLY, spent(6_000_000n, 60_000, { now: 120_000 }))).toEqual({
      ...{ kind: 'wait', rule: 'r0', until: NOW + HOUR_MS - 60_000 },
      reason: '6.00 USD of 15.00 USD are spent, and it is 10.00 USD',
      waitsFor: { bucket: '', value: 10_000_000n },
    });
    expect(verdictOf(HOURLY, spent(6_000_000n))).toMatchObject({ kind: 'wait', until: undefined });
  });
});

describe('an approval', () => {
  const POLICY = policyOf('cap: { usd: "1" }, over: { approve: { by: finance, quorum: 2 } }');
  const BOTH = { approvedBy: new Set(['ann', 'bob']) };

  it.each([
    [[], { kind: 'approve', missing: 2, by: 'finance' }],
    [['ann', 'mallory'], { kind: 'approve', missing: 1 }],
  ])('of %j: %o', (persons, verdict) => {
    expect(verdictOf(POLICY, worldOf({ approvedBy: new Set(persons) }))).toMatchObject(verdict);
  });

  it('is ended by one rejection', () => {
    const verdict = verdictOf(POLICY, worldOf({ ...BOTH, rejectedBy: 'cy' }));
    expect(verdict).toMatchObject({ kind: 'refuse', reason: 'cy rejected it' });
  });

  it('of what nobody of the keyring asked for is not enough, unless the policy lets applications name others', () => {
    const world = worldOf({ ...BOTH, stranger: '"customer-7"' });
    const reason = expect.stringMatching(/^it asks for approvals, and no key .*\("customer-7"\).*requestedBy: any/);
    expect(verdictOf(POLICY, world)).toMatchObject({ kind: 'refuse', reason });
    expect(verdictOf({ ...POLICY, anyoneMayRequest: true }, world).kind).toBe('send');
    expect(verdictOf(POLICY, { ...world, worth: { kind: 'known', micros: 1n } }).kind).toBe('send');
  });
});

describe('rules together', () => {
  it('are all asked', () => {
    const policy = policyOf(
      'cap: { usd: "100" }, over: refuse',
      'when: { usdAbove: "1" }, window: "Mon 18:00-19:00 UTC", over: wait',
      'cap: { usd: "1" }, over: { approve: { by: finance, quorum: 1 } }',
      'when: { addressIn: deny.txt }, over: refuse',
    );
    expect(decide(policy, PAYOUT, worldOf()).all.map(({ kind }) => kind)).toEqual(['send', 'wait', 'approve']);
    expect(verdictOf(policy).kind).toBe('approve');
  });

  it('with a cap let pass the very recipients of a list, and hold each tag of a wallet that is on it', () => {
    const asked: string[] = [];
    const isListed: PolicyWorld['isListed'] = (list, addressTo, as) => {
      asked.push(`${list} ${addressTo} ${as}`);
      return as === 'wallet';
    };
    const own = policyOf('when: { addressIn: own.txt }, cap: { usd: "100" }, over: refuse');
    const strict: Policy = { ...own, uncovered: 'hold' };
    const { all } = decide(strict, { ...PAYOUT, addressTo: 'rExchange:66666' }, worldOf({ isListed }));
    expect(all.map(({ kind, rule }) => `${rule} ${kind}`)).toEqual(['r0 send', 'default refuse']);
    expect(asked).toEqual(['own.txt rExchange:66666 wallet', 'own.txt rExchange:66666 recipient']);
  });

  it('hold an address that cannot be read, where one says so', () => {
    const policy = policyOf('when: { address: unparsed }, over: refuse');
    const right = 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4';
    const odd = [right.replace('t4', 't5'), `${right}:5`, 'rExchange:1', 'bitcoincash:qA', 'wallet-1'];
    const kinds = [right, ...odd].map((addressTo) => verdictOf(policy, worldOf(), { addressTo }).kind);
    expect(kinds).toEqual(['send', ...odd.map(() => 'refuse')]);
  });

  it('let a new address wait from the first time that it was seen, whatever was paid to it', () => {
    const policy = policyOf('when: { address: new, usdAbove: "5" }, over: { wait: 24h }');
    expect(verdictOf(policy)).toMatchObject({ kind: 'wait', until: NOW + DAY_MS });
    const seen = (ms: number) => verdictOf(policy, worldOf({ addressSeenAt: NOW - ms })).kind;
    expect([seen(DAY_MS - 1), seen(DAY_MS)]).toEqual(['wait', 'send']);
    expect(verdictOf(policy, worth(5_000_000n)).kind).toBe('send');
  });
});

it('decides like a model that keeps no windows', () => {
  const runs = 2_000;
  const kinds = compareWithModel(runs);
  for (const kind of ['send', 'wait', 'approve', 'refuse']) expect(kinds.get(kind) ?? 0).toBeGreaterThan(runs / 50);
});

it('dollars are exact at 30 digits and 18 places, and never rounded down', () => {
  const digits = (length: number): fc.Arbitrary<string> => fc.stringMatching(new RegExp(`^[0-9]{${length}}$`));
  fc.assert(
    fc.property(digits(29), digits(18), digits(11), digits(18), (whole, places, rateWhole, ratePlaces) => {
      const micros = worthInMicros(`1${whole}.${places}`, `1${rateWhole}.${ratePlaces}`);
      const exact = BigInt(`1${whole}${places}`) * BigInt(`1${rateWhole}${ratePlaces}`);
      expect(micros * 10n ** 30n >= exact && (micros - 1n) * 10n ** 30n < exact).toBe(true);
    }),
  );
});

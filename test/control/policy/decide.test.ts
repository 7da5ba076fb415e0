import { expect, it } from '@jest/globals';
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

function policyOf(rule: string): Policy {
  const head = 'version: 1, platformId: "1", default: send, groups: { finance: [ann, bob, cy] }';
  return parsePolicy(parse(`{ ${head}, rules: [{ name: r0, ${rule} }] }`, { schema: 'failsafe' }));
}

/** Worth 10 dollars; in the window `log`. */
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
function spent(value: bigint, answeredAt?: number, now = 0): PolicyWorld {
  const log = new SpendingLog(HOUR_MS);
  const spend = log.begin('', value);
  if (answeredAt !== undefined) log.answer(spend, answeredAt);
  return worldOf({ now }, log);
}

const verdictOf = (policy: Policy, world = worldOf(), payout: Partial<typeof PAYOUT> = {}): Verdict =>
  decide(policy, { ...PAYOUT, ...payout }, world).verdict;

it('a cap lets pass what equals it, and no unit more; without a worth it waits', () => {
  const [alone, hourly] = [
    policyOf('cap: { usd: "10" }, over: refuse'),
    policyOf('cap: { usd: "15", within: 1h }, over: wait'),
  ];
  const amounts = policyOf('when: { paymentId: ["6"] }, cap: { amount: "10" }, over: refuse');
  const unknown = worldOf({ worth: { kind: 'unknown', reason: 'the rate is 20 min old' } });
  expect([10_000_000n, 10_000_001n].map((micros) => verdictOf(alone, worth(micros)).kind)).toEqual(['send', 'refuse']);
  expect([5_000_000n, 5_000_001n].map((sum) => verdictOf(hourly, spent(sum, 0)).kind)).toEqual(['send', 'wait']);
  const exact = ['10', '10.000000000000000001'].map((amount) => verdictOf(amounts, unknown, { amount }).kind);
  expect(exact).toEqual(['send', 'refuse']);
  expect(verdictOf(alone, unknown)).toMatchObject({ kind: 'wait', reason: expect.stringContaining('20 min old') });
  // What one alone exceeds never has room for it.
  const never = { kind: 'refuse', reason: expect.stringContaining('more than 15.00 USD') };
  expect(verdictOf(hourly, worth(15_000_001n))).toMatchObject(never);
  // There is room so long after the answer, not after the begin, and not before there is one.
  expect(verdictOf(hourly, spent(6_000_000n, 60_000, 120_000))).toEqual({
    ...{ kind: 'wait', rule: 'r0', until: NOW + HOUR_MS - 60_000 },
    reason: '6.00 USD of 15.00 USD are spent, and it is 10.00 USD',
    waitsFor: { bucket: '', value: 10_000_000n },
  });
  expect(verdictOf(hourly, spent(6_000_000n))).toMatchObject({ kind: 'wait', until: undefined });
});

it('an approval is ended by one rejection, and says how many people are missing', () => {
  const policy = policyOf('cap: { usd: "1" }, over: { approve: { by: finance, quorum: 2 } }');
  const of = (approvedBy: string[], rejectedBy?: string, stranger?: string): PolicyWorld =>
    worldOf({ approvedBy: new Set(approvedBy), rejectedBy, stranger });
  expect(verdictOf(policy, of(['ann', 'mallory']))).toMatchObject({ kind: 'approve', missing: 1, by: 'finance' });
  expect(verdictOf(policy, of(['ann', 'bob'], 'cy'))).toMatchObject({ kind: 'refuse', reason: 'cy rejected it' });
  // Of what nobody of the keyring asked for it is not enough, unless the policy lets applications name others.
  const strange = of(['ann', 'bob'], undefined, '"customer-7"');
  const reason = expect.stringMatching(/^it asks for approvals, and no key .*\("customer-7"\).*requestedBy: any/);
  expect(verdictOf(policy, strange)).toMatchObject({ kind: 'refuse', reason });
  expect(verdictOf({ ...policy, anyoneMayRequest: true }, strange).kind).toBe('send');
  expect(verdictOf(policy, { ...strange, worth: { kind: 'known', micros: 1n } }).kind).toBe('send');
});

it('an address that cannot be read is held, where a rule says so', () => {
  const policy = policyOf('when: { address: unparsed }, over: refuse');
  const right = 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4';
  const kindOf = (addressTo: string): string => verdictOf(policy, worldOf(), { addressTo }).kind;
  expect([right, right.replace('t4', 't5'), `${right}:5`].map(kindOf)).toEqual(['send', 'refuse', 'refuse']);
});

it('a new address waits from the first time that it was seen, whatever was paid to it', () => {
  const policy = policyOf('when: { address: new, usdAbove: "5" }, over: { wait: 24h }');
  expect(verdictOf(policy)).toMatchObject({ kind: 'wait', until: NOW + DAY_MS });
  const seen = (ms: number) => verdictOf(policy, worldOf({ addressSeenAt: NOW - ms })).kind;
  expect([seen(DAY_MS - 1), seen(DAY_MS)]).toEqual(['wait', 'send']);
  expect(verdictOf(policy, worth(5_000_000n)).kind).toBe('send');
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

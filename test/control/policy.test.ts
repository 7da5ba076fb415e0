import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parse } from 'yaml';
import { decide, describePolicy, toHold } from '../../src/control/policy/decide.js';
import { parseOfficeHours } from '../../src/control/policy/office-hours.js';
import { parsePolicy, type Policy } from '../../src/control/policy/policy.js';
import type { PolicyWorld, Verdict } from '../../src/control/policy/rule.js';
import { SpendingLog } from '../../src/control/policy/spending-log.js';
import { worthInMicros } from '../../src/control/policy/values.js';
import { problemsOf as findProblems } from './support/folder.js';
import { HOUR_MS } from './support/signed.js';

const APPROVE = 'over: { approve: { by: finance, quorum: 2 } }';
const FULL = `
version: 1
platformId: "4242"
default: hold
usd: { maxAge: 15m, maxMove: "25%", pinned: { "6": "1" } }
groups: { finance: [alice, bob, carol] }
approvals: { expireAfter: 24h }
rules:
  - { name: never-more, cap: { usd: "50000" }, over: refuse }
  - { name: four-eyes, cap: { usd: "5000" }, ${APPROVE} }
  - { name: day, cap: { usd: "100000", within: 24h }, over: wait }
  - { name: address-day, cap: { usd: "10000", within: 24h, per: address }, ${APPROVE} }
  - { name: btc-day, when: { paymentId: ["10"] }, cap: { amount: "2.5", within: 24h }, over: wait }
  - { name: flood, cap: { count: "500", within: 1h, per: signer }, over: wait }
  - { name: cool-down, when: { address: new, usdAbove: "200" }, over: { wait: 24h } }
  - { name: denied, when: { addressIn: deny.txt }, over: refuse }
  - { name: office-hours, when: { usdAbove: "1000" }, window: "Mon-Fri 08:00-18:00 Europe/Berlin", over: wait }
`;

const read = (text: string): Policy => parsePolicy(parse(text, { schema: 'failsafe' }));
const withRule = (rule: string) =>
  `{ version: 1, platformId: "1", default: send, groups: { finance: [ann, bob] }, rules: [{ name: a, ${rule} }] }`;

const problemsOf = (text: string) => findProblems(() => read(text));

describe('a policy', () => {
  it('is said in words, each rule with who must approve, and what no rule covers', () => {
    const meanings = describePolicy(read(FULL));
    expect(meanings.map(({ rule }) => rule)).toEqual([...read(FULL).rules.map(({ name }) => name), 'default']);
    expect(meanings.at(-1)?.meaning).toBe('a payout that no rule with a cap covers: it is held');
    const asked = meanings.filter(({ meaning }) => /needs 2 approvals by finance/.test(meaning));
    expect(asked.length).toBeGreaterThan(0);
    for (const { meaning } of asked) expect(meaning).toMatch(/ \(alice, bob, carol\)$/);
    expect(describePolicy(read(withRule(`cap: { usd: "5", within: 1h }, over: wait`)))).toEqual([
      { rule: 'a', meaning: 'every payout: at most 5.00 USD in any 1 h, else it waits until there is room' },
      { rule: 'default', meaning: 'a payout that no rule is about: it is sent' },
    ]);
  });

  it('is read with every kind of rule, exactly', () => {
    const policy = read(FULL);
    expect(policy).toMatchObject({ platformId: 4242, uncovered: 'hold', approvalsExpireAfterMs: 86_400_000 });
    expect(policy.usd).toMatchObject({ maxAgeMs: 900_000, maxMovePercent: 25, pinned: new Map([[6, '1']]) });
    const rules = policy.rules.map(({ name, cap, over }) =>
      [name, over.kind, ...(cap ? [cap.unit, cap.limit, cap.withinMs ?? '-', cap.per ?? '-'] : [])].join(' '),
    );
    expect(rules).toEqual([
      'never-more refuse usd 50000000000 - -',
      'four-eyes approve usd 5000000000 - -',
      'day wait usd 100000000000 86400000 -',
      'address-day approve usd 10000000000 86400000 address',
      `btc-day wait amount 25${'0'.repeat(35)} 86400000 -`,
      'flood wait count 500 3600000 signer',
      ...['cool-down cool_down', 'denied refuse', 'office-hours wait'],
    ]);
  });

  it('has groups of ids, exact amounts, and requesters of the keyring, unless it lets applications name others', () => {
    const changed = (from: string, to: string) => FULL.replace(from, to);
    const groups = '[alice, bob, carol]';
    const ids = new Set(['alice', 'bob', 'carol-lee']);
    expect(read(changed(groups, '[Alice, bob, Carol Lee]')).groups.get('finance')).toEqual(ids);
    const twice = problemsOf(changed(groups, '[alice, ALICE]')).join();
    expect(twice).toMatch(/is 2, and the group finance has 1 person/);
    const amount = `${'9'.repeat(30)}.${'9'.repeat(17)}1`;
    const exact = BigInt(`${amount.replace('.', '')}${'0'.repeat(18)}`);
    expect(read(changed('"2.5"', `"${amount}"`)).rules[4]?.cap?.limit).toBe(exact);
    expect(read(FULL)).toMatchObject({ anyoneMayRequest: false });
    const any = { anyoneMayRequest: true, approvalsExpireAfterMs: 86_400_000 };
    expect(read(changed('{ expireAfter: 24h }', '{ requestedBy: any }'))).toMatchObject(any);
  });

  const DOLLAR = 'cap: { usd: "1" }';
  it.each<[string, string, RegExp]>([
    ['two units', 'cap: { usd: "1", count: "2", within: 1h }, over: refuse', /cap needs one of usd, amount and count/],
    ['a bucket without a window', 'cap: { usd: "1", per: address }, over: refuse', /cap\.per needs within/],
    ['a count of one payout', 'cap: { count: "1" }, over: refuse', /cap\.count needs within/],
    ['several currencies', 'cap: { amount: "1", within: 1h }, over: wait', /cap\.amount needs when: \{ paymentId/],
    ['a wait without end', `${DOLLAR}, over: wait`, /over is wait, which would never end/],
    ['a rule about everything', 'over: refuse', /when is missing/],
    ['a cap and hours', `${DOLLAR}, window: "Mon 08:00-09:00 UTC", over: refuse`, /window cannot stand beside a cap/],
    ['a cool-down of all', 'when: { usdAbove: "1" }, over: { wait: 24h }', /over\.wait with a duration goes with/],
    ['no cool-down of what is new', 'when: { address: new }, over: refuse', /when\.address is new for as long as/],
    ['a group that is none', `${DOLLAR}, ${APPROVE.replace('finance', 'board')}`, /\S* names no group/],
    ['too high a quorum', `${DOLLAR}, ${APPROVE.replace('2', '3')}`, /\S* is 3, and the group finance has 2 people/],
    ['a sign', 'cap: { usd: "-1" }, over: refuse', /cap\.usd must be US dollars/],
    ['a span of months', 'cap: { usd: "1", within: 32d }, over: wait', /\S* .*of at most 31 days \(got "32d"\)/],
    ['a span beyond 7 days', 'cap: { usd: "1", within: 169h }, over: wait', /cap\.within must be at most 7d/],
  ])('is refused with %s', (_, rule, message) => {
    expect(problemsOf(withRule(rule)).join('\n')).toMatch(new RegExp(`^rules\\.0\\.${message.source}`));
  });

  it('names every problem at once', () => {
    expect(problemsOf(FULL.replace('quorum: 2', 'quorum: 9').replace('name: flood', 'name: day'))).toEqual([
      'rules.5.name is also the name of rules.2 (got "day")',
      'rules.1.over.approve.quorum is 9, and the group finance has 3 people',
    ]);
    const field = FULL.replace('"50000"', '"50000", euro: "1"').replace('hold', 'maybe');
    expect(problemsOf(field)).toEqual([
      'default must be hold or send (got "maybe")',
      expect.stringMatching(/^rules\.0\.cap\.euro is not a known field/),
    ]);
  });
});

describe('office hours', () => {
  const at = (time: string) => Date.parse(`2026-${time}Z`);
  const hoursOf = (hours: string) => parseOfficeHours(`${hours} Europe/Berlin`);
  const WEEK = 'Mon-Fri 08:00-18:00, Sat 09:00-12:00';
  const NIGHT = 'Sat-Sun 00:00-03:00';

  it('are open from their first minute until their last, in summer and in winter', () => {
    const opens = ['11-23T07:00:00', '11-23T16:59:59', '11-28T08:00:00', '07-20T06:00:00'];
    const closed = ['11-23T06:59:59', '11-23T17:00:00', '11-28T11:00:00', '11-29T09:00:00', '07-20T16:00:00'];
    const isOpen = (time: string) => hoursOf(WEEK).isOpen(at(time));
    expect([opens.filter(isOpen), closed.filter(isOpen)]).toEqual([opens, []]);
    // The hour that the clocks show twice.
    const night = ['10-25T01:59:00', '10-25T02:00:00'].map((time) => hoursOf(NIGHT).isOpen(at(time)));
    expect(night).toEqual([true, false]);
  });

  it.each([
    [WEEK, '11-23T10:00', '11-23T10:00'],
    [WEEK, '11-23T18:30', '11-24T07:00'],
    [WEEK, '11-28T12:00', '11-30T07:00'],
    // The clocks change on this Sunday: Monday begins an hour later by UTC.
    [WEEK, '10-24T12:00', '10-26T07:00'],
    [WEEK, '03-28T12:00', '03-30T06:00'],
    // The change leaves their beginning out.
    ['Sun 02:30-04:00', '03-28T20:00', '03-29T01:00'],
    [NIGHT, '10-24T21:00', '10-24T22:00'],
    // The change leaves the whole opening out: the next one is a week later.
    ['Sun 02:00-03:00', '03-23T12:00', '04-05T00:00'],
    ['Sun 02:00-03:00', '03-29T12:00', '04-05T00:00'],
  ])('%s: after %s they open at %s', (hours, time, opens) => {
    expect(hoursOf(hours).opensAt(at(time))).toBe(at(opens));
  });

  it.each([
    ...['Mon', 'Mon 8:00-9:00 UTC', 'Mon 09:00-08:00 UTC', 'Xyz 08:00-09:00 UTC', 'Mon 08:60-09:00 UTC'],
    'Mon 08:00-09:00 Nowhere/Land',
  ])('are none in %j', (text) => {
    expect(() => parseOfficeHours(text)).toThrow(/^must/);
  });
});

// A Monday.
const NOW = Date.parse('2026-11-23T10:00:00Z');
const PAYOUT = { paymentId: 6, amount: '10', addressTo: 'wallet-1', signer: 'shop' };

function policyOf(rules: string | readonly string[], uncovered = 'send'): Policy {
  const head = `version: 1, platformId: "1", default: ${uncovered}, groups: { finance: [ann, bob, cy] }`;
  const named = [rules].flat().map((rule, index) => `{ name: r${index}, ${rule} }`);
  return parsePolicy(parse(`{ ${head}, rules: [${named.join()}] }`, { schema: 'failsafe' }));
}

/** Worth 10 dollars; in the window `log`; the list has two lines: `listed` and `tagged:1`. */
function worldOf(given: Partial<PolicyWorld> = {}, log = new SpendingLog(HOUR_MS)): PolicyWorld {
  return {
    ...{ now: 0, wallNow: NOW, worth: { kind: 'known', micros: 10_000_000n }, addressSeenAt: undefined },
    ...{ approvedBy: new Set(), stranger: undefined },
    isListed: (_, addressTo, as) =>
      as === 'wallet' ? /^(listed|tagged)(:|$)/.test(addressTo) : /^(listed|tagged:1)$/.test(addressTo),
    window: () => ({
      sum: (now) => log.sum('', HOUR_MS, now),
      freeAt: (most, now) => log.freeAt('', HOUR_MS, most, now),
      ahead: 0n,
    }),
    ...given,
  };
}
const worth = (micros: bigint): PolicyWorld => worldOf({ worth: { kind: 'known', micros } });
const UNKNOWN = worldOf({ worth: { kind: 'unknown', reason: 'the rate is 20 min old' } });

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
  expect([10_000_000n, 10_000_001n].map((micros) => verdictOf(alone, worth(micros)).kind)).toEqual(['send', 'refuse']);
  expect([5_000_000n, 5_000_001n].map((sum) => verdictOf(hourly, spent(sum, 0)).kind)).toEqual(['send', 'wait']);
  const exact = ['10', '10.000000000000000001'].map((amount) => verdictOf(amounts, UNKNOWN, { amount }).kind);
  expect(exact).toEqual(['send', 'refuse']);
  expect(verdictOf(alone, UNKNOWN)).toMatchObject({ kind: 'wait', reason: expect.stringContaining('20 min old') });
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

it('an approval says how many people are missing', () => {
  const policy = policyOf('cap: { usd: "1" }, over: { approve: { by: finance, quorum: 2 } }');
  const of = (approvedBy: string[], stranger?: string): PolicyWorld =>
    worldOf({ approvedBy: new Set(approvedBy), stranger });
  expect(verdictOf(policy, of(['ann', 'mallory']))).toMatchObject({ kind: 'approve', missing: 1, by: 'finance' });
  expect(verdictOf(policy, of(['ann', 'bob'])).kind).toBe('send');
  // Of what nobody of the keyring asked for it is not enough, unless the policy lets applications name others.
  const strange = of(['ann', 'bob'], '"customer-7"');
  const reason = expect.stringMatching(/^it asks for approvals, and no key .*\("customer-7"\).*requestedBy: any/);
  expect(verdictOf(policy, strange)).toMatchObject({ kind: 'refuse', reason });
  expect(verdictOf({ ...policy, anyoneMayRequest: true }, strange).kind).toBe('send');
  expect(verdictOf(policy, { ...strange, worth: { kind: 'known', micros: 1n } }).kind).toBe('send');
});

it('a rule that cannot be checked holds that payout alone, and says why', () => {
  const policy = policyOf([
    'cap: { count: "5", within: 1h }, over: wait',
    'window: "Mon-Sun 00:00-24:00 UTC", over: wait',
  ]);
  const window = (): never => {
    throw new RangeError('Invalid time value');
  };
  const reason = 'it could not be checked: Invalid time value';
  const broken = { kind: 'refuse', rule: 'r0', reason };
  expect(verdictOf(policy, worldOf({ window }))).toMatchObject(broken);
  expect(toHold({ ...broken, until: undefined } as never)).toMatchObject({ message: expect.stringContaining(reason) });
  expect(verdictOf(policy, worldOf()).kind).toBe('send');
});

it('the strictest rule counts, in whatever order they stand, and of those that wait the one that waits longest', () => {
  const wait = 'cap: { usd: "15", within: 1h }, over: wait';
  const cool = 'when: { address: new }, over: { wait: 24h }';
  const ask = 'cap: { usd: "15", within: 1h }, over: { approve: { by: finance, quorum: 1 } }';
  const refuse = 'when: { paymentId: ["6", "8"] }, over: refuse';
  const passes = 'cap: { usd: "50" }, over: refuse';
  const full = spent(6_000_000n, 0);
  for (const [strict, ...others] of [
    [wait, passes],
    [cool, wait],
    [ask, cool],
    [refuse, ask, wait],
  ] as const) {
    expect(verdictOf(policyOf([strict, ...others]), full).rule).toBe('r0');
    expect(verdictOf(policyOf([...others, strict]), full).rule).toBe(`r${others.length}`);
  }
  // Who waits for room stands before it, and an approval makes none.
  const behind = worldOf({ window: () => ({ sum: () => 0n, freeAt: Number, ahead: 6_000_000n }) });
  expect(verdictOf(policyOf(wait), behind)).toMatchObject({ kind: 'wait', until: NOW - 1_000_000 });
  expect(verdictOf(policyOf(ask), behind).kind).toBe('send');
});

it('a rule is about what all its conditions name, and holds where a worth that nobody knows decides', () => {
  const kindOf = (when: string, payout: Partial<typeof PAYOUT> = {}, world?: PolicyWorld) =>
    verdictOf(policyOf(`when: { ${when} }, over: refuse`), world, payout).kind;
  const addresses = ['listed', 'listed:5', 'tagged:2', 'other'];
  expect(addresses.map((addressTo) => kindOf('addressIn: l', { addressTo }))).toEqual([
    ...['refuse', 'refuse', 'refuse', 'send'],
  ]);
  expect([9_000_000n, 9_000_001n].map((micros) => kindOf('usdAbove: "9"', {}, worth(micros)))).toEqual([
    'send',
    'refuse',
  ]);
  expect(kindOf('usdAbove: "9"', {}, UNKNOWN)).toBe('wait');
  expect(kindOf('usdAbove: "9", paymentId: ["7"]', {}, UNKNOWN)).toBe('send');
  const [open, closed] = ['Mon 09:00-11:00 UTC', 'Mon 18:00-19:00 UTC'].map((hours) =>
    policyOf(`window: "${hours}", over: wait`),
  );
  expect(verdictOf(open as Policy).kind).toBe('send');
  expect(verdictOf(closed as Policy)).toMatchObject({ kind: 'wait', until: NOW + 8 * HOUR_MS });
});

it('under default: hold a payout needs a rule with a cap, and of a list its very recipient', () => {
  const kindOf = (rule: string, addressTo = 'listed', world = worldOf()) =>
    verdictOf(policyOf(rule, 'hold'), world, { addressTo }).kind;
  expect(kindOf('cap: { usd: "10" }, over: refuse')).toBe('send');
  expect(kindOf('when: { usdAbove: "5" }, cap: { usd: "10" }, over: refuse', '', UNKNOWN)).toBe('wait');
  expect(verdictOf(policyOf('window: "Mon 09:00-11:00 UTC", over: wait', 'hold'))).toMatchObject({
    ...{ kind: 'refuse', rule: 'default' },
  });
  expect(kindOf('when: { paymentId: ["7"] }, cap: { usd: "10" }, over: refuse')).toBe('refuse');
  const own = 'when: { addressIn: l }, cap: { usd: "10" }, over: refuse';
  const addresses = ['listed', 'tagged:1', 'listed:5', 'tagged:2', 'other'];
  expect(addresses.map((addressTo) => kindOf(own, addressTo))).toEqual(['send', 'send', 'refuse', 'refuse', 'refuse']);
});

it('a window is that of the wallet, of the signer or of all, in the unit of the cap', () => {
  const asked = (cap: string): unknown => {
    const seen: unknown[] = [];
    const window: PolicyWorld['window'] = (rule, bucket) => ({
      ...{ sum: () => BigInt(seen.push(rule, bucket)), ahead: 0n },
      freeAt: (most) => void seen.push(most),
    });
    const rule = `when: { paymentId: ["6"] }, cap: { ${cap}, within: 1h }, over: wait`;
    verdictOf(policyOf(rule), worldOf({ window }), { addressTo: 'wallet-1:7' });
    return seen;
  };
  // What may be spent besides it, so that there is room.
  expect(asked('usd: "10", per: address')).toEqual(['r0', 'wallet-1', 0n]);
  expect(asked('amount: "11", per: signer')).toEqual(['r0', 'shop']);
  expect(asked('count: "2"')).toEqual(['r0', '', 1n]);
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

import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { parseOfficeHours } from '../../../src/control/policy/office-hours.js';
import { parsePolicy, type Policy } from '../../../src/control/policy/policy.js';
import { InvalidConfigError } from '../../../src/base/errors.js';

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
const withRule = (rule: string): string =>
  `{ version: 1, platformId: "1", default: send, groups: { finance: [ann, bob] }, rules: [{ name: a, ${rule} }] }`;

function problemsOf(text: string): string[] {
  try {
    read(text);
  } catch (error) {
    if (error instanceof InvalidConfigError) return error.problems.map(({ field, message }) => `${field} ${message}`);
    throw error;
  }
  return [];
}

describe('a policy', () => {
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
    const changed = (from: string, to: string): string => FULL.replace(from, to);
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
    ['a group that is none', `${DOLLAR}, ${APPROVE.replace('finance', 'board')}`, /\S* names no group \(got "board"\)/],
    ['too high a quorum', `${DOLLAR}, ${APPROVE.replace('2', '3')}`, /\S* is 3, and the group finance has 2 people/],
    ['no hours', 'when: { usdAbove: "1" }, window: always, over: wait', /window must be days, .*\(got "always"\)/],
    ['a sign', 'cap: { usd: "-1" }, over: refuse', /cap\.usd must be US dollars/],
    ['a span beyond 7 days', 'cap: { usd: "1", within: 169h }, over: wait', /cap\.within must be at most 7d/],
    ['a span of months', 'cap: { usd: "1", within: 32d }, over: wait', /\S* .*of at most 31 days \(got "32d"\)/],
  ])('is refused with %s', (_, rule, message) => {
    expect(problemsOf(withRule(rule)).join('\n')).toMatch(new RegExp(`^rules\\.0\\.${message.source}`));
  });

  it('names every problem at once', () => {
    const text = FULL.replace('"50000"', '50k').replace('hold', 'maybe');
    expect(problemsOf(text)).toEqual([
      expect.stringMatching(/^default must be hold or send \(got "maybe"\)$/),
      expect.stringMatching(/^rules\.0\.cap\.usd must be/),
    ]);
    expect(problemsOf(FULL.replace('quorum: 2', 'quorum: 9').replace('name: flood', 'name: day'))).toEqual([
      'rules.5.name is also the name of rules.2 (got "day")',
      'rules.1.over.approve.quorum is 9, and the group finance has 3 people',
    ]);
    const field = FULL.replace('"50000"', '"50000", euro: "1"');
    expect(problemsOf(field)).toEqual([expect.stringMatching(/^rules\.0\.cap\.euro is not a known field/)]);
  });
});

describe('office hours', () => {
  const at = (time: string): number => Date.parse(`2026-${time}Z`);
  const hoursOf = (hours: string) => parseOfficeHours(`${hours} Europe/Berlin`);
  const WEEK = 'Mon-Fri 08:00-18:00, Sat 09:00-12:00';
  const NIGHT = 'Sat-Sun 00:00-03:00';

  it('are open from their first minute until their last, in summer and in winter', () => {
    const opens = ['11-23T07:00:00', '11-23T16:59:59', '11-28T08:00:00', '07-20T06:00:00'];
    const closed = ['11-23T06:59:59', '11-23T17:00:00', '11-28T11:00:00', '11-29T09:00:00', '07-20T16:00:00'];
    const isOpen = (time: string): boolean => hoursOf(WEEK).isOpen(at(time));
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

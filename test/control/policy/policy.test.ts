import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { parsePolicy, type Policy } from '../../../src/control/policy/policy.js';
import { InvalidConfigError } from '../../../src/base/errors.js';

const FULL = `
version: 1
platformId: "4242"
default: hold
usd: { maxAge: 15m, maxMove: "25%", pinned: { "6": "1" } }
groups: { finance: [alice, bob, carol] }
approvals: { expireAfter: 24h }
rules:
  - { name: never-more, cap: { usd: "50000" }, over: refuse }
  - { name: four-eyes, cap: { usd: "5000" }, over: { approve: { by: finance, quorum: 2 } } }
  - { name: day, cap: { usd: "100000", within: 24h }, over: wait }
  - { name: address-day, cap: { usd: "10000", within: 24h, per: address }, over: { approve: { by: finance, quorum: 1 } } }
  - { name: btc-day, when: { paymentId: ["10"] }, cap: { amount: "2.5", within: 24h }, over: wait }
  - { name: flood, cap: { count: "500", within: 1h, per: signer }, over: wait }
  - { name: cool-down, when: { address: new, usdAbove: "200" }, over: { wait: 24h } }
  - { name: denied, when: { addressIn: deny.txt }, over: refuse }
  - { name: office-hours, when: { usdAbove: "1000" }, window: "Mon-Fri 08:00-18:00 Europe/Berlin", over: wait }
`;

const read = (text: string): Policy => parsePolicy(parse(text, { schema: 'failsafe' }));

/** A policy of one rule. */
const withRule = (rule: string): string =>
  `{ version: 1, platformId: "1", default: send, groups: { finance: [ann, bob] }, rules: [${rule}] }`;

function problemsOf(text: string): string[] {
  try {
    read(text);
  } catch (error) {
    if (error instanceof InvalidConfigError) return error.problems.map(({ field, message }) => `${field} ${message}`);
    throw error;
  }
  return [];
}

describe('the approvals of a policy', () => {
  const withApprovals = (approvals: string): string => FULL.replace('{ expireAfter: 24h }', approvals);

  it('are of what people of the keyring requested, unless it lets applications name others', () => {
    expect(read(FULL)).toMatchObject({ anyoneMayRequest: false });
    expect(read(withApprovals('{ requestedBy: any }'))).toMatchObject({
      ...{ anyoneMayRequest: true, approvalsExpireAfterMs: 86_400_000 },
    });
    expect(problemsOf(withApprovals('{ requestedBy: all }'))).toEqual([
      'approvals.requestedBy must be keyring or any (got "all")',
    ]);
  });

  it('are of groups of ids', () => {
    const groups = (text: string): string => FULL.replace('[alice, bob, carol]', text);
    expect(read(groups('[Alice, bob, Carol Lee]')).groups.get('finance')).toEqual(
      new Set(['alice', 'bob', 'carol-lee']),
    );
    expect(problemsOf(groups('[alice, ALICE]')).join()).toMatch(/is 2, and the group finance has 1 person/);
    expect(problemsOf(groups('[alice, "\u0410lice"]')).join()).toMatch(/groups\.finance\.1 must be an id.*U\+0410/);
  });
});

describe('a policy', () => {
  it('is read with every kind of rule, exactly', () => {
    const policy = read(FULL);
    expect(policy).toMatchObject({ platformId: 4242, uncovered: 'hold', approvalsExpireAfterMs: 86_400_000 });
    expect(policy.usd).toMatchObject({ maxAgeMs: 900_000, maxMovePercent: 25, pinned: new Map([[6, '1']]) });
    expect(policy.groups.get('finance')).toEqual(new Set(['alice', 'bob', 'carol']));
    expect(
      policy.rules.map(({ name, cap, over }) => [name, cap?.unit, cap?.limit, cap?.withinMs, cap?.per, over.kind]),
    ).toEqual([
      ['never-more', 'usd', 50_000_000_000n, undefined, undefined, 'refuse'],
      ['four-eyes', 'usd', 5_000_000_000n, undefined, undefined, 'approve'],
      ['day', 'usd', 100_000_000_000n, 86_400_000, undefined, 'wait'],
      ['address-day', 'usd', 10_000_000_000n, 86_400_000, 'address', 'approve'],
      ['btc-day', 'amount', 25n * 10n ** 35n, 86_400_000, undefined, 'wait'],
      ['flood', 'count', 500n, 3_600_000, 'signer', 'wait'],
      ['cool-down', undefined, undefined, undefined, undefined, 'cool_down'],
      ['denied', undefined, undefined, undefined, undefined, 'refuse'],
      ['office-hours', undefined, undefined, undefined, undefined, 'wait'],
    ]);
  });

  it('has exact amounts with 30 digits and 18 places', () => {
    const amount = `${'9'.repeat(30)}.${'9'.repeat(17)}1`;
    const { rules } = read(
      withRule(`{ name: a, when: { paymentId: ["6"] }, cap: { amount: "${amount}" }, over: refuse }`),
    );
    expect(rules[0]?.cap?.limit).toBe(BigInt(`${amount.replace('.', '')}${'0'.repeat(18)}`));
  });

  it.each<[string, string, RegExp]>([
    [
      'an unknown field',
      '{ name: a, caps: { usd: "1" }, when: { address: new }, over: refuse }',
      /^rules\.0\.caps is not a known field$/,
    ],
    [
      'two units',
      '{ name: a, cap: { usd: "1", count: "2", within: 1h }, over: refuse }',
      /^rules\.0\.cap needs one of usd, amount and count/,
    ],
    ['no unit', '{ name: a, cap: { within: 1h }, over: wait }', /^rules\.0\.cap needs one of/],
    [
      'a bucket without a window',
      '{ name: a, cap: { usd: "1", per: address }, over: refuse }',
      /^rules\.0\.cap\.per needs within/,
    ],
    ['a count of one payout', '{ name: a, cap: { count: "1" }, over: refuse }', /^rules\.0\.cap\.count needs within/],
    [
      'amounts of several currencies',
      '{ name: a, cap: { amount: "1", within: 1h }, over: wait }',
      /^rules\.0\.cap\.amount needs when: \{ paymentId/,
    ],
    [
      'a wait without end',
      '{ name: a, cap: { usd: "1" }, over: wait }',
      /^rules\.0\.over is wait, which would never end/,
    ],
    ['a rule about everything', '{ name: a, over: refuse }', /^rules\.0\.when is missing/],
    [
      'a cap and hours',
      '{ name: a, cap: { usd: "1" }, window: "Mon 08:00-09:00 UTC", over: refuse }',
      /^rules\.0\.window cannot stand beside a cap/,
    ],
    [
      'a cool-down of every address',
      '{ name: a, when: { usdAbove: "1" }, over: { wait: 24h } }',
      /^rules\.0\.over\.wait with a duration goes with/,
    ],
    [
      'a group that is none',
      '{ name: a, cap: { usd: "1" }, over: { approve: { by: board, quorum: 1 } } }',
      /names no group \(got "board"\)/,
    ],
    [
      'a quorum that the group cannot reach',
      '{ name: a, cap: { usd: "1" }, over: { approve: { by: finance, quorum: 3 } } }',
      /is 3, and the group finance has 2 people/,
    ],
    [
      'hours that are none',
      '{ name: a, when: { usdAbove: "1" }, window: "always", over: wait }',
      /^rules\.0\.window must be days, hours and a time zone .*\(got "always"\)/,
    ],
    [
      'an exponent',
      '{ name: a, cap: { usd: "1e3" }, over: refuse }',
      /^rules\.0\.cap\.usd must be US dollars .*\(got "1e3"\)/,
    ],
    ['a sign', '{ name: a, cap: { usd: "-1" }, over: refuse }', /must be US dollars/],
    [
      'a duration without a unit',
      '{ name: a, cap: { usd: "1", within: 24 }, over: wait }',
      /^rules\.0\.cap\.within must be a duration/,
    ],
    [
      'a duration of months',
      '{ name: a, cap: { usd: "1", within: 32d }, over: wait }',
      /of at most 31 days \(got "32d"\)/,
    ],
  ])('is refused with %s', (_, rule, message) => {
    expect(problemsOf(withRule(rule)).join('\n')).toMatch(message);
  });

  it('names every problem at once', () => {
    const text = FULL.replace('"50000"', '50k')
      .replace('quorum: 2', 'quorum: 9')
      .replace('name: flood', 'name: day')
      .replace('hold', 'maybe');
    expect(problemsOf(text)).toEqual([
      expect.stringMatching(/^default must be hold or send \(got "maybe"\)$/),
      expect.stringMatching(/^rules\.0\.cap\.usd must be/),
    ]);
    expect(problemsOf(text.replace('50k', '50000').replace('maybe', 'hold'))).toEqual([
      'rules.5.name is also the name of rules.2 (got "day")',
      'rules.1.over.approve.quorum is 9, and the group finance has 3 people',
    ]);
  });
});

import { beforeEach, describe, expect, it } from '@jest/globals';
import type { SpendEvent } from '../../../src/ledger/control-record.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { HOUR_MS, DAY_MS } from '../support/signed.js';
import { DOUBT_MS, HOURLY, policyOf, PolicyRig, TestClock } from './support.js';

let clock: TestClock;
beforeEach(() => {
  clock = new TestClock();
});

const openRig = (...rules: readonly object[]): PolicyRig => new PolicyRig(clock, policyOf(...rules));

/** Sends it, and it is accepted at once, or what is said happens. */
async function pay(
  rig: PolicyRig,
  payoutId: string,
  amount: string,
  given: Partial<Payout> = {},
  outcome: Parameters<NonNullable<Awaited<ReturnType<PolicyRig['begin']>>>>[0] = 'accepted',
): Promise<void> {
  const finish = await rig.begin(rig.payout(payoutId, amount, given));
  if (finish === undefined) throw new Error(`${payoutId} is not let pass`);
  finish(outcome);
}

describe('what a window counts', () => {
  it('a send from its begin on, until the window has passed since its answer', async () => {
    const rig = openRig(HOURLY);
    const finish = await rig.begin(rig.payout('a', '60'));
    clock.pass(5_000);
    expect(rig.ask(rig.payout('b', '50'))).toMatch(/^wait: .*60 of 100 are spent, and it is 50/);
    finish?.('accepted');
    clock.pass(HOUR_MS - 1);
    expect(rig.ask(rig.payout('b', '50'))).toMatch(/^wait/);
    clock.pass(1);
    expect(rig.ask(rig.payout('b', '50'))).toBe('send');
  });

  it.each(['rejected', 'not_sent'] as const)('not what was %s', async (outcome) => {
    const rig = openRig(HOURLY);
    await pay(rig, 'a', '100', {}, outcome);
    expect(rig.ask(rig.payout('b', '100'))).toBe('send');
  });

  it('what got no answer, until no request can be on its way any more and the window has passed', async () => {
    const rig = openRig(HOURLY);
    await pay(rig, 'a', '100', {}, 'unknown');
    clock.pass(HOUR_MS + DOUBT_MS - 1);
    expect(rig.ask(rig.payout('b', '100'))).toMatch(/^wait/);
    clock.pass(1);
    expect(rig.ask(rig.payout('b', '100'))).toBe('send');
  });

  it.each([
    ['unknown', /^send/],
    ['accepted', /^wait/],
  ] as const)(
    'no attempt of the payout itself that is sent once more, unless it was accepted: %s',
    async (outcome, said) => {
      const rig = openRig(HOURLY);
      await pay(rig, 'a', '100', {}, outcome);
      expect(rig.ask(rig.payout('a', '100', { attempt: 1 }))).toMatch(said);
    },
  );

  it('what was spent before a restart, longer by as much as the clocks of two hosts may differ', async () => {
    const rig = openRig(HOURLY);
    await pay(rig, 'a', '100');
    clock.pass(HOUR_MS / 2);
    rig.restart();
    clock.pass(HOUR_MS / 2 + 1_999);
    expect(rig.ask(rig.payout('b', '1'))).toMatch(/^wait/);
    clock.pass(1);
    expect(rig.ask(rig.payout('b', '1'))).toBe('send');
  });

  it('what another process spent while this one stood by, of which nothing piles up meanwhile', async () => {
    const [rig, other] = [openRig(HOURLY), openRig(HOURLY)];
    await pay(other, 'a', '100');
    rig.lines.push(...other.lines);
    await rig.journal.reload();
    rig.authority.standBy();
    expect(rig.journal.takeSpends()).toEqual([]);
    clock.pass(HOUR_MS - 1_000);
    rig.authority.takeOver([]);
    expect(rig.ask(rig.payout('b', '1'))).toMatch(/^wait/);
    clock.pass(3_000);
    expect(rig.ask(rig.payout('b', '1'))).toBe('send');
  });

  it('in a process by the monotonic clock alone', async () => {
    const rig = openRig(HOURLY);
    await pay(rig, 'a', '100');
    clock.wallOffsetMs += 48 * HOUR_MS;
    expect(rig.ask(rig.payout('b', '1'))).toMatch(/^wait/);
  });

  it('one wallet in all its spellings, and with any tag, and each wallet by itself', async () => {
    const rig = openRig({ ...HOURLY, cap: { ...HOURLY.cap, per: 'address' } });
    const ton = 'DKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff';
    const raw = '0:ca6e321c7cce9ecedf0a8ca2492ec8592494aa5fb5ce0387dff96ef6af982a3e';
    await pay(rig, 'a', '60', { addressTo: `EQ${ton}-W72r5gqPrHF` });
    await pay(rig, 'b', '40', { addressTo: `UQ${ton}+W72r5gqPuwA:tag` });
    for (const addressTo of [`EQ${ton}+W72r5gqPrHF`, `UQ${ton}-W72r5gqPuwA`, raw, raw.toUpperCase(), `${raw}:5`]) {
      const said = rig.ask(rig.payout('c', '1', { addressTo }));
      expect([addressTo, said]).toEqual([addressTo, expect.stringMatching(/^wait: .*100 of 100 are spent/)]);
    }
    expect(rig.ask(rig.payout('d', '100', { addressTo: raw.replace('ca6e', 'ca6f') }))).toBe('send');
  });
});

describe('two witnesses', () => {
  const begun = (id: string, amount: string): SpendEvent => ({
    ...{ kind: 'begun', at: clock.wallNow() },
    spend: { id, payoutId: id, attempt: 1, paymentId: 6, amount, addressTo: 'wallet' },
  });

  it('count both what only the journal knows and what only the ledger knows', async () => {
    const rig = openRig(HOURLY);
    await pay(rig, 'a', '60');
    rig.restart([begun('of another host', '30')]);
    expect(rig.ask(rig.payout('b', '11'))).toMatch(/^wait/);
    rig.restart([begun('of another host', '30')]);
    expect(rig.ask(rig.payout('c', '10'))).toBe('send');
  });

  it.each<[string, () => readonly SpendEvent[], string, RegExp]>([
    ['the same spend once', () => [begun('a 1 t1', '60')], '40', /^send/],
    ['the same spend, not less', () => [begun('a 1 t1', '60')], '41', /^wait/],
    ['what a ledger that was emptied has forgotten', () => [], '41', /^wait/],
    [
      'what a ledger says was not paid',
      () => [begun('a 1 t1', '0.01'), { kind: 'unpaid', id: 'a 1 t1' }],
      '41',
      /^wait/,
    ],
    ['what a ledger was swollen by', () => [begun('x', '9'.repeat(20))], '1', /^wait/],
  ])('count %s', async (_, ledger, amount, said) => {
    const rig = openRig(HOURLY);
    await pay(rig, 'a', '60');
    rig.restart(ledger());
    expect(rig.ask(rig.payout('b', amount))).toMatch(said);
  });
});

describe('who waits for room', () => {
  it('is served in order: a small one does not overtake', async () => {
    const rig = openRig(HOURLY);
    await pay(rig, 'a', '60');
    expect(rig.ask(rig.payout('large', '80'))).toMatch(/^wait/);
    expect(rig.ask(rig.payout('small', '20'))).toMatch(/^wait: .*80 are wanted by payouts before it/);
    clock.pass(HOUR_MS);
    expect(rig.authority.findFronts()).toEqual([['large', 'small']]);
    expect(rig.ask(rig.payout('small', '20'))).toBe('send');
    expect(rig.ask(rig.payout('late', '1'))).toMatch(/^wait/);
    expect(rig.ask(rig.payout('large', '80'))).toBe('send');
  });

  it('keeps nobody waiting once it is gone, or is held for another reason', async () => {
    const rig = openRig(HOURLY);
    await pay(rig, 'a', '60');
    rig.ask(rig.payout('large', '80'));
    rig.authority.leave('large');
    expect(rig.ask(rig.payout('small', '20'))).toBe('send');
  });
});

describe('dollars', () => {
  const DOLLARS = { name: 'day', cap: { usd: '100', within: '24h' }, over: 'wait' };

  /** The gateway names a rate near the one that the journal has. */
  function nameRate({ authority }: PolicyRig, paymentId: number, rate: string): void {
    const anchors = new Map([[paymentId, { rate, at: clock.wallNow() }]]);
    authority.rates.update([[paymentId, rate]], anchors, { now: clock.now(), wallNow: clock.wallNow() });
  }

  it('are what the gateway said at the begin of the send', async () => {
    const rig = openRig(DOLLARS);
    expect(rig.ask(rig.payout('a', '10'))).toMatch(/^wait: .*worth in dollars is not known/);
    nameRate(rig, 6, '5');
    await pay(rig, 'a', '10');
    clock.pass(60_000);
    nameRate(rig, 6, '5.5');
    // 50 then, and 55 now.
    expect(rig.ask(rig.payout('b', '9.1'))).toMatch(/^wait: .*50.00 USD of 100.00 USD are spent, and it is 50.05 USD/);
    rig.authority.leave('b');
    expect(rig.ask(rig.payout('c', '9'))).toBe('send');
  });

  it('of what was sent before there was a policy are those of now, and unknown where there is no rate', async () => {
    const [before, rig] = [openRig(), openRig(DOLLARS)];
    await pay(before, 'a', '10', { paymentId: 7 });
    rig.lines.push(...before.lines);
    rig.restart();
    nameRate(rig, 6, '1');
    expect(rig.ask(rig.payout('b', '60'))).toMatch(/^wait: .*earlier sends of currency 7 have no rate/);
    expect(rig.authority.usage[0]?.unknown).toBe('earlier sends of currency 7 have no rate in dollars');
    nameRate(rig, 7, '5');
    expect(rig.ask(rig.payout('b', '60'))).toMatch(/^wait: .*50.00 USD of 100.00 USD are spent/);
  });
});

describe('a new address', () => {
  const COOL_DOWN = { name: 'cool-down', when: { address: 'new' }, over: { wait: '24h' } };
  const see = async (rig: PolicyRig): Promise<void> =>
    rig.journal.noteSeen({ at: clock.wallNow(), addresses: rig.authority.takeUnseen() });

  it('waits from when it was first seen, also after a restart', async () => {
    const rig = openRig(COOL_DOWN);
    const payout = rig.payout('a', '1');
    expect(rig.ask(payout)).toMatch(/^wait: .*its address is new/);
    await see(rig);
    expect(rig.lines).toContainEqual({ seen: expect.objectContaining({ addresses: ['wallet-a'] }) });
    clock.pass(DAY_MS - 1);
    rig.restart();
    expect(rig.ask(payout)).toMatch(/^wait/);
    clock.pass(1);
    expect(rig.ask(payout)).toBe('send');
    expect(rig.authority.takeUnseen()).toEqual([]);
  });

  it.each([
    ['bitcoincash:qA', 'bitcoincash:qB'],
    [`0:${'0A'.repeat(32)}`, `0:${'0B'.repeat(32)}`],
    ['0:HEXA', '0:HEXB'],
    ['rExchange:12345', 'rExchange:66666'],
    ['rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh:1', 'rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh:2'],
  ])('%s seen before, %s is new', async (before, after) => {
    const rig = openRig(COOL_DOWN);
    rig.ask(rig.payout('a', '1', { addressTo: before }));
    await see(rig);
    clock.pass(DAY_MS);
    expect(rig.ask(rig.payout('a', '1', { addressTo: before }))).toBe('send');
    expect(rig.ask(rig.payout('b', '1', { addressTo: after }))).toMatch(/^wait: .*its address is new/);
  });

  it('is held before its turn, and judged again when its time has come', () => {
    const rig = openRig(COOL_DOWN, HOURLY);
    expect(rig.authority.checkEarly(rig.payout('a', '1'))).toMatchObject({ reason: 'wait', rule: 'cool-down' });
    expect(rig.authority.findDue(10)).toEqual([]);
    clock.pass(DAY_MS);
    expect(rig.authority.findDue(10)).toEqual(['a']);
  });
});

it('another policy counts from the next question on, with what was spent under the one before', async () => {
  const capOf = (amount: string, name = 'hour') => ({ ...HOURLY, name, cap: { amount, within: '1h' } });
  const rig = openRig(capOf('50'));
  await pay(rig, 'a', '50');
  expect(rig.ask(rig.payout('b', '20'))).toMatch(/^wait/);
  rig.current.policy = policyOf(capOf('70', 'other'));
  expect(rig.ask(rig.payout('b', '20'))).toBe('send');
  expect(rig.ask(rig.payout('c', '21'))).toMatch(/^wait: Rule other/);
});

describe('the usage of windows', () => {
  const WALLET = {
    name: 'wallet',
    when: { paymentId: ['6'] },
    cap: { count: '4', within: '1h', per: 'address' },
    over: 'refuse',
  };
  const NOTHING = { bucket: '', spent: '0', wanted: '0', ratio: 0 };

  it('says of each what is spent, what waits for room, and for whom', async () => {
    const rig = openRig(HOURLY, WALLET);
    expect(rig.authority.usage.map(({ buckets }) => buckets)).toEqual([[NOTHING], []]);
    await pay(rig, 'a', '30', { addressTo: 'x' });
    await pay(rig, 'b', '12.5', { addressTo: 'y' });
    await pay(rig, 'c', '20', { addressTo: 'y' });
    rig.ask(rig.payout('waits', '40', { addressTo: 'z' }));
    const about = { withinMs: HOUR_MS, unknown: null };
    expect(rig.authority.usage).toEqual([
      {
        ...{ ...about, rule: 'hour', unit: 'amount', limit: '100', per: null },
        buckets: [{ bucket: '', spent: '62.5', wanted: '40', ratio: 0.625 }],
      },
      {
        ...{ ...about, rule: 'wallet', unit: 'count', limit: '4', per: 'address' },
        buckets: [
          { bucket: 'y', spent: '2', wanted: '0', ratio: 0.5 },
          { bucket: 'x', spent: '1', wanted: '0', ratio: 0.25 },
        ],
      },
    ]);
  });

  it('shows ten addresses at most, and none that counts no more', async () => {
    const rig = openRig(WALLET);
    for (let number = 0; number < 12; number += 1) await pay(rig, `p${number}`, '1', { addressTo: `w${number}` });
    expect(rig.authority.usage[0]?.buckets).toHaveLength(10);
    clock.pass(HOUR_MS);
    expect(rig.authority.usage[0]?.buckets).toEqual([]);
  });
});

import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Spend } from '../../../src/ledger/control-record.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { DOUBT_MS, policyOf, PolicyRig, TestClock } from './support.js';

const HOUR_MS = 3_600_000;
const HOURLY = { name: 'hour', when: { paymentId: ['6'] }, cap: { amount: '100', within: '1h' }, over: 'wait' };

let clock: TestClock;
beforeEach(() => {
  clock = new TestClock();
});

const openRig = (...rules: readonly object[]): PolicyRig => new PolicyRig(clock, policyOf(...rules));

/** Sends it, and it is accepted at once. */
async function pay(rig: PolicyRig, payoutId: string, amount: string, given: Partial<Payout> = {}): Promise<void> {
  const finish = await rig.begin(rig.payout(payoutId, amount, given));
  if (finish === undefined) throw new Error(`${payoutId} is not let pass`);
  finish('accepted');
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

  it('what equals the cap', async () => {
    const rig = openRig(HOURLY);
    await pay(rig, 'a', '60');
    expect(rig.ask(rig.payout('b', '40'))).toBe('send');
    expect(rig.ask(rig.payout('b', '40.000000000000000001'))).toMatch(/^wait/);
  });

  it.each(['rejected', 'not_sent'] as const)('not what was %s', async (outcome) => {
    const rig = openRig(HOURLY);
    (await rig.begin(rig.payout('a', '100')))?.(outcome);
    expect(rig.ask(rig.payout('b', '100'))).toBe('send');
  });

  it('what got no answer, until no request can be on its way any more and the window has passed', async () => {
    const rig = openRig(HOURLY);
    (await rig.begin(rig.payout('a', '100')))?.('unknown');
    clock.pass(HOUR_MS + DOUBT_MS - 1);
    expect(rig.ask(rig.payout('b', '100'))).toMatch(/^wait/);
    clock.pass(1);
    expect(rig.ask(rig.payout('b', '100'))).toBe('send');
  });

  it('no attempt of the payout itself that is to be sent once more, unless the gateway accepted it', async () => {
    const rig = openRig(HOURLY);
    (await rig.begin(rig.payout('a', '100')))?.('unknown');
    expect(rig.ask(rig.payout('a', '100', { attempt: 1 }))).toBe('send');
    const other = openRig(HOURLY);
    await pay(other, 'b', '100');
    expect(other.ask(other.payout('b', '100', { attempt: 1 }))).toMatch(/^wait/);
  });

  it('what was spent before a restart, longer by as much as the clocks of two hosts may differ', async () => {
    const rig = openRig(HOURLY);
    await pay(rig, 'a', '100');
    clock.pass(HOUR_MS / 2);
    rig.restart();
    expect(rig.ask(rig.payout('b', '1'))).toMatch(/^wait/);
    clock.pass(HOUR_MS / 2 + 1_999);
    expect(rig.ask(rig.payout('b', '1'))).toMatch(/^wait/);
    clock.pass(1);
    expect(rig.ask(rig.payout('b', '1'))).toBe('send');
  });

  it('what another process spent while this one stood by, of which nothing piles up meanwhile', async () => {
    const rig = openRig(HOURLY);
    const other = new PolicyRig(clock, policyOf(HOURLY));
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

  it('a bucket by itself', async () => {
    const rig = openRig({ ...HOURLY, cap: { ...HOURLY.cap, per: 'address' } });
    await pay(rig, 'a', '100', { addressTo: '0xAb' });
    expect(rig.ask(rig.payout('b', '1', { addressTo: '0xaB' }))).toMatch(/^wait/);
    expect(rig.ask(rig.payout('c', '100', { addressTo: '0xcd' }))).toBe('send');
  });
});

describe('two witnesses', () => {
  const spend = (id: string, amount: string): Spend => ({
    ...{ id, payoutId: id, attempt: 1, paymentId: 6, amount, addressTo: 'wallet' },
  });
  const begun = (id: string, amount: string): { kind: 'begun'; spend: Spend; at: number } => ({
    ...{ kind: 'begun', spend: spend(id, amount), at: clock.wallNow() },
  });

  it('count both what only the journal knows and what only the ledger knows', async () => {
    const rig = openRig(HOURLY);
    await pay(rig, 'a', '60');
    rig.restart([begun('of another host', '30')]);
    expect(rig.ask(rig.payout('b', '11'))).toMatch(/^wait/);
    expect(rig.ask(rig.payout('c', '10'))).toMatch(/^wait: .*11 are wanted by payouts before it/);
    rig.restart([begun('of another host', '30')]);
    expect(rig.ask(rig.payout('c', '10'))).toBe('send');
  });

  it('count the same spend once', async () => {
    const rig = openRig(HOURLY);
    await pay(rig, 'a', '60');
    rig.restart([begun('a 1 t1', '60')]);
    expect(rig.ask(rig.payout('b', '40'))).toBe('send');
  });

  it('a ledger that was emptied, or that says that nothing was paid, forgets nothing that the journal has', async () => {
    const rig = openRig(HOURLY);
    await pay(rig, 'a', '100');
    rig.restart([]);
    expect(rig.ask(rig.payout('b', '1'))).toMatch(/^wait/);
    rig.restart([begun('a 1 t1', '0.01'), { kind: 'unpaid', id: 'a 1 t1' }]);
    expect(rig.ask(rig.payout('b', '1'))).toMatch(/^wait/);
  });

  it('a ledger that was swollen only holds', () => {
    const rig = openRig(HOURLY);
    rig.restart([begun('x', '99999999999999999999')]);
    expect(rig.ask(rig.payout('b', '1'))).toMatch(/^wait/);
  });
});

describe('who waits for room', () => {
  it('is served in order: a small one does not overtake', async () => {
    const rig = openRig(HOURLY);
    await pay(rig, 'a', '60');
    expect(rig.ask(rig.payout('large', '80'))).toMatch(/^wait/);
    expect(rig.ask(rig.payout('small', '20'))).toMatch(/^wait: .*80 are wanted by payouts before it/);
    clock.pass(HOUR_MS);
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

  it('is found once there is room, from the front on', async () => {
    const rig = openRig(HOURLY);
    await pay(rig, 'a', '100');
    rig.ask(rig.payout('b', '50'));
    rig.ask(rig.payout('c', '50'));
    clock.pass(HOUR_MS);
    expect(rig.authority.findFronts()).toEqual([['b', 'c']]);
  });
});

/** The gateway names a rate near the one that the journal has. */
function nameRate({ authority }: PolicyRig, paymentId: number, rate: string): void {
  const anchors = new Map([[paymentId, { rate, at: clock.wallNow() }]]);
  authority.rates.update([[paymentId, rate]], anchors, { now: clock.now(), wallNow: clock.wallNow() });
}

describe('dollars', () => {
  const DOLLARS = { name: 'day', cap: { usd: '100', within: '24h' }, over: 'wait' };

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
    const before = new PolicyRig(clock, policyOf());
    await pay(before, 'a', '10', { paymentId: 7 });
    const rig = new PolicyRig(clock, policyOf(DOLLARS));
    rig.lines.push(...before.lines);
    rig.restart();
    nameRate(rig, 6, '1');
    expect(rig.ask(rig.payout('b', '60'))).toMatch(/^wait: .*earlier sends of currency 7 have no rate/);
    nameRate(rig, 7, '5');
    expect(rig.ask(rig.payout('b', '60'))).toMatch(/^wait: .*50.00 USD of 100.00 USD are spent/);
  });
});

it('one wallet in all its spellings, and with any tag, has one cap of its own', async () => {
  const cap = { amount: '100', within: '1h', per: 'address' };
  const rig = openRig({ ...HOURLY, cap });
  const ton = 'DKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff';
  const raw = '0:ca6e321c7cce9ecedf0a8ca2492ec8592494aa5fb5ce0387dff96ef6af982a3e';
  await pay(rig, 'a', '60', { addressTo: `EQ${ton}-W72r5gqPrHF` });
  await pay(rig, 'b', '40', { addressTo: `UQ${ton}+W72r5gqPuwA:tag` });
  for (const addressTo of [`EQ${ton}+W72r5gqPrHF`, `UQ${ton}-W72r5gqPuwA`, raw, raw.toUpperCase(), `${raw}:5`]) {
    expect([addressTo, rig.ask(rig.payout('c', '1', { addressTo }))]).toEqual([
      addressTo,
      expect.stringMatching(/^wait: .*100 of 100 are spent/),
    ]);
  }
  expect(rig.ask(rig.payout('d', '100', { addressTo: raw.replace('ca6e', 'ca6f') }))).toBe('send');
});

describe('a new address', () => {
  const COOL_DOWN = { name: 'cool-down', when: { address: 'new' }, over: { wait: '24h' } };

  it('waits from when it was first seen, also after a restart', async () => {
    const rig = openRig(COOL_DOWN);
    const payout = rig.payout('a', '1');
    expect(rig.ask(payout)).toMatch(/^wait: .*its address is new/);
    const addresses = rig.authority.takeUnseen();
    expect(addresses).toEqual(['wallet-a']);
    await rig.journal.noteSeen({ at: clock.wallNow(), addresses });
    clock.pass(24 * HOUR_MS - 1);
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
    await rig.journal.noteSeen({ at: clock.wallNow(), addresses: rig.authority.takeUnseen() });
    clock.pass(24 * HOUR_MS);
    expect(rig.ask(rig.payout('a', '1', { addressTo: before }))).toBe('send');
    expect(rig.ask(rig.payout('b', '1', { addressTo: after }))).toMatch(/^wait: .*its address is new/);
  });

  it('is held before its turn, and judged again when its time has come', () => {
    const rig = openRig(COOL_DOWN, HOURLY);
    expect(rig.authority.checkEarly(rig.payout('a', '1'))).toMatchObject({ reason: 'wait', rule: 'cool-down' });
    expect(rig.authority.findDue(10)).toEqual([]);
    clock.pass(24 * HOUR_MS);
    expect(rig.authority.findDue(10)).toEqual(['a']);
  });
});

describe('another policy', () => {
  it('counts from the next question on, with what was spent under the one before', async () => {
    const rig = openRig({ ...HOURLY, cap: { amount: '50', within: '1h' } });
    await pay(rig, 'a', '50');
    expect(rig.ask(rig.payout('b', '20'))).toMatch(/^wait/);
    rig.current.policy = policyOf({ ...HOURLY, name: 'other', cap: { amount: '70', within: '1h' } });
    expect(rig.ask(rig.payout('b', '20'))).toBe('send');
    expect(rig.ask(rig.payout('c', '21'))).toMatch(/^wait: Rule other/);
  });
});

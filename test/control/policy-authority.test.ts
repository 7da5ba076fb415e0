import { beforeEach, describe, expect, it } from '@jest/globals';
import { hashApproval, paymentOf } from '../../src/control/approvals/approval.js';
import { readPolicyFile } from '../../src/control/policy/policy-file.js';
import { parsePolicy } from '../../src/control/policy/policy.js';
import { SignedAuthority } from '../../src/control/worker/signed-authority.js';
import { walletAndTagKey } from '../../src/gateway/wallet.js';
import type { SignedApproval, SpendEvent } from '../../src/ledger/control-record.js';
import type { Payout } from '../../src/ledger/payout.js';
import { MemoryJournal } from '../doubles/memory-journal.js';
import { useFolder } from './support/folder.js';
import { keyEntry, keyringOf, testKey } from './support/keys.js';
import { DAY_MS, entryOf, HOUR_MS, intentHashOf, iso, PLATFORM, signApproval, signIntent } from './support/signed.js';
import { DOUBT_MS, HOURLY, policyOf, PolicyRig, type SendOutcome, TestClock } from './support/policy-rig.js';

let clock: TestClock;
beforeEach(() => {
  clock = new TestClock();
});

const openRig = (...rules: readonly object[]): PolicyRig => new PolicyRig(clock, policyOf(...rules));

/** Sends it; what is said comes of it. */
async function pay(
  rig: PolicyRig,
  payoutId: string,
  amount: string,
  given: Partial<Payout> = {},
  outcome: SendOutcome = 'accepted',
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
    expect(rig.askFor('b', '50')).toMatch(/^wait: .*60 of 100 of currency 6 are spent, and it is 50/);
    finish?.('accepted');
    clock.pass(HOUR_MS - 1);
    // In a process the monotonic clock alone counts.
    clock.wallOffsetMs += 48 * HOUR_MS;
    expect(rig.askFor('b', '50')).toMatch(/^wait/);
    clock.pass(1);
    expect(rig.askFor('b', '50')).toBe('send');
  });

  it('not what was rejected, or proved not to have been sent', async () => {
    for (const outcome of ['rejected', 'not_sent'] as const) {
      const rig = openRig(HOURLY);
      await pay(rig, 'a', '100', {}, outcome);
      expect(rig.askFor('b', '100')).toBe('send');
    }
  });

  it('what got no answer, until no request can be on its way any more and the window has passed', async () => {
    const rig = openRig(HOURLY);
    await pay(rig, 'a', '100', {}, 'unknown');
    clock.pass(HOUR_MS + DOUBT_MS - 1);
    expect(rig.askFor('b', '100')).toMatch(/^wait/);
    clock.pass(1);
    expect(rig.askFor('b', '100')).toBe('send');
  });

  it('what got its answer later than that as if it had got none', async () => {
    const rig = openRig(HOURLY);
    const finish = await rig.begin(rig.payout('a', '100'));
    clock.pass(DOUBT_MS + 1_000);
    rig.authority.catchUp();
    finish?.('accepted');
    clock.pass(HOUR_MS - 1_000);
    // Another policy begins to count again.
    rig.current.policy = policyOf({ ...HOURLY, name: 'other' });
    expect(rig.askFor('b', '100')).toBe('send');
  });

  it('what got no answer for no shorter than what was answered late before it: a hold names the very moment', async () => {
    const rig = openRig(HOURLY);
    await rig.begin(rig.payout('a', '60'));
    const finish = await rig.begin(rig.payout('b', '40'));
    clock.pass(DOUBT_MS + 5_000);
    finish?.('accepted');
    const until = iso(clock.wallNow() + HOUR_MS);
    expect(rig.authority.permit(rig.payout('c', '50'))).toMatchObject({ hold: { until } });
  });

  it('no attempt of the payout itself that is sent once more, unless it was accepted', async () => {
    for (const [outcome, said] of [
      ['unknown', /^send/],
      ['accepted', /^wait/],
    ] as const) {
      const rig = openRig(HOURLY);
      await pay(rig, 'a', '100', {}, outcome);
      expect(rig.askFor('a', '100', { attempt: 1 })).toMatch(said);
    }
  });

  it('what was spent before a restart, longer by as much as the clocks of two hosts may differ', async () => {
    const rig = openRig(HOURLY);
    await pay(rig, 'a', '100');
    clock.pass(HOUR_MS / 2);
    rig.restart();
    clock.pass(HOUR_MS / 2 + 1_999);
    expect(rig.askFor('b', '1')).toMatch(/^wait/);
    clock.pass(1);
    expect(rig.askFor('b', '1')).toBe('send');
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
    expect(rig.askFor('b', '1')).toMatch(/^wait/);
    clock.pass(3_000);
    expect(rig.askFor('b', '1')).toBe('send');
  });
});

describe('two witnesses', () => {
  const begun = (id: string, amount: string): SpendEvent => ({
    ...{ kind: 'begun', at: clock.wallNow() },
    spend: { id, payoutId: id, attempt: 1, paymentId: 6, amount, addressTo: 'wallet', inFlightMs: DOUBT_MS },
  });

  it.each<[string, () => readonly SpendEvent[], string, RegExp]>([
    ['the same spend once', () => [begun('a 1 t1', '60')], '40', /^send/],
    ['the same spend, not less', () => [begun('a 1 t1', '60')], '41', /^wait/],
    ['what only the ledger knows, too', () => [begun('of another host', '30')], '11', /^wait/],
    ['no more than both', () => [begun('of another host', '30')], '10', /^send/],
    ['what a ledger that was emptied has forgotten', () => [], '41', /^wait/],
    ['what it says was not paid', () => [begun('a 1 t1', '1'), { kind: 'unpaid', id: 'a 1 t1' }], '41', /^wait/],
    ['what a ledger was swollen by', () => [begun('x', '9'.repeat(20))], '1', /^wait/],
  ])('count %s', async (_, ledger, amount, said) => {
    const rig = openRig(HOURLY);
    await pay(rig, 'a', '60');
    rig.restart(ledger());
    expect(rig.askFor('b', amount)).toMatch(said);
  });
});

it('who waits for room is served in order: a small one overtakes no large one that has not left', async () => {
  const rig = openRig(HOURLY);
  await pay(rig, 'a', '60');
  const [large, small] = [rig.payout('large', '80'), rig.payout('small', '20')];
  expect(rig.ask(large)).toMatch(/^wait/);
  expect(rig.ask(small)).toMatch(/^wait: .*80 are wanted by payouts before it/);
  clock.pass(HOUR_MS);
  expect(rig.authority.findFronts()).toEqual([['large', 'small']]);
  expect(rig.askFor('late', '1')).toMatch(/^wait/);
  expect([rig.ask(small), rig.ask(large)]).toEqual(['send', 'send']);
  rig.authority.leave('large');
  expect(rig.askFor('late', '1')).toBe('send');
});

describe('dollars', () => {
  const DOLLARS = { name: 'day', cap: { usd: '100', within: '24h' }, over: 'wait' };

  /** The gateway names a rate near the one that the journal has. */
  function nameRate({ authority }: PolicyRig, paymentId: number, rate: string) {
    const anchors = new Map([[paymentId, { rate, at: clock.wallNow() }]]);
    authority.rates.update([[paymentId, rate]], anchors, { now: clock.now(), wallNow: clock.wallNow() });
  }

  it('are what the gateway said at the begin of the send', async () => {
    const rig = openRig(DOLLARS);
    expect(rig.askFor('a', '10')).toMatch(/^wait: .*worth in dollars is not known/);
    nameRate(rig, 6, '5');
    await pay(rig, 'a', '10');
    clock.pass(60_000);
    nameRate(rig, 6, '5.5');
    // 50 then, and 55 now.
    expect(rig.askFor('b', '9.1')).toMatch(/^wait: .*50.00 USD of 100.00 USD are spent, and it is 50.05 USD/);
    rig.authority.leave('b');
    expect(rig.askFor('c', '9')).toBe('send');
  });

  it('of what was sent before there was a policy are those of now, and unknown where there is no rate', async () => {
    const [before, rig] = [openRig(), openRig(DOLLARS)];
    await pay(before, 'a', '10', { paymentId: 7 });
    rig.lines.push(...before.lines);
    rig.restart();
    nameRate(rig, 6, '1');
    expect(rig.askFor('b', '60')).toMatch(/^wait: .*earlier sends of currency 7 have no rate/);
    expect(rig.authority.usage[0]?.unknown).toBe('earlier sends of currency 7 have no rate in dollars');
    nameRate(rig, 7, '5');
    expect(rig.askFor('b', '60')).toMatch(/^wait: .*50.00 USD of 100.00 USD are spent/);
  });
});

it('a new address waits from when it was first seen, also after a restart, and is held before its turn', async () => {
  const rig = openRig({ name: 'cool-down', when: { address: 'new' }, over: { wait: '24h' } }, HOURLY);
  const payout = rig.payout('a', '1');
  expect(rig.ask(payout)).toMatch(/^wait: .*its address is new/);
  expect(rig.authority.checkEarly(payout)).toMatchObject({ reason: 'wait', rule: 'cool-down' });
  await rig.journal.noteSeen({ at: clock.wallNow(), addresses: rig.authority.takeUnseen() });
  expect(rig.lines).toContainEqual({ seen: expect.objectContaining({ addresses: ['wallet-a'] }) });
  clock.pass(DAY_MS - 1);
  expect(rig.authority.findDue(10)).toEqual([]);
  clock.pass(1);
  // Judged again when its time has come.
  expect(rig.authority.findDue(10)).toEqual(['a']);
  clock.pass(-1);
  rig.restart();
  expect(rig.ask(payout)).toMatch(/^wait/);
  clock.pass(1);
  expect([rig.ask(payout), rig.authority.takeUnseen()]).toEqual(['send', []]);
});

it('another policy counts from the next question on, with what was spent under the one before', async () => {
  const capOf = (amount: string, name = 'hour') => ({ ...HOURLY, name, cap: { amount, within: '1h' } });
  const rig = openRig(capOf('50'));
  await pay(rig, 'a', '50');
  expect(rig.askFor('b', '20')).toMatch(/^wait/);
  rig.current.policy = policyOf(capOf('70', 'other'));
  expect(rig.askFor('b', '20')).toBe('send');
  expect(rig.askFor('c', '21')).toMatch(/^wait: Rule other/);
});

it('the usage of a window says what is spent, what waits for room, and for whom', async () => {
  const rig = openRig({ ...HOURLY, cap: { ...HOURLY.cap, per: 'address' } });
  for (const [payoutId, addressTo] of ['x', 'y', 'y'].entries()) await pay(rig, `${payoutId}`, '20.5', { addressTo });
  rig.askFor('waits', '60', { addressTo: 'y' });
  const buckets = [
    { bucket: 'y', spent: '41', wanted: '60', ratio: 0.41 },
    { bucket: 'x', spent: '20.5', wanted: '0', ratio: 0.205 },
  ];
  const unit = { unit: 'amount', paymentId: 6 };
  const about = { rule: 'hour', ...unit, limit: '100', withinMs: HOUR_MS, per: 'address', unknown: null };
  expect(rig.authority.usage).toEqual([{ ...about, buckets }]);
});

describe('another spelling, or another tag, of an address', () => {
  const TON = {
    raw: '0:CA6E321C7CCE9ECEDF0A8CA2492EC8592494AA5FB5CE0387DFF96EF6AF982A3E',
    bounceable: 'EQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPrHF',
    other: 'UQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPuwA',
  };
  const CASH = 'qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a';
  const CASH_2 = 'bitcoincash:qr95sy3j9xwd2ap32xkykttr4cvcu7as4y0qverfuy';
  const EVM = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
  const XRP = 'r9cZA1mLK5R5Am25ArfXFmqgNwjZgnfk59';
  const [X_WITH_1, EXCHANGE] = ['X7AcgcsBL6XDcUb289X4mJ8djcdyKaGZMhc9YTE92ehJ2Fu', 'rExchange:12345'];
  const CURRENCIES = { denied: 6, default: 7, 'per-address': 8, 'cool-down': 9, unparsed: 10 };
  const RULES = `{ version: 1, platformId: "4242", default: hold, rules: [
    { name: covered, when: { paymentId: ["6", "9", "10"] }, cap: { count: "500", within: 1h }, over: refuse },
    { name: denied, when: { paymentId: ["6"], addressIn: deny.txt }, over: refuse },
    { name: own, when: { paymentId: ["7"], addressIn: allow.txt }, cap: { amount: "500" }, over: refuse },
    { name: per-address, when: { paymentId: ["8"] }, cap: { count: "1", within: 24h, per: address }, over: wait },
    { name: cool-down, when: { paymentId: ["9"], address: new }, over: { wait: 24h } },
    { name: unparsed, when: { paymentId: ["10"], address: unparsed }, over: refuse } ] }`;
  const folder = useFolder();
  let rig: PolicyRig;
  beforeEach(async () => {
    folder.write('policy.yaml', RULES);
    folder.write('deny.txt', [TON.raw, EVM.toLowerCase(), XRP].join('\n'));
    folder.write('allow.txt', [EXCHANGE, `bitcoincash:${CASH}`, `${XRP}:1`, TON.bounceable].join('\n'));
    const { policy, isListed } = readPolicyFile(folder.at('policy.yaml'), { keyring: undefined });
    rig = new PolicyRig(clock, policy);
    rig.current.isListed = isListed;
    rig.restart();
    const seen = [EXCHANGE, CASH, `${XRP}:1`].map(walletAndTagKey);
    await rig.journal.noteSeen({ at: clock.wallNow() - 2 * DAY_MS, addresses: seen });
    await pay(rig, 'spent', '1', { paymentId: 8, addressTo: TON.bounceable });
  });
  const ask = (rule: keyof typeof CURRENCIES, addressTo: string) =>
    rig.askFor('p', '1', { paymentId: CURRENCIES[rule], addressTo });

  it.each<[keyof typeof CURRENCIES, string[], string[]]>([
    ['denied', [`${TON.other}:7`, EVM, X_WITH_1], ['TXYZopYRdj2D9XRtbG4']],
    [
      'default',
      ['rExchange:66666', 'rExchange', 'bitcoincash', CASH_2, `${XRP}:2`, `${TON.other}:7`],
      [EXCHANGE, CASH.toUpperCase(), `${XRP}:001`, TON.other],
    ],
    ['per-address', [TON.other, `${TON.bounceable}:7`], [TON.raw.replace('CA6E', 'CA6F')]],
    ['cool-down', ['rExchange:66666', CASH_2, `${XRP}:2`], [EXCHANGE, `bitcoincash:${CASH}`, `${XRP}:01`]],
    ['unparsed', [CASH_2.replace('qr95', 'qr96'), `${EVM}:7`], [CASH]],
  ])('evades no rule, and what is the same passes: %s', (rule, held, passed) => {
    for (const address of held)
      expect([address, ask(rule, address)]).toEqual([address, expect.stringContaining(`Rule ${rule} `)]);
    expect(passed.map((address) => [address, ask(rule, address)])).toEqual(passed.map((address) => [address, 'send']));
  });
});

const KEYRING = keyringOf(
  keyEntry(testKey(1)),
  ...[entryOf(2, 'alice', 'approver'), entryOf(3, 'bob', 'approver')],
  entryOf(4, 'alice-2', 'approver', { person: 'Alice' }),
);
const KEYS = { alice: 2, bob: 3, 'alice-2': 4 };
const FOUR_EYES = parsePolicy({
  ...{ version: '1', platformId: String(PLATFORM), default: 'send', groups: { finance: ['Alice', 'Bob'] } },
  rules: [{ ...HOURLY, name: 'four-eyes', cap: { amount: '50' }, over: { approve: { by: 'finance', quorum: '2' } } }],
});

let rig: PolicyRig;
beforeEach(() => {
  const about = { platformId: PLATFORM, keyring: KEYRING, clock };
  const signatures = new SignedAuthority({ ...about, journal: new MemoryJournal() });
  rig = new PolicyRig(clock, FOUR_EYES, { keyring: KEYRING, signatures });
});

function signed(amount: string, requestedBy?: string): Payout {
  const payout = rig.payout('a', amount);
  return { ...payout, signed: signIntent(payout, { at: clock.wallNow(), requestedBy }) };
}

function approval(payout: Payout, by: keyof typeof KEYS, decision: 'approve' | 'reject' = 'approve'): SignedApproval {
  const expiry = decision === 'approve' ? { expiresAt: iso(clock.wallNow() + HOUR_MS) } : {};
  const payment = decision === 'approve' ? paymentOf(payout) : {};
  const said = { payoutId: 'a', intent: intentHashOf(payout), decision, by, at: iso(clock.wallNow()), ...payment };
  return signApproval(KEYS[by], { ...said, ...expiry });
}
/** With what alice and bob say. */
const approved = (payout: Payout, ...more: SignedApproval[]): Payout => ({
  ...{ ...payout, approvals: [approval(payout, 'alice'), approval(payout, 'bob'), ...more] },
});
const REJECTION = (payout: Payout): SignedApproval => approval(payout, 'bob', 'reject');
const rejected = (payout: Payout, ...more: SignedApproval[]): Payout => approved(payout, REJECTION(payout), ...more);
const withRejection = (payout: Payout, change: Partial<SignedApproval>): Payout =>
  approved(payout, signApproval(KEYS.bob, { ...REJECTION(payout), ...change }));
const journaled = () => rig.lines.filter((line) => 'rejected' in line);

it('approvals of as many people as the rule says let it pass, asked for before its turn; the journal names them', () => {
  const payout = signed('50.1');
  expect(rig.authority.checkEarly(payout)).toMatchObject({ needs: { by: 'finance', persons: 2 } });
  expect(rig.authority.checkEarly(signed('50'))).toBeUndefined();
  const one = [approval(payout, 'alice'), approval(payout, 'alice-2')];
  expect(rig.ask({ ...payout, approvals: one })).toMatch(/^approve: .*1 more person/);
  const judged = { approvals: [expect.any(String), expect.any(String)] };
  expect(rig.authority.permit(approved(payout))).toMatchObject({ kind: 'granted', counted: { judged } });
  // Of a person whom nobody of the keyring knows, it is held, also early.
  const strange = approved(signed('60', '\u0412ob'));
  expect(rig.ask(strange)).toMatch(/^refuse: .*no key of the keyring is of the person in requestedBy.*\("\\u0412ob"\)/);
  expect(rig.authority.checkEarly(strange)).toMatchObject({ reason: 'refuse', rule: 'four-eyes' });
});

const unrejected = (rejection: SignedApproval, by: keyof typeof KEYS = 'bob'): SignedApproval =>
  signApproval(KEYS[by], {
    ...{ payoutId: 'a', intent: hashApproval(PLATFORM, rejection), decision: 'unreject', by, at: iso(clock.wallNow()) },
  });

describe('a rejection', () => {
  it.each<[string, (payout: Payout) => Payout]>([
    ['of what no rule holds', () => rejected(signed('1'))],
    [
      'from a clock that is ten minutes ahead',
      (payout) => withRejection(payout, { at: iso(clock.wallNow() + 600_000) }),
    ],
    [
      'from a clock that is a year behind',
      (payout) => withRejection(payout, { at: iso(clock.wallNow() - 365 * DAY_MS) }),
    ],
    [
      'of what was signed again since',
      (payout) => ({ ...rejected(payout), signed: signIntent(payout, { at: clock.wallNow() + 1 }) }),
    ],
    ['of an intent that nobody verified', (payout) => withRejection(payout, { intent: '' })],
    ['of a payout that has expired', (payout) => rejected({ ...payout, signed: signIntent(payout, { at: 0 }) })],
  ])('counts before every rule: %s', (_, change) => {
    const given = change(signed('60'));
    expect(rig.ask(given)).toMatch(/^rejected: bob rejected it/);
    expect(rig.authority.checkEarly(given)).toBeUndefined();
    clock.pass(40 * DAY_MS);
    expect(rig.ask(given)).toMatch(/^rejected: /);
  });

  it('counts although its key was revoked since, and holds where its key is not known here', async () => {
    const revoked = keyringOf(keyEntry(testKey(1)), entryOf(3, 'bob', 'approver', { revoked: true }));
    rig = new PolicyRig(clock, FOUR_EYES, { keyring: revoked });
    expect(rig.ask(rejected(signed('1')))).toMatch(/^rejected: bob rejected it/);
    rig = new PolicyRig(clock, FOUR_EYES, { keyring: keyringOf(keyEntry(testKey(1))) });
    expect(rig.ask(rejected(signed('1')))).toMatch(/^rejected: The key bob rejected it/);
    await rig.authority.keepRejections();
    expect(journaled()).toEqual([]);
    // Without a keyring, Redis decides what is sent.
    rig = new PolicyRig(clock, FOUR_EYES);
    const payout = signed('1');
    expect(rig.ask(rejected(payout))).toMatch(/^rejected: /);
    expect(rig.ask(rejected(payout, unrejected(REJECTION(payout))))).toBe('send');
  });

  it('is journaled once, and counts whatever Redis says later, also after a restart, until it is taken back', async () => {
    const payout = signed('60');
    const rejection = REJECTION(payout);
    for (let times = 0; times < 2; times += 1) {
      expect(rig.ask(rejected(payout))).toMatch(/^rejected: /);
      await rig.authority.keepRejections();
    }
    const line = { payoutId: 'a', rejection: hashApproval(PLATFORM, rejection), by: 'bob', person: 'bob' };
    expect(journaled()).toEqual([{ rejected: line }]);
    rig.restart();
    expect(rig.ask(approved(payout))).toMatch(/^rejected: bob rejected/);
    expect(rig.ask(approved(signed('61')))).toMatch(/^rejected: bob rejected/);
    for (const other of [unrejected(rejection, 'alice'), { ...unrejected(rejection), intent: 'ab'.repeat(32) }])
      expect(rig.ask(approved(payout, other))).toMatch(/^rejected: /);
    expect(rig.ask(approved(payout, unrejected(rejection)))).toBe('send');
    await rig.authority.keepRejections();
    expect(rig.ask(approved(payout))).toBe('send');
    rig.restart();
    expect(rig.ask(approved(payout))).toBe('send');
    // What takes back one rejection says nothing of the next.
    clock.pass(1);
    expect(rig.ask(rejected(payout, unrejected(rejection)))).toMatch(/^rejected: /);
  });

  it('is journaled by a worker without a keyring too, and counts with and without one until its key takes it back', async () => {
    rig = new PolicyRig(clock, FOUR_EYES);
    const payout = signed('1');
    const bare = { ...payout, approvals: [] };
    const rejection = REJECTION(payout);
    expect(rig.ask(rejected(payout))).toMatch(/^rejected: /);
    await rig.authority.keepRejections();
    expect(journaled()).toEqual([
      { rejected: { payoutId: 'a', rejection: hashApproval(PLATFORM, rejection), by: 'bob' } },
    ]);
    rig.restart();
    expect(rig.ask(bare)).toMatch(/^rejected: The key bob rejected it/);
    const { lines } = rig;
    const verifying = new PolicyRig(clock, FOUR_EYES, { keyring: KEYRING });
    verifying.lines.push(...lines);
    verifying.restart();
    expect(verifying.ask(bare)).toMatch(/^rejected: The key bob rejected it/);
    expect(verifying.ask(approved(payout, unrejected(rejection, 'alice')))).toMatch(/^rejected: /);
    expect(verifying.ask(approved(payout, unrejected(rejection)))).toBe('send');
    expect(rig.ask({ ...payout, approvals: [unrejected(rejection)] })).toBe('send');
    await rig.authority.keepRejections();
    rig.restart();
    expect(rig.ask(bare)).toBe('send');
  });

  it('that was verified is ended in the journal by no statement that nobody verified', async () => {
    const payout = signed('1');
    rig.ask(rejected(payout));
    await rig.authority.keepRejections();
    const unverifying = new PolicyRig(clock, FOUR_EYES);
    unverifying.lines.push(...rig.lines);
    unverifying.restart();
    expect(unverifying.ask({ ...payout, approvals: [] })).toMatch(/^rejected: bob rejected it/);
    unverifying.ask({ ...payout, approvals: [unrejected(REJECTION(payout))] });
    await unverifying.authority.keepRejections();
    expect(unverifying.ask({ ...payout, approvals: [] })).toMatch(/^rejected: /);
  });

  it('is journaled again where the write failed', async () => {
    rig.ask(rejected(signed('61')));
    rig.journal.failWith = new Error('no space left on device');
    await expect(rig.authority.keepRejections()).rejects.toThrow('no space left');
    rig.journal.failWith = undefined;
    await rig.authority.keepRejections();
    expect(journaled()).toHaveLength(1);
  });
});

it('a rejection that is signed as an approval is not journaled', async () => {
  const payout = signed('60');
  rig.ask({ ...payout, approvals: [{ ...approval(payout, 'bob'), decision: 'reject' }] });
  await rig.authority.keepRejections();
  expect(journaled()).toEqual([]);
});

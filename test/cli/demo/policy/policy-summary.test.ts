import { expect, it } from '@jest/globals';
import picocolors from 'picocolors';
import { formatPolicy } from '../../../../src/cli/demo/policy/format-policy.js';
import {
  ORDERS,
  PER_WINDOW,
  THEFTS,
  WINDOW_MS,
  type PolicyOrder,
} from '../../../../src/cli/demo/policy/policy-orders.js';
import { summarisePolicy } from '../../../../src/cli/demo/policy/policy-summary.js';
import type { PolicyView } from '../../../../src/cli/demo/policy/policy-view.js';
import type { Payout } from '../../../../src/ledger/payout.js';
import type { Payment } from '../../../../src/sandbox/index.js';

/** The judgement over what the account looks like at the end; the demo itself is in the slow tests. */

function pay({ amount, addressTo }: PolicyOrder, acceptedAtMs: number): Payment {
  return { addressTo, amount, paymentId: 6, fee: '0', txhash: `tx-${acceptedAtMs}`, acceptedAtMs, settlesAs: 1 };
}

function refused({ payoutId }: PolicyOrder, rule: string): [string, Payout] {
  const held = { kind: 'policy', reason: 'refuse', rule, message: 'no' } as const;
  return [payoutId, { payoutId, state: 'held', held } as Payout];
}

const [FIRST, SECOND, THIRD] = ORDERS.often as [PolicyOrder, PolicyOrder, PolicyOrder];
const BOOK = [
  ...ORDERS.small.map((each, index) => pay(each, index * 1_000)),
  ...[pay(FIRST, 2_000), pay(SECOND, 3_000), pay(THIRD, 2_000 + WINDOW_MS)],
  pay(ORDERS.large, 6_000),
  ...THEFTS.small.slice(0, PER_WINDOW).map((each, index) => pay(each, 7_000 + index * 1_000)),
];
const KEPT: PolicyView = {
  payments: BOOK,
  payouts: new Map([
    refused(ORDERS.doubtful, 'four-eyes'),
    refused(THEFTS.everything, 'never-more'),
    ...THEFTS.small.slice(PER_WINDOW).map((each) => refused(each, 'known-thieves')),
  ]),
  asked: 2,
  afterOwnKey: 1,
};

it('is content where each rule held', () => {
  const summary = summarisePolicy(KEPT, 20_000);
  expect(summary).toMatchObject({ ok: true, stolen: { ordered: '53600', paid: '1800' } });
  expect(formatPolicy(summary, picocolors.createColors(false))).toMatch(/^\nThe policy held \(20 s\)\./);
});

const without = (payoutId: string): PolicyView['payouts'] =>
  new Map([...KEPT.payouts].filter(([each]) => each !== payoutId));

it.each<[string, Partial<PolicyView>, string]>([
  ['a large payout that asks for one person', { asked: 1 }, 'four-eyes'],
  ["the signer's own key that counts", { afterOwnKey: undefined }, 'four-eyes'],
  ['a large payout that is not paid', { payments: BOOK.filter(({ amount }) => amount !== '2500') }, 'four-eyes'],
  ['a rejected one that is not held', { payouts: without(ORDERS.doubtful.payoutId) }, 'four-eyes'],
  ['a rejected one that is paid', { payments: [...BOOK, pay(ORDERS.doubtful, 9_000)] }, 'default'],
  [
    'a third to an address within its window',
    { payments: BOOK.map((each) => (each.acceptedAtMs > WINDOW_MS ? pay(THIRD, 1_999 + WINDOW_MS) : each)) },
    'two-each-10s',
  ],
  [
    'one that waits for good',
    { payments: BOOK.filter(({ acceptedAtMs }) => acceptedAtMs < WINDOW_MS) },
    'two-each-10s',
  ],
  ['too much that may be approved', { payouts: without(THEFTS.everything.payoutId) }, 'never-more'],
  ['an address on the list that waits', { payouts: without('stolen-1d') }, 'known-thieves'],
  ['one that is paid twice', { payments: [...BOOK, pay(FIRST, 60_000)] }, 'default'],
])('says that %s breaks a rule', (_name, change, rule) => {
  const { ok, rules } = summarisePolicy({ ...KEPT, ...change }, 1);
  expect(ok).toBe(false);
  expect(rules.filter(({ held }) => !held).map((each) => each.rule)).toContain(rule);
});

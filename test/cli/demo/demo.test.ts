import { expect, it } from '@jest/globals';
import { summarise, type DemoOutcome } from '../../../src/cli/demo/demo-summary.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { isFinal, type PayoutState } from '../../../src/ledger/states.js';
import type { Payment } from '../../../src/sandbox/index.js';

function aPayout(payoutId: string, state: PayoutState, more: Partial<Payout> = {}): Payout {
  const sent = { paymentId: 6, amount: '12.5', addressTo: 'TXYZ9', attempt: 1, requeueCount: 0 };
  return { payoutId, state, final: isFinal(state), ...sent, createdAt: '', updatedAt: '', history: [], ...more };
}

function aPayment(gatewayId: string, amount = '12.5'): Payment {
  return {
    gatewayId,
    txhash: gatewayId,
    transactionId: '7',
    paymentId: 6,
    addressTo: 'TXYZ9',
    amount,
    fee: '1',
    acceptedAtMs: 0,
    settlesAs: 1,
  };
}

const COMPLETED = aPayout('p-1', 'completed', { gatewayId: 't-1' });
const UNKNOWN = aPayout('p-2', 'unknown', { message: 'cut off' });
const sandbox = { smallestGapMs: 1_000, meanGapMs: 1_250, blockedReason: null };
const summaryOf = (outcome: Partial<DemoOutcome>): ReturnType<typeof summarise> =>
  summarise({
    ...{ payouts: [COMPLETED], payments: [aPayment('t-1')], sandbox, pausedReason: undefined },
    ...{ chaos: false, workerKills: 0, durationMs: 30_000, ...outcome },
  });

it('summarise is ok if all are completed, none too fast and none twice', () => {
  expect(summaryOf({})).toMatchObject({ ok: true, problems: [], payouts: 1, sentTwice: 0, payoutsPerSecond: 0.8 });
});

it.each<[string, Partial<DemoOutcome>, RegExp]>([
  ['a gap under 1000 ms', { sandbox: { ...sandbox, smallestGapMs: 999.9 } }, /999 ms apart/],
  ['a block', { sandbox: { ...sandbox, blockedReason: 'too fast' } }, /too fast/],
  ['a payment too many', { payments: [aPayment('t-1'), aPayment('t-2')] }, /was made twice \(gatewayId t-2\)/],
  ['a pause', { pausedReason: '5 rejections in a row' }, /paused: 5 rejections/],
  ['an unfinished payout', { payouts: [aPayout('p-1', 'queued')], payments: [] }, /p-1 is queued/],
  ['an unknown payout without a kill', { payouts: [COMPLETED, UNKNOWN] }, /p-2 is unknown: cut off/],
])('is not content with %s', (_, outcome, problem) => {
  expect(summaryOf(outcome)).toMatchObject({ ok: false, problems: [expect.stringMatching(problem)] });
});

it('summarise with chaos allows an unknown payout', () => {
  const chaos = { chaos: true, workerKills: 3, payouts: [COMPLETED, UNKNOWN] };
  const paid = summaryOf({ ...chaos, payments: [aPayment('t-1'), aPayment('t-2')] });
  expect(paid).toMatchObject({ ok: true, sentTwice: 0, unknown: [{ payoutId: 'p-2', gatewayId: 't-2' }] });
  const command = "payouts resolve --account 1001 p-2 --not-sent --attempt 1 --reason 'the gateway never received it'";
  expect(summaryOf(chaos).unknown).toMatchObject([{ gatewayId: null, command }]);
});

it('summarise knows the payment of an unknown payout with a symbol, whose amount the gateway names in the coin', () => {
  const payouts = [COMPLETED, { ...UNKNOWN, amount: '400', symbol: 'USD' }];
  const paid = summaryOf({ chaos: true, workerKills: 1, payouts, payments: [aPayment('t-1'), aPayment('t-2')] });
  expect(paid).toMatchObject({ ok: true, sentTwice: 0, unknown: [{ payoutId: 'p-2', gatewayId: 't-2' }] });
});

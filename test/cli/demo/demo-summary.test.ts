import { describe, expect, it } from '@jest/globals';
import { summarise, type DemoOutcome } from '../../../src/cli/demo/demo-summary.js';
import type { Payout } from '../../../src/ledger/payout.js';
import type { Payment } from '../../../src/sandbox/index.js';

const TIMES = { createdAt: '2030-01-01T00:00:00.000Z', updatedAt: '2030-01-01T00:00:00.000Z', history: [] };
const SENT = { paymentId: 6, amount: '12.5', addressTo: 'TXYZ9', attempt: 1, requeueCount: 0, ...TIMES };
const COMPLETED: Payout = { payoutId: 'p-1', state: 'completed', txhash: 't-1', ...SENT };
const UNKNOWN: Payout = { payoutId: 'p-2', state: 'unknown', message: 'cut off', ...SENT };

function aPayment(txhash: string): Payment {
  return { txhash, paymentId: 6, addressTo: 'TXYZ9', amount: '12.5', fee: '1', acceptedAtMs: 0, settlesAs: 1 };
}

function summaryOf(outcome: Partial<DemoOutcome>): ReturnType<typeof summarise> {
  return summarise({
    payouts: [COMPLETED],
    payments: [aPayment('t-1')],
    sandbox: { smallestGapMs: 1_000, meanGapMs: 1_250, blockedReason: null },
    pausedReason: undefined,
    chaos: false,
    workerKills: 0,
    durationMs: 30_000,
    ...outcome,
  });
}

describe('summarise', () => {
  it('is ok if all are completed, none too fast and none twice', () => {
    expect(summaryOf({})).toMatchObject({ ok: true, problems: [], payouts: 1, sentTwice: 0, payoutsPerSecond: 0.8 });
  });

  it.each<[string, Partial<DemoOutcome>, RegExp]>([
    [
      'a gap under 1000 ms',
      { sandbox: { smallestGapMs: 999.9, meanGapMs: 1_250, blockedReason: null } },
      /999 ms apart/,
    ],
    ['a block', { sandbox: { smallestGapMs: 1_000, meanGapMs: 1_250, blockedReason: 'too fast' } }, /too fast/],
    ['a payment too many', { payments: [aPayment('t-1'), aPayment('t-2')] }, /was made twice \(txhash t-2\)/],
    ['a pause', { pausedReason: '5 rejections in a row' }, /paused: 5 rejections/],
    ['an unfinished payout', { payouts: [{ ...COMPLETED, state: 'in_progress' }] }, /p-1 is in_progress/],
    ['an unknown payout without a kill', { payouts: [COMPLETED, UNKNOWN] }, /p-2 is unknown: cut off/],
  ])('is not content with %s', (_what, outcome, problem) => {
    expect(summaryOf(outcome)).toMatchObject({ ok: false, problems: [expect.stringMatching(problem)] });
  });

  it('with chaos allows an unknown payout, with what the gateway shows and what to do', () => {
    const chaos = { chaos: true, workerKills: 3, payouts: [COMPLETED, UNKNOWN] };
    expect(summaryOf({ ...chaos, payments: [aPayment('t-1'), aPayment('t-2')] })).toMatchObject({
      ok: true,
      sentTwice: 0,
      unknown: [
        {
          payoutId: 'p-2',
          txhash: 't-2',
          command: "payouts resolve --account 1001 p-2 --sent --txhash t-2 --reason 'the gateway shows the payment'",
        },
      ],
    });
    expect(summaryOf(chaos).unknown).toMatchObject([
      {
        txhash: null,
        command: "payouts resolve --account 1001 p-2 --not-sent --reason 'the gateway never received it'",
      },
    ]);
  });
});

import { describe, expect, it } from '@jest/globals';
import { matchPayments } from '../../../src/cli/demo/demo-summary.js';
import type { Payout } from '../../../src/ledger/payout.js';
import type { PayoutState } from '../../../src/ledger/states.js';
import type { Payment } from '../../../src/sandbox/index.js';

function aPayout(payoutId: string, state: PayoutState, txhash?: string): Payout {
  const times = { createdAt: '2030-01-01T00:00:00.000Z', updatedAt: '2030-01-01T00:00:00.000Z', history: [] };
  const sent = { state, attempt: 1, requeueCount: 0, ...(txhash === undefined ? {} : { txhash }) };
  return { payoutId, paymentId: 6, amount: '12.5', addressTo: 'TXYZ9', ...sent, ...times };
}

function aPayment(txhash: string, amount = '12.5'): Payment {
  return { txhash, paymentId: 6, addressTo: 'TXYZ9', amount, fee: '1', acceptedAtMs: 0, settlesAs: 1 };
}

describe('matchPayments', () => {
  it('accepts two payouts of the same amount to the same recipient', () => {
    const payouts = [aPayout('p-1', 'completed', 't-1'), aPayout('p-2', 'in_progress', 't-2')];
    expect(matchPayments(payouts, [aPayment('t-1'), aPayment('t-2')])).toEqual({ ofUnknown: new Map(), surplus: [] });
  });

  it('assigns an unmatched payment to an unknown payout that fits, at most one to each', () => {
    const payouts = [aPayout('p-1', 'unknown'), aPayout('p-2', 'unknown'), aPayout('p-3', 'unknown')];
    const { ofUnknown, surplus } = matchPayments(payouts, [aPayment('t-1'), aPayment('t-2'), aPayment('t-3', '9')]);
    expect([...ofUnknown].map(([payoutId, { txhash }]) => [payoutId, txhash])).toEqual([
      ['p-1', 't-1'],
      ['p-2', 't-2'],
    ]);
    expect(surplus).toEqual([aPayment('t-3', '9')]);
  });

  it.each(['completed', 'queued', 'rejected'] as const)(
    'reports a surplus payment for a payout that is %s',
    (state) => {
      const payouts = [aPayout('p-1', state, 't-1')];
      expect(matchPayments(payouts, [aPayment('t-1'), aPayment('t-2')]).surplus).toEqual([aPayment('t-2')]);
    },
  );
});

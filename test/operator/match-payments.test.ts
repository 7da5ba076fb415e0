import { expect, it } from '@jest/globals';
import type { Payout } from '../../src/ledger/payout.js';
import { type ListedPayment, matchPayments } from '../../src/operator/match-payments.js';

const BEGAN = Date.parse('2030-01-31T09:00:00Z');
const ADDRESS = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';

function unknown(payoutId: string, changes: Partial<Payout> = {}): Payout {
  const at = new Date(BEGAN).toISOString();
  const updatedAt = new Date(BEGAN + 60_000).toISOString();
  return {
    ...{ payoutId, paymentId: 6, amount: '12.5', addressTo: ADDRESS, state: 'unknown', attempt: 1, updatedAt },
    history: [{ at, from: 'queued', to: 'sending' }],
    inFlightUntil: new Date(BEGAN + 600_000).toISOString(),
    ...changes,
  } as Payout;
}

function listed(line: number, changes: Partial<ListedPayment> = {}): ListedPayment {
  return { line, gatewayId: `hash-${line}`, addressTo: ADDRESS, amount: '12.5', at: BEGAN + 1_000, ...changes };
}

/** What becomes of each payout: the line of its payment, a list of those that fit, or nothing. */
async function match(payouts: readonly Payout[], payments: readonly ListedPayment[], held: readonly string[] = []) {
  const { matched, ambiguous, unmatched } = await matchPayments(payouts, payments, async (gatewayId) =>
    Promise.resolve(held.includes(gatewayId)),
  );
  return {
    ...Object.fromEntries(
      matched.map(({ payout, payment, by }) => [payout.payoutId, [payment.line, by.split(',')[0]]]),
    ),
    ...Object.fromEntries(
      ambiguous.flatMap((group) =>
        group.payouts.map(({ payoutId }) => [payoutId, group.payments.map(({ line }) => line).join('|')]),
      ),
    ),
    ...Object.fromEntries(unmatched.map(({ payoutId }) => [payoutId, undefined])),
  };
}

const MATCHES = [1, 'address'];

it.each<[what: string, Partial<Payout>, Partial<ListedPayment>, matches: boolean]>([
  ['the same address, amount and time', {}, {}, true],
  ['another amount', {}, { amount: '12.6' }, false],
  ['another address', {}, { addressTo: 'TLyqzVGLV1srkB7dToTAEqgDSfPtXRJZYH' }, false],
  ['an earlier payment of the same', {}, { at: BEGAN - 301_000 }, false],
  ['clocks that differ by minutes', {}, { at: BEGAN - 299_000 }, true],
  ['a request that arrived late', {}, { at: BEGAN + 600_000 }, true],
  ['a payment after the request could arrive', {}, { at: BEGAN + 901_000 }, false],
  ['an amount in another currency', { symbol: 'USD' }, {}, false],
  ['another transaction than the one it has', { gatewayId: 'hash-9' }, {}, false],
])('%s', async (_, payout, payment, matches) => {
  expect(await match([unknown('p', payout)], [listed(1, payment)])).toEqual({ p: matches ? MATCHES : undefined });
});

it('the gatewayId counts before everything else', async () => {
  const known = unknown('known', { gatewayId: 'HASH-2' });
  expect(await match([known], [listed(1), listed(2, { gatewayId: 'HASH-2', amount: '7' })])).toEqual({
    known: [2, 'gatewayId'],
  });
});

it('a payment that a payout has already is no other one’s', async () => {
  expect(await match([unknown('p')], [listed(1), listed(2)], ['hash-1'])).toEqual({ p: [2, 'address'] });
  expect(await match([unknown('p')], [listed(1)], ['hash-1'])).toEqual({ p: undefined });
});

it('what fits more than once is ambiguous, also through others', async () => {
  expect(await match([unknown('p')], [listed(1), listed(2)])).toEqual({ p: '1|2' });
  expect(await match([unknown('p'), unknown('q')], [listed(1)])).toEqual({ p: '1', q: '1' });
  expect(await match([unknown('p'), unknown('q')], [listed(1), listed(2)])).toEqual({ p: '1|2', q: '1|2' });
  const late = unknown('late', { history: [{ at: new Date(BEGAN + 580_000).toISOString(), to: 'sending' }] } as never);
  const [early, middle] = [listed(1), listed(2, { at: BEGAN + 500_000 })];
  expect(await match([unknown('p'), late], [early, middle])).toEqual({ p: '1|2', late: '1|2' });
});

it('one transaction that is listed twice is one payment', async () => {
  expect(await match([unknown('p')], [listed(1), listed(2, { gatewayId: 'hash-1' })])).toEqual({ p: [2, 'address'] });
});

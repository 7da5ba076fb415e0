import { gatewayIdKey } from '../base/fields.js';
import { isSameAddress } from '../gateway/wallet.js';
import type { Payout } from '../ledger/payout.js';

/** What a list of the gateway's says of one payment. */
export interface ListedPayment {
  /** Of the file. */
  readonly line: number;
  readonly gatewayId: string;
  readonly addressTo: string;
  /** A decimal string without trailing zeros. */
  readonly amount: string;
  /** Wall clock, ms. */
  readonly at: number;
}

interface MatchedPayment {
  readonly payout: Payout;
  readonly payment: ListedPayment;
  readonly by: 'gatewayId' | 'address, amount and time';
}

/** Payouts and payments that fit each other in more than one way. */
interface AmbiguousPayments {
  readonly payouts: readonly Payout[];
  readonly payments: readonly ListedPayment[];
}

export interface PaymentMatches {
  readonly matched: readonly MatchedPayment[];
  readonly ambiguous: readonly AmbiguousPayments[];
  /** No payment of the list fits. That does not say that they were not paid. */
  readonly unmatched: readonly Payout[];
}

/** How far the gateway's clock may be from ours. */
const CLOCKS_DIFFER_MS = 5 * 60_000;

/**
 * Finds the payments of payouts that are `unknown`: by the gatewayId, or by address, amount and time where one payment fits
 * one payout and neither fits another. An amount with a `symbol` cannot be compared, so such a payout matches by gatewayId
 * alone.
 * @param isHeld - whether a payout has the payment already
 */
export async function matchPayments(
  payouts: readonly Payout[],
  payments: readonly ListedPayment[],
  isHeld: (gatewayId: string) => Promise<boolean>,
): Promise<PaymentMatches> {
  const byGatewayId = new Map(payments.map((payment) => [gatewayIdKey(payment.gatewayId), payment]));
  const byAmount = new Map<string, ListedPayment[]>();
  for (const payment of byGatewayId.values())
    byAmount.set(payment.amount, [...(byAmount.get(payment.amount) ?? []), payment]);
  const matched: MatchedPayment[] = [];
  const fits: (readonly [payout: Payout, payments: readonly ListedPayment[]])[] = [];
  for (const payout of payouts) {
    if (payout.gatewayId === undefined) {
      const free: ListedPayment[] = [];
      for (const payment of byAmount.get(payout.amount) ?? [])
        if (fit(payout, payment) && !(await isHeld(payment.gatewayId))) free.push(payment);
      fits.push([payout, free]);
      continue;
    }
    const payment = byGatewayId.get(gatewayIdKey(payout.gatewayId));
    if (payment === undefined) fits.push([payout, []]);
    else matched.push({ payout, payment, by: 'gatewayId' });
  }
  const ambiguous: AmbiguousPayments[] = [];
  for (const group of groupByPayment(fits)) {
    const [first, ...others] = group.payouts;
    const [payment, ...more] = group.payments;
    if (first === undefined || payment === undefined || others.length > 0 || more.length > 0) ambiguous.push(group);
    else matched.push({ payout: first, payment, by: 'address, amount and time' });
  }
  return { matched, ambiguous, unmatched: fits.filter(([, found]) => found.length === 0).map(([payout]) => payout) };
}

function fit({ addressTo, symbol, history, updatedAt, inFlightUntil = updatedAt }: Payout, payment: ListedPayment) {
  const begin = history.findLast(({ to }) => to === 'sending')?.at ?? updatedAt;
  return (
    symbol === undefined &&
    payment.at >= Date.parse(begin) - CLOCKS_DIFFER_MS &&
    payment.at <= Math.max(Date.parse(inFlightUntil), Date.parse(updatedAt)) + CLOCKS_DIFFER_MS &&
    isSameAddress(addressTo, payment.addressTo)
  );
}

/** Payouts that share a payment, directly or through others, are one group. */
function groupByPayment(fits: readonly (readonly [Payout, readonly ListedPayment[]])[]): readonly AmbiguousPayments[] {
  let groups: { payouts: Payout[]; payments: Set<ListedPayment> }[] = [];
  for (const [payout, payments] of fits) {
    if (payments.length === 0) continue;
    const joined = groups.filter((group) => payments.some((payment) => group.payments.has(payment)));
    const merged = {
      payouts: [...joined.flatMap((group) => group.payouts), payout],
      payments: new Set([...joined.flatMap((group) => [...group.payments]), ...payments]),
    };
    groups = [...groups.filter((group) => !joined.includes(group)), merged];
  }
  return groups.map(({ payouts, payments }) => ({ payouts, payments: [...payments] }));
}

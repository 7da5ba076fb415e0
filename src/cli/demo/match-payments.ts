import type { Payout } from '../../ledger/payout.js';
import type { Payment } from '../../sandbox/index.js';

/** Which payments belong to which payouts. */
export interface MatchedPayments {
  /** Payments that the gateway made for `unknown` payouts, by payoutId. */
  readonly ofUnknown: ReadonlyMap<string, Payment>;
  /** Payments without a payout: a recipient was paid twice. */
  readonly surplus: readonly Payment[];
}

/**
 * Finds payments without a payout. Recipient and amount alone do not identify one: two payouts may share both.
 *
 * A payment belongs to the payout that has its txhash; one that no payout has may belong to an `unknown` payout with
 * the same recipient and amount; every other is surplus.
 */
export function matchPayments(payouts: readonly Payout[], payments: readonly Payment[]): MatchedPayments {
  const known = new Set(payouts.map(({ txhash }) => txhash));
  const ofUnknown = new Map<string, Payment>();
  const surplus: Payment[] = [];
  for (const payment of payments.filter(({ txhash }) => !known.has(txhash))) {
    const owner = payouts.find(
      ({ payoutId, state, addressTo, amount }) =>
        state === 'unknown' && addressTo === payment.addressTo && amount === payment.amount && !ofUnknown.has(payoutId),
    );
    if (owner === undefined) surplus.push(payment);
    else ofUnknown.set(owner.payoutId, payment);
  }
  return { ofUnknown, surplus };
}

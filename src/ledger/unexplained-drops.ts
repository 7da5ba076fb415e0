import { nameBalance } from './balance-cover.js';
import type { Currency } from './gateway-facts.js';
import { pendingDrop } from './reconciliation.js';
import type { StoredReconciliation } from './reconciliation-store.js';

/** What a balance lost without a payout that explains it, and no operator has accepted. */
export interface UnexplainedDrop {
  /** The currency's name, or the account's symbol; `account` where the gateway names neither. */
  readonly currency: string;
  /** A decimal string; `0` where nothing is missing. */
  readonly amount: string;
}

/** One for each balance that was compared. */
export function summariseDrops(
  { reconciliation, acceptedDrops }: StoredReconciliation,
  currencies: readonly Currency[],
): UnexplainedDrop[] {
  return (reconciliation?.balances ?? []).map((balance) => ({
    currency: nameBalance(balance, currencies),
    amount: pendingDrop(balance, acceptedDrops?.upTo)?.amount ?? '0',
  }));
}

/** As operators read it. */
export function listDrops(drops: readonly UnexplainedDrop[]): string {
  return drops.map(({ currency, amount }) => `${amount} ${currency}`).join(', ');
}

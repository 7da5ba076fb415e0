import type { Currency } from '../ledger/gateway-facts.js';

/** What it takes to show a payout as operators know it. */
export interface Shown {
  /** The gateway's currencies, for their names; empty while they are not known. */
  readonly currencies: readonly Currency[];
  /** Block explorers by payment_id: `https://…/{txhash}`. */
  readonly explorers: ReadonlyMap<number, string>;
  /** Wall clock, ms. */
  readonly wallNow: number;
}

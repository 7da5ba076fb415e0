export interface Spend {
  readonly id: string;
  readonly payoutId: string;
  readonly attempt: number;
  readonly paymentId: number;
  readonly amount: string;
  readonly addressTo: string;
  readonly signer?: string | undefined;
  /** Value at its begin, in millionths of a dollar; absent if no rule needed it. */
  readonly usd?: bigint | undefined;
}

/** The spends of a journal or a ledger, in their order. Times are wall clock, ms. */
export type SpendEvent =
  | { readonly kind: 'begun'; readonly spend: Spend; readonly at: number }
  | { readonly kind: 'accepted'; readonly id: string; readonly at: number }
  /** It is proved not to have paid. */
  | { readonly kind: 'unpaid'; readonly id: string };

/** An accepted rate that limits the next ones. */
export interface RateAnchor {
  readonly rate: string;
  readonly at: number;
}

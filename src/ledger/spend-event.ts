/** A send as caps count it. */
export interface Spend {
  /** Of the attempt: no other has it. */
  readonly id: string;
  readonly payoutId: string;
  readonly attempt: number;
  readonly paymentId: number;
  readonly amount: string;
  readonly addressTo: string;
  /** The name of the key that signed it. */
  readonly signer?: string | undefined;
  /** What it was worth when it began, in millionths of a dollar; absent where nobody asked. */
  readonly usd?: bigint | undefined;
}

/** What a journal or a ledger says of spends, in the order in which it happened. Times are wall clock, ms. */
export type SpendEvent =
  | { readonly kind: 'begun'; readonly spend: Spend; readonly at: number }
  /** The gateway has accepted it. */
  | { readonly kind: 'accepted'; readonly id: string; readonly at: number }
  /** It is proved not to have paid. */
  | { readonly kind: 'unpaid'; readonly id: string };

/** A rate that counted, from which the next ones may not be far. */
export interface RateAnchor {
  readonly rate: string;
  /** When it was set, wall clock, ms. */
  readonly at: number;
}

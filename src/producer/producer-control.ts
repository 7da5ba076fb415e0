import type { NewPayout, Payout } from '../ledger/payout.js';

/** Signs payouts before the ledger has them. */
export interface PayoutSigner {
  /** @throws InvalidInputError when the payout cannot be signed */
  check(payout: NewPayout): void;
  /**
   * Signs a payout; one that is signed already keeps its signature.
   * @throws InvalidInputError when the payout cannot be signed
   */
  sign(payout: NewPayout): NewPayout;
}

/** A port: what control of money does in a producer. */
export interface ProducerControl extends PayoutSigner {
  /** Sets {@link Payout.verified} where a worker signs the payout's state. */
  mark(payout: Payout): Payout;
}

import type { NewPayout, Payout } from '../ledger/payout.js';

/**
 * A port: signs payouts before the ledger has them.
 * @throws InvalidInputError from each call, if the payout cannot be signed
 */
export interface PayoutSigner {
  check(payout: NewPayout): void;
  /** A signed payout keeps its signature. @throws SignerError if one cannot be signed */
  signAll(payouts: readonly NewPayout[]): Promise<NewPayout[]>;
}

/** The port to control of money. */
export interface ProducerControl extends PayoutSigner {
  /** Sets {@link Payout.verified} if a worker signs the payout's state. */
  mark(payout: Payout): Payout;
}

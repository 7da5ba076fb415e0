import type { Payout } from '../../ledger/payout.js';
import type { KeyFinder } from '../keys/keyring.js';
import { hasReceipt } from './receipt.js';
import { verifyReceipt, type ReceiptVerdict } from './verify-receipt.js';

/** Says of payouts as the ledger has them whether a worker signed their final state. */
export class ReceiptVerifier {
  readonly #platformId: number;
  readonly #keyring: KeyFinder;

  constructor(platformId: number, keyring: KeyFinder) {
    this.#platformId = platformId;
    this.#keyring = keyring;
  }

  /** undefined where the payout is in a state that no worker signs. */
  judge(payout: Payout): ReceiptVerdict | undefined {
    return hasReceipt(payout.state) ? verifyReceipt(this.#platformId, payout, this.#keyring) : undefined;
  }

  /** The payout with `verified`, where that can be said. */
  mark<Marked extends Payout>(payout: Marked): Marked {
    const verdict = this.judge(payout);
    return verdict === undefined ? payout : { ...payout, verified: verdict.kind === 'verified' };
  }
}

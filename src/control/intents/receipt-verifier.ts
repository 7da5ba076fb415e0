import type { Payout } from '../../ledger/payout.js';
import type { KeyFinder } from '../keys/keyring.js';
import { hasReceipt } from './receipt.js';
import { verifyReceipt, type ReceiptVerdict } from './verify-receipt.js';

export class ReceiptVerifier {
  readonly #platformId: number;
  readonly #keyring: KeyFinder;

  constructor(platformId: number, keyring: KeyFinder) {
    this.#platformId = platformId;
    this.#keyring = keyring;
  }

  /** undefined for states that no worker signs. */
  judge(payout: Payout): ReceiptVerdict | undefined {
    return hasReceipt(payout.state) ? verifyReceipt(this.#platformId, payout, this.#keyring) : undefined;
  }

  mark<Marked extends Payout>(payout: Marked): Marked {
    const verdict = this.judge(payout);
    return verdict === undefined ? payout : { ...payout, verified: verdict.kind === 'verified' };
  }
}

import type { Clock } from '../../base/clock.js';
import type { StoredReceipt } from '../../ledger/control-record.js';
import { signText } from '../keys/ed25519.js';
import type { KeyFinder } from '../keys/keyring.js';
import type { SigningKey } from '../keys/signing-key.js';
import { formatReceipt, receiptOf, type PaidPayout, type ReceiptState } from './receipt.js';
import { intentOf } from './intent.js';
import { StatementError } from './statement.js';
import { verifyIntent } from './verify-intent.js';

interface ReceiptSignerOptions {
  readonly key: SigningKey;
  readonly platformId: number;
  readonly audience: string;
  /** Undefined if the worker sends unsigned payouts too. */
  readonly keyring: KeyFinder | undefined;
  readonly clock: Pick<Clock, 'wallNow'>;
}

export type ReceiptResult =
  { readonly kind: 'signed'; readonly receipt: StoredReceipt } | { readonly kind: 'refused'; readonly message: string };

export class ReceiptSigner {
  readonly #options: ReceiptSignerOptions;

  constructor(options: ReceiptSignerOptions) {
    this.#options = options;
  }

  /**
   * Signs a payout's final state. A worker with a keyring sends only what a producer signed. So it signs nothing about
   * any other payout: its record was altered or forged.
   */
  sign(payout: PaidPayout, state: ReceiptState): ReceiptResult {
    const { key, platformId, audience, clock } = this.#options;
    const at = new Date(clock.wallNow()).toISOString();
    try {
      const doubt = this.#doubt(payout);
      if (doubt !== undefined) return { kind: 'refused', message: doubt };
      const text = formatReceipt(platformId, receiptOf(platformId, payout, state, { audience, at }));
      return { kind: 'signed', receipt: { key: key.name, audience, at, signature: signText(text, key.privateKey) } };
    } catch (error) {
      if (error instanceof StatementError) return { kind: 'refused', message: error.message };
      throw error;
    }
  }

  #doubt(payout: PaidPayout): string | undefined {
    const { platformId, keyring } = this.#options;
    const { signed } = payout;
    if (keyring === undefined) return undefined;
    if (signed === undefined) return 'it is not signed';
    // As of its issue: it was sent in time, and the payment may end after that.
    const verdict = verifyIntent(intentOf(platformId, payout, signed), signed, keyring, Date.parse(signed.issuedAt));
    return verdict.kind === 'refused' ? verdict.message : undefined;
  }
}

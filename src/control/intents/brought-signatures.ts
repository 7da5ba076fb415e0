import type { Clock } from '../../base/clock.js';
import { InvalidInputError } from '../../base/errors.js';
import type { NewPayout } from '../../ledger/payout.js';
import type { BoundKeyring } from '../keys/keyring.js';
import { intentOf } from './intent.js';
import { verifyIntent } from './verify-intent.js';

/** Verifies the signatures that payouts bring before the ledger has them: one that does not count replaces none. */
export class BroughtSignatures {
  readonly #platformId: number;
  readonly #keyring: BoundKeyring;
  readonly #clock: Pick<Clock, 'wallNow'>;
  readonly #verified = new WeakSet<NewPayout>();

  constructor(platformId: number, keyring: BoundKeyring, clock: Pick<Clock, 'wallNow'>) {
    this.#platformId = platformId;
    this.#keyring = keyring;
    this.#clock = clock;
  }

  /** @throws InvalidInputError if it brings a signature that a worker with this keyring would not count */
  verify(payout: NewPayout): NewPayout {
    const { signed, metadata } = payout;
    if (signed === undefined) return payout;
    if (!this.#verified.has(payout)) {
      const text = metadata === undefined ? undefined : JSON.stringify(metadata);
      const intent = intentOf(this.#platformId, payout, { ...signed, metadata: text });
      const verdict = verifyIntent(intent, signed, this.#keyring, this.#clock.wallNow());
      if (verdict.kind === 'refused') {
        throw new InvalidInputError([{ field: 'signature', message: `does not count: ${verdict.message}` }]);
      }
      this.#verified.add(payout);
    }
    return { ...payout, signed: { ...signed, isVerified: true } };
  }
}

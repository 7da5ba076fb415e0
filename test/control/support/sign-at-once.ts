import { sign, type KeyObject } from 'node:crypto';
import { prepareIntent, type Signing } from '../../../src/control/intents/intent-signer.js';
import type { SignedFields } from '../../../src/control/intents/intent.js';
import type { IntentSignature, StoredSignature } from '../../../src/ledger/control-record.js';

/** Signatures of a key in memory, in one synchronous step: for tests and simulations, where nothing may wait. */

export function signText(text: string, privateKey: KeyObject): string {
  return sign(null, Buffer.from(text, 'utf8'), privateKey).toString('base64url');
}

export interface KeySigning extends Omit<Signing, 'signer'> {
  readonly key: { readonly name: string; readonly privateKey: KeyObject };
}

export class IntentSigner {
  readonly #signing: KeySigning;

  constructor(signing: KeySigning) {
    this.#signing = signing;
  }

  sign(fields: SignedFields, given: Pick<StoredSignature, 'metadata' | 'requestedBy'> = {}): IntentSignature {
    const { key } = this.#signing;
    const { text, toSignature } = prepareIntent(fields, given, { ...this.#signing, signer: key });
    return toSignature(signText(text, key.privateKey));
  }
}

import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { Keyring, type BoundKeyring, type KeyRole } from '../../../src/control/keys/keyring.js';
import { formatPublicKey, keySigner } from '../../../src/control/keys/signing-key.js';
import type { Signer } from '../../../src/control/keys/signer.js';

/** The private key of a seed of 32 bytes. @param seed - hexadecimal */
export function privateKeyOf(seed: string): KeyObject {
  const der = Buffer.from(`302e020100300506032b657004220420${seed}`, 'hex');
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
}

/** A private key of the tests' own; each number is another. */
export function testKey(number: number): KeyObject {
  return privateKeyOf(Buffer.alloc(32, number).toString('hex'));
}

/** Signs with the key of this number. */
export function testSigner(name: string, number: number): Signer {
  return keySigner(name, testKey(number));
}

export function makePrivateKey(): KeyObject {
  return generateKeyPairSync('ed25519').privateKey;
}

export interface KeyEntry {
  readonly name: string;
  readonly role: KeyRole;
  readonly person: string;
  readonly public: string;
  readonly notBefore?: string;
  readonly notAfter?: string;
  readonly revoked?: boolean;
}

export function keyEntry(privateKey: KeyObject, changes: Partial<KeyEntry> = {}): KeyEntry {
  return { name: 'shop', role: 'producer', person: 'Shop', public: formatPublicKey(privateKey), ...changes };
}

/** For which environment the tests sign; workers of the tests have it as PAYOUT_AUDIENCE. */
export const TEST_AUDIENCE = 'test';

/** A keyring with which signatures count that are meant for {@link TEST_AUDIENCE}, and no others. */
export function keyringOf(...keys: readonly KeyEntry[]): BoundKeyring {
  return Keyring.parse({ version: 1, keys }).for(TEST_AUDIENCE);
}

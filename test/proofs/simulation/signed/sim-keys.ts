import type { KeyObject } from 'node:crypto';
import { hashAct, serializeAct, type Act, type SignedAct, formatAct } from '../../../../src/control/act.js';
import { signText } from '../../../../src/control/ed25519.js';
import type { Keyring } from '../../../../src/control/keyring.js';
import { keyEntry, keyringOf, testKey } from '../../../control/support/keys.js';

export const PLATFORM_ID = 1;

/** The private keys of a run. The thief's is in no keyring. */
export const KEYS = { shop: testKey(1), ann: testKey(2), thief: testKey(3) } as const satisfies Record<
  string,
  KeyObject
>;

/** What the workers have: a producer and an operator. */
export const KEYRING: Keyring = keyringOf(
  keyEntry(KEYS.shop),
  keyEntry(KEYS.ann, { name: 'ann', role: 'operator', person: 'Ann' }),
);

/** An act signed with any key, also one that may not. */
export function signAct(act: Act, key: KeyObject): SignedAct {
  return { ...act, signature: signText(formatAct(PLATFORM_ID, act), key) };
}

/** As the ledger stores it, and its identity. */
export function storeAct(act: SignedAct): { readonly text: string; readonly hash: string } {
  return { text: serializeAct(act), hash: hashAct(PLATFORM_ID, act) };
}

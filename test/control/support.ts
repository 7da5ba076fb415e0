import { createPrivateKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { formatAct, type Act } from '../../src/control/act.js';
import { formatIntent, type Intent } from '../../src/control/intent.js';
import { Keyring, type KeyRole } from '../../src/control/keyring.js';
import { formatReceipt, type Receipt } from '../../src/control/receipt.js';
import { formatPublicKey } from '../../src/control/signing-key-file.js';
import type { MadeByPhp, MadeByPython } from './make-vectors/makers.js';

/** A signed text of cases.json. */
export interface StatementCase {
  readonly name: string;
  readonly kind: 'intent' | 'act' | 'receipt';
  readonly platformId: number;
  readonly fields: Readonly<Record<string, string | number>>;
}

export interface Vectors {
  readonly cases: { readonly seed: string; readonly statements: readonly StatementCase[] };
  readonly php: MadeByPhp;
  readonly python: MadeByPython;
}

export function readVectors(): Vectors {
  return JSON.parse(readFileSync(new URL('vectors.json', import.meta.url), 'utf8')) as Vectors;
}

/** The text that our code makes of a case. */
export function formatCase({ kind, platformId, fields }: StatementCase): string {
  if (kind === 'intent') return formatIntent({ platformId, ...fields } as unknown as Intent);
  if (kind === 'act') return formatAct(platformId, fields as unknown as Act);
  return formatReceipt(platformId, fields as unknown as Receipt);
}

/** The private key of a seed of 32 bytes. @param seed - hexadecimal */
export function privateKeyOf(seed: string): KeyObject {
  const der = Buffer.from(`302e020100300506032b657004220420${seed}`, 'hex');
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
}

/** A private key of the tests' own; each number is another. */
export function testKey(number: number): KeyObject {
  return privateKeyOf(Buffer.alloc(32, number).toString('hex'));
}

/** A keyring entry as a file has it. */
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

export function keyringOf(...keys: readonly KeyEntry[]): Keyring {
  return Keyring.parse({ version: 1, keys });
}

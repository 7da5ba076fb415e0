import type { KeyObject } from 'node:crypto';
import { formatApproval } from '../../../src/control/approvals/approval.js';
import type { Approval, SignedApproval, IntentSignature } from '../../../src/ledger/control-record.js';
import { formatAct, serializeAct, type Act } from '../../../src/control/approvals/act.js';
import { signText } from '../../../src/control/keys/ed25519.js';
import { formatIntent, intentOf, type SignedFields } from '../../../src/control/intents/intent.js';
import { keyEntry, TEST_AUDIENCE, testKey, type KeyEntry } from '../../control/support/keys.js';

const MINUTE_MS = 60_000;
export const DAY_MS = 24 * 60 * MINUTE_MS;

/** The numbers of the suite's keys. */
const KEYS = {
  ...{ shop: 1, 'shop-2': 2, olga: 3, ann: 4, wanda: 5, stolen: 6 },
  ...{ former: 7, future: 8, foreign: 9, bob: 10, 'ann-2': 11, gone: 12 },
};
export type KeyName = keyof typeof KEYS;
const keyOf = (name: KeyName): KeyObject => testKey(KEYS[name]);

/** The keyring of every worker of the suite: `foreign` is not in it. */
export function keyringEntries(now: number): readonly KeyEntry[] {
  const at = (days: number): string => new Date(now + days * DAY_MS).toISOString();
  const changes: Readonly<Record<string, Partial<KeyEntry>>> = {
    ...{ stolen: { revoked: true }, former: { notAfter: at(-1) }, future: { notBefore: at(1) } },
    ...{ ann: { role: 'approver' }, 'ann-2': { role: 'approver', person: 'ann' }, bob: { role: 'approver' } },
    ...{ gone: { role: 'approver', revoked: true }, olga: { role: 'operator' }, wanda: { role: 'worker' } },
  };
  const names = Object.keys(KEYS).filter((name) => name !== 'foreign') as KeyName[];
  return names.map((name) => keyEntry(keyOf(name), { name, person: name, ...changes[name] }));
}

/** How a signature differs from what an honest producer makes. */
export interface SignOptions {
  /** Whose private key signs. */
  readonly key?: KeyName;
  /** The name that the signature carries. @defaultValue the key's own */
  readonly as?: string;
  readonly platformId?: number;
  /** The environment that is signed, and stored. */
  readonly audience?: string | undefined;
  /** Wall clock, ms. */
  readonly issuedAt?: number;
  readonly lifetimeMs?: number;
  readonly requestedBy?: string;
  readonly metadata?: string;
}

/** Signs a payout as a producer does, with whatever the options say. */
export function signPayout(platformId: number, fields: SignedFields, options: SignOptions = {}): IntentSignature {
  const { key = 'shop', issuedAt = Date.now(), lifetimeMs = DAY_MS, requestedBy, metadata } = options;
  const times = {
    issuedAt: new Date(issuedAt).toISOString(),
    expiresAt: new Date(issuedAt + lifetimeMs).toISOString(),
  };
  const audience = 'audience' in options ? options.audience : TEST_AUDIENCE;
  const signed = { ...times, audience, metadata, requestedBy };
  const text = formatIntent(intentOf(options.platformId ?? platformId, fields, signed));
  const person = requestedBy === undefined ? {} : { requestedBy };
  return { key: options.as ?? key, signature: signText(text, keyOf(key)), ...times, ...person, audience };
}

/** An act as an operator signs it, serialized; `change` alters it before, `key` signs instead. */
export function signAct(
  platformId: number,
  { key = 'olga', ...change }: Partial<Act> & Pick<Act, 'act'> & { readonly key?: KeyName },
): string {
  const now = Date.now();
  const act: Act = {
    ...{ audience: TEST_AUDIENCE, payoutId: '', intent: '', attempt: undefined, reason: 'looked at it', by: key },
    ...{ at: new Date(now).toISOString(), expiresAt: new Date(now + MINUTE_MS * 60).toISOString(), ...change },
  };
  return serializeAct({ ...act, signature: signText(formatAct(platformId, act), keyOf(key)) });
}

/** What an approver says, signed; `change` alters it before, `key` signs instead. */
export function signApproval(
  platformId: number,
  { key, ...change }: Pick<Approval, 'payoutId' | 'intent'> & Partial<Approval> & { readonly key: KeyName },
): SignedApproval {
  const now = Date.now();
  const approval: Approval = {
    audience: TEST_AUDIENCE,
    ...{ decision: 'approve', by: key },
    ...{ at: new Date(now).toISOString(), expiresAt: new Date(now + MINUTE_MS * 60).toISOString() },
    ...change,
  };
  return { ...approval, signature: signText(formatApproval(platformId, approval), keyOf(key)) };
}

const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;

/** The same signature with S + L for S: a verifier that is careless takes it. */
export function malleable(signature: string): string {
  const bytes = Buffer.from(signature, 'base64url');
  let s = BigInt(`0x${Buffer.from(bytes.subarray(32)).reverse().toString('hex')}`) + ORDER;
  for (let index = 32; index < 64; index += 1, s >>= 8n) bytes.writeUInt8(Number(s & 0xffn), index);
  return bytes.toString('base64url');
}

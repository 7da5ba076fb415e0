import type { Act } from '../../../src/control/approvals/act.js';
import { formatIntent, intentOf, type SignedFields } from '../../../src/control/intents/intent.js';
import { signText } from '../../../src/control/keys/ed25519.js';
import type { Approval, IntentSignature, SignedApproval } from '../../../src/ledger/control-record.js';
import { TEST_AUDIENCE, testKey, type KeyEntry } from '../../control/support/keys.js';
import * as signed from '../../control/support/signed.js';

const { DAY_MS, entryOf, iso } = signed;

/** The numbers of the suite's keys. */
const KEYS = {
  ...{ shop: 1, 'shop-2': 2, olga: 3, ann: 4, wanda: 5, stolen: 6 },
  ...{ former: 7, future: 8, foreign: 9, bob: 10, 'ann-2': 11, gone: 12 },
};
export type KeyName = keyof typeof KEYS;

/** The keyring of every worker of the suite: `foreign` is not in it. */
export function keyringEntries(now: number): readonly KeyEntry[] {
  const changes: Readonly<Record<string, Partial<KeyEntry>>> = {
    ...{ stolen: { revoked: true }, former: { notAfter: iso(now - DAY_MS) }, future: { notBefore: iso(now + DAY_MS) } },
    ...{ ann: { role: 'approver' }, 'ann-2': { role: 'approver', person: 'ann' }, bob: { role: 'approver' } },
    ...{ gone: { role: 'approver', revoked: true }, olga: { role: 'operator' }, wanda: { role: 'worker' } },
  };
  const names = Object.keys(KEYS).filter((name) => name !== 'foreign') as KeyName[];
  return names.map((name) => entryOf(KEYS[name], name, 'producer', changes[name]));
}

/** From when and until when something counts, in days from now. */
type Days = readonly [from: number, to: number];
const timesOf = ([from, to]: Days) => ({
  at: iso(Date.now() + from * DAY_MS),
  expiresAt: iso(Date.now() + to * DAY_MS),
});

/** How a signature differs from what an honest producer makes. */
export interface SignOptions {
  /** Whose private key signs. */
  readonly key?: KeyName;
  /** The name that the signature carries. @defaultValue the key's own */
  readonly as?: string;
  readonly platformId?: number;
  /** The environment that is signed, and stored. */
  readonly audience?: string | undefined;
  readonly days?: Days;
  readonly requestedBy?: string;
  readonly metadata?: string;
}

/** Signs a payout as a producer does, with whatever the options say. */
export function signPayout(platformId: number, fields: SignedFields, options: SignOptions = {}): IntentSignature {
  const { key = 'shop', days = [0, 1], requestedBy, metadata } = options;
  const { at: issuedAt, expiresAt } = timesOf(days);
  const times = { issuedAt, expiresAt };
  const audience = 'audience' in options ? options.audience : TEST_AUDIENCE;
  const intent = intentOf(options.platformId ?? platformId, fields, { ...times, audience, metadata, requestedBy });
  const signature = signText(formatIntent(intent), testKey(KEYS[key]));
  return { key: options.as ?? key, signature, ...times, ...(requestedBy !== undefined && { requestedBy }), audience };
}

interface Stating {
  readonly key?: KeyName;
  /** @defaultValue an hour from now on */
  readonly days?: Days;
}

/** An act as an operator signs it, serialized; `change` alters it before, `key` signs instead. */
export function signAct(
  platformId: number,
  { key = 'olga', days = [0, 1 / 24], ...change }: Partial<Act> & Pick<Act, 'act'> & Stating,
): string {
  const about = { audience: TEST_AUDIENCE, payoutId: '', intent: '', attempt: undefined, reason: 'looked at it' };
  return signed.signAct(KEYS[key], { ...about, by: key, ...timesOf(days), ...change }, platformId);
}

/** What an approver says, signed; `change` alters it before, `key` signs instead. */
export function signApproval(
  platformId: number,
  { key = 'bob', days = [0, 1 / 24], ...change }: Pick<Approval, 'payoutId' | 'intent'> & Partial<Approval> & Stating,
): SignedApproval {
  const about = { audience: TEST_AUDIENCE, by: key, decision: 'approve' } as const;
  return signed.signApproval(KEYS[key], { ...about, ...timesOf(days), ...change }, platformId);
}

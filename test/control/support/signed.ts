import { formatAct, serializeAct, type Act } from '../../../src/control/approvals/act.js';
import { formatApproval } from '../../../src/control/approvals/approval.js';
import { hashIntent, intentOf, type SignedFields } from '../../../src/control/intents/intent.js';
import type { KeyRole } from '../../../src/control/keys/keyring.js';
import type { Approval, IntentSignature, SignedApproval } from '../../../src/ledger/control-record.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { keyEntry, testKey, TEST_AUDIENCE, type KeyEntry } from './keys.js';
import { IntentSigner, signText } from './sign-at-once.js';

/** What honest people sign in an account; a test says what is different. Keys have the numbers of `testKey`. */

export const PLATFORM = 4242;
export const NOW = Date.parse('2026-11-21T20:00:00.000Z');
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
export const iso = (ms: number) => new Date(ms).toISOString();

/** The key of a person of the same name. */
export function entryOf(key: number, name: string, role: KeyRole, changes: Partial<KeyEntry> = {}): KeyEntry {
  return keyEntry(testKey(key), { name, role, person: name, ...changes });
}

interface Signing {
  readonly at?: number;
  readonly audience?: string;
  readonly metadata?: string | undefined;
  readonly requestedBy?: string | undefined;
}

/** As the producer "shop" signs, with key 1. */
export function signIntent(fields: SignedFields, signing: Signing = {}): IntentSignature {
  const { audience, at = NOW, metadata, requestedBy } = { audience: TEST_AUDIENCE, ...signing };
  const key = { name: 'shop', privateKey: testKey(1) };
  const options = { key, platformId: PLATFORM, audience, clock: { wallNow: () => at } };
  return new IntentSigner(options).sign(fields, { metadata, requestedBy });
}

export function intentHashOf(payout: SignedFields & Pick<Payout, 'signed'>) {
  if (payout.signed === undefined) throw new Error(`${payout.payoutId} is not signed`);
  return hashIntent(intentOf(PLATFORM, payout, payout.signed));
}

/** What is approved unless it is said otherwise. */
export const PAYMENT = { paymentId: 6, amount: '12.5', symbol: '', addressTo: 'wallet-a' };

/** For a day, unless it is said otherwise. */
export function signApproval(
  key: number,
  given: Pick<Approval, 'payoutId' | 'intent' | 'by'> & Partial<Approval>,
  platformId = PLATFORM,
): SignedApproval {
  const expiry = (given.decision ?? 'approve') === 'approve' ? { expiresAt: iso(NOW + DAY_MS) } : {};
  const said = { audience: TEST_AUDIENCE, decision: 'approve', reason: '', at: iso(NOW) } as const;
  const payment = Object.keys(expiry).length === 0 ? {} : PAYMENT;
  const approval: Approval = { ...said, ...expiry, ...payment, ...given };
  return { ...approval, signature: signText(formatApproval(platformId, approval), testKey(key)) };
}

export function signAct(key: number, act: Act, platformId = PLATFORM) {
  return serializeAct({ ...act, signature: signText(formatAct(platformId, act), testKey(key)) });
}

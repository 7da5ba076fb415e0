import { hashIntent } from '../../control/intent.js';
import type { BoundKeyring } from '../../control/keyring.js';
import { intentOf } from '../../control/signed-payout.js';
import { StatementError } from '../../control/statement.js';
import { CLOCK_TOLERANCE_MS, verifyIntent } from '../../control/verify-intent.js';
import type { JournalEntry, SignedSend } from '../../journal/journal-line.js';
import type { Payout } from '../../ledger/payout.js';
import type { Finding } from './finding.js';
import { keysOfThen } from './keys-of-then.js';

export interface SignatureContext {
  readonly platformId: number;
  /** Undefined where there is none: the hash of the intent is compared all the same. */
  readonly keyring: BoundKeyring | undefined;
}

/** Between the check of a signature and the line in the journal, ms. */
const CHECKED_BEFORE_MS = 2_000;

const KEEP_KEYS =
  'Keep the keys that signed sends in the keyring, with `notAfter`. If it never was there, a worker of another keyring sent this.';
const ASK = 'Ask the person of the key whether it signed this payment, and the gateway what was paid.';
const ALTERED =
  'The journal has the hash of what was signed. Somebody has altered the record in Redis since: compare the payment with what was ordered.';

/** What came of verifying a send. */
export interface SendVerification {
  readonly findings: readonly Finding[];
  /**
   * The record has another valid signature of the same payment: Redis forgot the payout, and the application enqueued it again. What
   * was approved of the one that was sent is gone with it.
   */
  readonly isSignedAgain?: true;
}

/**
 * Verifies the signature of a journaled send: its key as it was then, and where the payout's record is still there, the intent that
 * it stands for.
 * @param payout - undefined where the ledger has no record of it (any more), or its payment was altered
 */
export function verifySend(
  send: JournalEntry,
  payout: Payout | undefined,
  context: SignatureContext,
): SendVerification {
  const { signed, payoutId, attempt, at } = send;
  if (signed === undefined) return { findings: [] };
  const { keyring, platformId } = context;
  const keyFault = keyring && judgeKey(send, signed, keyring);
  if (keyFault !== undefined)
    return { findings: [{ payoutId, attempt, kind: 'key', message: keyFault, action: KEEP_KEYS }] };
  if (payout === undefined) return { findings: [] };
  const fail = (message: string, action: string): SendVerification => ({
    findings: [{ payoutId, attempt, kind: 'signature', message, action }],
  });
  if (payout.signed === undefined) return fail('its record has no signature any more', ALTERED);
  const isAsSent = hashOf(payout, platformId) === signed.intent;
  const now = isAsSent ? at - CHECKED_BEFORE_MS : Date.parse(payout.signed.issuedAt);
  const fault = keyring && verifyRecord(payout, { platformId, keyring, now });
  if (!isAsSent && keyring !== undefined && fault === undefined) return { findings: [], isSignedAgain: true };
  if (!isAsSent) return fail('its record stands for another intent than the one that was sent', ALTERED);
  return fault === undefined ? { findings: [] } : fail(fault, ASK);
}

function judgeKey(
  { at }: JournalEntry,
  { key: name, issuedAt, expiresAt }: SignedSend,
  keyring: BoundKeyring,
): string | undefined {
  const key = keyring.find(name);
  if (key === undefined) return `the key "${name}" that signed it is not in the keyring`;
  if (key.role !== 'producer') return `the key "${name}" that signed it has the role ${key.role}, not producer`;
  const { notBefore = -Infinity, notAfter = Infinity } = key;
  if (issuedAt < notBefore || issuedAt > notAfter) return `it was signed outside the time of the key "${name}"`;
  if (issuedAt > at + CLOCK_TOLERANCE_MS || expiresAt <= at - CHECKED_BEFORE_MS)
    return 'it was sent outside the time for which it was signed';
  return undefined;
}

function hashOf(payout: Payout, platformId: number): string | undefined {
  if (payout.signed === undefined) return undefined;
  try {
    return hashIntent(intentOf(platformId, payout, payout.signed));
  } catch (error) {
    if (error instanceof StatementError) return undefined;
    throw error;
  }
}

function verifyRecord(
  payout: Payout,
  { platformId, keyring, now }: { readonly platformId: number; readonly keyring: BoundKeyring; readonly now: number },
): string | undefined {
  const { signed } = payout;
  if (signed === undefined) return undefined;
  const verdict = verifyIntent(intentOf(platformId, payout, signed), signed, keysOfThen(keyring), now);
  return verdict.kind === 'refused' ? `its signature does not hold: ${verdict.message}` : undefined;
}

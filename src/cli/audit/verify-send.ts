import { hashIntent, type Intent, intentOf, intentOfProof } from '../../control/intents/intent.js';
import type { BoundKeyring, KeyFinder } from '../../control/keys/keyring.js';
import { StatementError } from '../../control/intents/statement.js';
import { verifyIntent } from '../../control/intents/verify-intent.js';
import { CLOCK_TOLERANCE_MS } from '../../control/intents/verify-signature.js';
import type { JournalEntry, SignedSend } from '../../journal/journal-line.js';
import type { Payout } from '../../ledger/payout.js';
import type { Finding } from './finding.js';

export interface SignatureContext {
  readonly platformId: number;
  /** Without it, only the hash of the intent is compared. */
  readonly keyring: BoundKeyring | undefined;
}

/** The longest time from verifying a signature to journaling the send, ms. */
const CHECKED_BEFORE_MS = 2_000;

const KEEP_KEYS =
  'Keep the keys that signed sends in the keyring, with `notAfter`. If it never was there, a worker of another keyring sent this.';
const ASK = 'Ask the person of the key whether it signed this payment, and the gateway what was paid.';
const ALTERED =
  'The journal has the hash of what was signed. Someone has altered the record in Redis since: compare the payment with what was ordered.';

interface SendVerification {
  readonly findings: readonly Finding[];
  readonly isVerified: boolean;
  /** Redis lost the payout and its approvals. The application enqueued it again with another valid signature. */
  readonly isSignedAgain?: true;
}

/**
 * Verifies the key as of the send, the journal's signature, and the record's intent.
 * @param payout - undefined without a record, or if its payment was altered
 */
export function verifySend(
  send: JournalEntry,
  payout: Payout | undefined,
  context: SignatureContext,
): SendVerification {
  const { signed, payoutId, attempt, at } = send;
  if (signed === undefined) return { findings: [], isVerified: false };
  const { keyring, platformId } = context;
  const fail = (kind: 'key' | 'signature', message: string, action: string): SendVerification => ({
    findings: [{ payoutId, attempt, kind, message, action }],
    isVerified: false,
  });
  const keyFault = keyring && judgeKey(send, signed, keyring);
  if (keyFault !== undefined) return fail('key', keyFault, KEEP_KEYS);
  const proofFault = keyring && judgeProof(send, signed, { platformId, keyring });
  if (proofFault !== undefined) return fail('signature', proofFault, ASK);
  const isProved = signed.proof !== undefined && keyring !== undefined;
  if (payout === undefined) return { findings: [], isVerified: isProved };
  if (payout.signed === undefined) return fail('signature', 'its record has no signature any more', ALTERED);
  const isAsSent = hashOf(intentOf(platformId, payout, payout.signed)) === signed.intent;
  const now = isAsSent ? at - CHECKED_BEFORE_MS : Date.parse(payout.signed.issuedAt);
  // Do not verify twice: verifying takes longer than all else.
  const isSame =
    isProved && isAsSent && payout.signed.signature === signed.proof.signature && payout.signed.key === signed.key;
  const fault = isSame ? undefined : keyring && verifyRecord(payout, { platformId, keyring, now });
  if (!isAsSent && keyring !== undefined && fault === undefined) {
    return { findings: [], isVerified: isProved, isSignedAgain: true };
  }
  if (!isAsSent) return fail('signature', 'its record stands for another intent than the one that was sent', ALTERED);
  if (fault !== undefined) return fail('signature', fault, ASK);
  return { findings: [], isVerified: keyring !== undefined };
}

function judgeProof(
  { payoutId, request, at }: JournalEntry,
  { key, intent: journaled, proof, ...times }: SignedSend,
  { platformId, keyring }: { readonly platformId: number; readonly keyring: BoundKeyring },
): string | undefined {
  if (proof === undefined) return undefined;
  const intent = intentOfProof(platformId, { payoutId, ...request }, proof, times);
  if (hashOf(intent) !== journaled)
    return 'its line in the journal stands for another intent than the one that it names';
  const { signature } = proof;
  const verdict = verifyIntent(intent, { key, signature }, keysOfThen(keyring), at - CHECKED_BEFORE_MS);
  return verdict.kind === 'refused' ? `its signature in the journal does not hold: ${verdict.message}` : undefined;
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

/** Undefined if a value cannot be part of a signed line. */
function hashOf(intent: Intent): string | undefined {
  try {
    return hashIntent(intent);
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

/**
 * A key revoked later counts: it was valid when it signed. The audit reports revoked keys separately: a thief's
 * signature looks like the owner's. Signatures without an environment count, as they did at the send.
 */
export function keysOfThen(keyring: BoundKeyring): KeyFinder {
  return {
    audience: keyring.audience,
    acceptsUnbound: () => true,
    find: (name) => {
      const key = keyring.find(name);
      return key && { ...key, revoked: false };
    },
  };
}

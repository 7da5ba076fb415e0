import { hashIntent } from '../../control/intent.js';
import type { Keyring } from '../../control/keyring.js';
import { intentOf } from '../../control/signed-payout.js';
import { StatementError } from '../../control/statement.js';
import { CLOCK_TOLERANCE_MS, verifyIntent } from '../../control/verify-intent.js';
import type { JournalEntry, SignedSend } from '../../journal/journal-line.js';
import type { Payout } from '../../ledger/payout.js';
import type { Finding, FindingKind } from './finding.js';
import { keysOfThen } from './keys-of-then.js';

export interface SignatureContext {
  readonly platformId: number;
  /** Undefined where there is none: the hash of the intent is compared all the same. */
  readonly keyring: Keyring | undefined;
}

/** Between the check of a signature and the line in the journal, ms. */
const CHECKED_BEFORE_MS = 2_000;

const KEEP_KEYS =
  'Keep the keys that signed sends in the keyring, with `notAfter`. If it never was there, a worker of another keyring sent this.';
const ASK = 'Ask the person of the key whether it signed this payment, and the gateway what was paid.';
const ALTERED =
  'The journal has the hash of what was signed. Somebody has altered the record in Redis since: compare the payment with what was ordered.';

/**
 * Verifies the signature of a journaled send: its key as it was then, and where the payout's record is still there, the intent that
 * it stands for.
 * @param payout - undefined where the ledger has no record of it (any more)
 */
export function verifySend(send: JournalEntry, payout: Payout | undefined, context: SignatureContext): Finding[] {
  const { signed } = send;
  if (signed === undefined) return [];
  const add = (kind: FindingKind, message: string, action: string): Finding[] => [
    { payoutId: send.payoutId, attempt: send.attempt, kind, message, action },
  ];
  const keyFault = context.keyring && judgeKey(send, signed, context.keyring);
  const ofKey = keyFault === undefined ? [] : add('key', keyFault, KEEP_KEYS);
  if (payout === undefined) return ofKey;
  if (hashOf(payout, context.platformId) !== signed.intent) {
    const isUnsigned = payout.signed === undefined;
    const message = isUnsigned
      ? 'its record has no signature any more'
      : 'its record stands for another intent than the one that was sent';
    return [...ofKey, ...add('signature', message, ALTERED)];
  }
  if (context.keyring === undefined || keyFault !== undefined) return ofKey;
  const fault = verifyRecord(send, payout, context.platformId, context.keyring);
  return fault === undefined ? [] : add('signature', fault, ASK);
}

function judgeKey(
  { at }: JournalEntry,
  { key: name, issuedAt, expiresAt }: SignedSend,
  keyring: Keyring,
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

function verifyRecord({ at }: JournalEntry, payout: Payout, platformId: number, keyring: Keyring): string | undefined {
  const { signed } = payout;
  if (signed === undefined) return undefined;
  const intent = intentOf(platformId, payout, signed);
  const verdict = verifyIntent(intent, signed, keysOfThen(keyring), at - CHECKED_BEFORE_MS);
  return verdict.kind === 'refused' ? `its signature does not hold: ${verdict.message}` : undefined;
}

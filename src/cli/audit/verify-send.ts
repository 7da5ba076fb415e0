import type { SignedApproval } from '../../ledger/control-record.js';
import { type ApprovalCount, countApprovals, hashApproval, paymentOf } from '../../control/approvals/approval.js';
import { decide } from '../../control/policy/decide.js';
import type { PolicyRule, PolicyWorld } from '../../control/policy/rule.js';
import { hashIntent, type Intent, intentOf, intentOfProof } from '../../control/intents/intent.js';
import type { BoundKeyring, KeyFinder } from '../../control/keys/keyring.js';
import { StatementError } from '../../control/intents/statement.js';
import { CLOCK_TOLERANCE_MS, verifyIntent } from '../../control/intents/verify-intent.js';
import { countRejections } from '../../control/approvals/rejection.js';
import type { RejectedSend } from '../../control/audit/verify-journal.js';
import type { PayoutState } from '../../ledger/states.js';
import type { JournalEntry, SignedSend } from '../../journal/journal-line.js';
import type { Payout } from '../../ledger/payout.js';
import { type AuditContext, type Finding, findingOf } from './finding.js';

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
  { platformId, keyring }: Pick<AuditContext, 'platformId' | 'keyring'>,
): SendVerification {
  const { signed, at } = send;
  if (signed === undefined) return { findings: [], isVerified: false };
  const fail = (kind: 'key' | 'signature', message: string, action: string): SendVerification => ({
    findings: [findingOf(send, kind, message, action)],
    isVerified: false,
  });
  const keyFault = keyring && findKeyFault(send, signed, keyring);
  if (keyFault !== undefined) return fail('key', keyFault, KEEP_KEYS);
  const proofFault = keyring && findProofFault(send, signed, platformId, keyring);
  if (proofFault !== undefined) return fail('signature', proofFault, ASK);
  const isProved = keyring !== undefined;
  if (payout === undefined) return { findings: [], isVerified: isProved };
  if (payout.signed === undefined) return fail('signature', 'its record has no signature any more', ALTERED);
  const isAsSent = hashOf(intentOf(platformId, payout, payout.signed)) === signed.intent;
  const now = isAsSent ? at - CHECKED_BEFORE_MS : Date.parse(payout.signed.issuedAt);
  // Do not verify twice: verifying takes longer than all else.
  const isSame =
    isProved && isAsSent && payout.signed.signature === signed.proof.signature && payout.signed.key === signed.key;
  const fault = isSame ? undefined : keyring && findRecordFault(payout, platformId, keyring, now);
  if (!isAsSent && keyring !== undefined && fault === undefined) {
    return { findings: [], isVerified: isProved, isSignedAgain: true };
  }
  if (!isAsSent) return fail('signature', 'its record stands for another intent than the one that was sent', ALTERED);
  if (fault !== undefined) return fail('signature', fault, ASK);
  return { findings: [], isVerified: keyring !== undefined };
}

function findProofFault(
  { payoutId, request, at }: JournalEntry,
  { key, intent: journaled, proof, ...times }: SignedSend,
  platformId: number,
  keyring: BoundKeyring,
): string | undefined {
  const intent = intentOfProof(platformId, { payoutId, ...request }, proof, times);
  if (hashOf(intent) !== journaled)
    return 'its line in the journal stands for another intent than the one that it names';
  const { signature } = proof;
  const verdict = verifyIntent(intent, { key, signature }, keysOfThen(keyring), at - CHECKED_BEFORE_MS);
  return verdict.kind === 'refused' ? `its signature in the journal does not hold: ${verdict.message}` : undefined;
}

function findKeyFault(
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

function hashOf(intent: Intent): string | undefined {
  try {
    return hashIntent(intent);
  } catch (error) {
    if (error instanceof StatementError) return undefined;
    throw error;
  }
}

function findRecordFault(payout: Payout, platformId: number, keyring: BoundKeyring, now: number): string | undefined {
  const { signed } = payout;
  if (signed === undefined) return undefined;
  const verdict = verifyIntent(intentOf(platformId, payout, signed), signed, keysOfThen(keyring), now);
  return verdict.kind === 'refused' ? `its signature does not hold: ${verdict.message}` : undefined;
}

/**
 * A key revoked later counts: it was valid when it signed. The audit reports revoked keys separately: a thief's
 * signature looks like the owner's.
 */
export function keysOfThen(keyring: BoundKeyring): KeyFinder {
  return {
    audience: keyring.audience,
    find: (name) => {
      const key = keyring.find(name);
      return key && { ...key, revoked: false };
    },
  };
}

const APPROVAL_REMOVED =
  'Someone has removed or altered it in Redis. Ask the people of the group whether they approved this payment.';
const NOT_COUNTED = 'Ask that person, and compare the keyring with the one of the worker: it counted the approval.';
const TOO_FEW =
  'A worker with this policy does not send it. Ask the people of the group, and look for another worker on this journal.';

/** Verifies a send's counted approvals against the record, and the quorum if the policy is still the same. */
export function verifyApprovals(
  send: JournalEntry,
  payout: Payout,
  { platformId, keyring, policy }: AuditContext,
): Finding[] {
  const { judged, signed } = send;
  if (judged === undefined || signed === undefined) return [];
  const finding = (message: string, action: string): Finding => findingOf(send, 'approval', message, action);
  const byHash = new Map(approvalsOf(payout, platformId));
  const counted = judged.approvals ?? [];
  const missing = counted.filter((hash) => !byHash.has(hash));
  if (keyring === undefined) return missing.map((hash) => finding(describeMissing(hash), APPROVAL_REMOVED));
  const { key, intent } = signed;
  const signedBy = keyring.find(key)?.person ?? '';
  const payment = paymentOf({ payoutId: send.payoutId, ...send.request });
  const about = { platformId, payoutId: send.payoutId, intent, signedBy, requestedBy: payout.requestedBy, payment };
  const countThen = (approvals: readonly SignedApproval[], now: number): ApprovalCount =>
    countApprovals(about, approvals, { keyring: keysOfThen(keyring), lifetimeMs: Infinity, now });
  const there = counted.flatMap((hash) => byHash.get(hash) ?? []);
  const { refused, approvedBy } = countThen(there, send.at);
  // The record keeps one approval a key: one for a later attempt replaces it.
  const replaced = (payout.approvals ?? []).filter((approval) => {
    const at = Date.parse(approval.at);
    return at > send.at && countThen([approval], at).approvedBy.size > 0;
  }).length;
  const quorum = missing.length > 0 ? undefined : policy && findMissingQuorum(send, approvedBy, policy);
  return [
    ...missing.slice(replaced).map((hash) => finding(describeMissing(hash), APPROVAL_REMOVED)),
    ...refused.map(({ by, message }) => finding(`the approval of key "${by}" does not count: ${message}`, NOT_COUNTED)),
    ...(quorum === undefined ? [] : [finding(quorum, TOO_FEW)]),
  ];
}

const SENT_REJECTED =
  'A worker that knew the rejection does not send it. Ask the gateway what was paid, and look for a worker with another keyring, or without one.';

export function toRejectedFinding(rejected: Pick<RejectedSend, 'payoutId' | 'attempt' | 'by' | 'person'>): Finding {
  const { by, person } = rejected;
  const message = `it was sent although ${person === by ? by : `${person} (key ${by})`} had rejected it`;
  return findingOf(rejected, 'rejected', message, SENT_REJECTED);
}

/**
 * The ledger takes a rejection only before a send, so one that stands came before the last attempt, whatever the clocks
 * say, unless the payout waits again.
 */
export function findRejection(
  { payoutId, attempt }: JournalEntry,
  payout: Payout,
  { platformId, keyring }: Pick<AuditContext, 'platformId' | 'keyring'>,
): Finding[] {
  const { approvals = [], state } = payout;
  if (keyring === undefined || attempt !== payout.attempt || MAY_COME_AFTER.includes(state)) return [];
  const { standing } = countRejections({ platformId, payoutId, approvals }, keysOfThen(keyring));
  const [first] = standing;
  if (first === undefined) return [];
  return [toRejectedFinding({ payoutId, attempt, by: first.by, person: first.person ?? first.by })];
}

const MAY_COME_AFTER: readonly PayoutState[] = ['queued', 'held', 'cancelled'];

function describeMissing(hash: string): string {
  return `an approval that counted (${hash}) is not in its record`;
}

/** By hash, without those that cannot be hashed. */
export function approvalsOf(
  { approvals = [] }: Payout,
  platformId: number,
): [hash: string, approval: SignedApproval][] {
  return approvals.flatMap((approval): [string, SignedApproval][] => {
    try {
      return [[hashApproval(platformId, approval), approval]];
    } catch (error) {
      if (error instanceof StatementError) return [];
      throw error;
    }
  });
}

/**
 * Checks only rules without a window or hours: what the others said then is unknown.
 * @returns undefined also if the send was checked against another policy
 */
function findMissingQuorum(
  { at, request, signed, judged }: JournalEntry,
  approvedBy: ReadonlySet<string>,
  { policy, hash, isListed }: NonNullable<AuditContext['policy']>,
): string | undefined {
  if (judged?.policy !== hash) return undefined;
  const { paymentId, addressTo, symbol } = request;
  const amount = symbol === undefined ? request.amount : (judged.coins ?? NOT_NOTED);
  const world: PolicyWorld = {
    ...{ now: at, wallNow: at, isListed, approvedBy, stranger: undefined, addressSeenAt: 0 },
    worth: judged.usd === undefined ? NOT_NOTED : { kind: 'known', micros: BigInt(judged.usd) },
    window: () => ({ sum: () => 0n, freeAt: () => undefined, ahead: 0n }),
  };
  const asked = { ...policy, uncovered: 'send', rules: policy.rules.filter(asksForPersons) } as const;
  const { verdict } = decide(asked, { paymentId, amount, addressTo, signer: signed?.key }, world);
  if (verdict.kind !== 'approve') return undefined;
  const persons = [...approvedBy].join(', ') || 'nobody';
  return `rule "${verdict.rule}" asks for ${verdict.missing} more of the group ${verdict.by} than approved it (${persons})`;
}

const NOT_NOTED = { kind: 'unknown', reason: 'it was not noted' } as const;

function asksForPersons({ over, cap, hours }: PolicyRule): boolean {
  return over.kind === 'approve' && cap?.withinMs === undefined && hours === undefined;
}

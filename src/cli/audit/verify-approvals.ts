import type { SignedApproval } from '../../ledger/control-record.js';
import { type ApprovalCount, countApprovals, hashApproval } from '../../control/approvals/approval.js';
import type { BoundKeyring } from '../../control/keys/keyring.js';
import { decide } from '../../control/policy/decide.js';
import type { LoadedPolicy } from '../../control/policy/policy-file.js';
import type { PolicyRule, PolicyWorld } from '../../control/policy/rule.js';
import { StatementError } from '../../control/intents/statement.js';
import type { JournalEntry } from '../../journal/journal-line.js';
import type { Payout } from '../../ledger/payout.js';
import type { Finding } from './finding.js';
import { keysOfThen, type SignatureContext } from './verify-send.js';

export interface ApprovalContext extends SignatureContext {
  /** Its quorums apply to sends that were checked against it. */
  readonly policy: PolicyOfThen | undefined;
}

const REMOVED =
  'Someone has removed or altered it in Redis. Ask the people of the group whether they approved this payment.';
const NOT_COUNTED = 'Ask that person, and compare the keyring with the one of the worker: it counted the approval.';
const TOO_FEW =
  'A worker with this policy does not send it. Ask the people of the group, and look for another worker on this journal.';

/** Verifies a send's counted approvals against the record, and the quorum if the policy is still the same. */
export function verifyApprovals(send: JournalEntry, payout: Payout, context: ApprovalContext): Finding[] {
  const { judged, signed, payoutId, attempt } = send;
  if (judged === undefined || signed === undefined) return [];
  const { platformId, keyring, policy } = context;
  const finding = (message: string, action: string): Finding => ({
    ...{ payoutId, attempt, kind: 'approval', message, action },
  });
  const byHash = new Map(approvalsOf(payout, platformId));
  const counted = judged.approvals ?? [];
  const missing = counted.filter((hash) => !byHash.has(hash));
  if (keyring === undefined) return missing.map((hash) => finding(describeMissing(hash), REMOVED));
  const there = counted.flatMap((hash) => byHash.get(hash) ?? []);
  const { refused, approvedBy } = countThen({ send, payout, platformId, keyring }, there, send.at);
  // The record keeps one approval a key: one for a later attempt replaces it.
  const replaced = (payout.approvals ?? []).filter((approval) => {
    const at = Date.parse(approval.at);
    return at > send.at && countThen({ send, payout, platformId, keyring }, [approval], at).approvedBy.size > 0;
  }).length;
  const quorum = missing.length > 0 ? undefined : policy && findMissingQuorum(send, approvedBy, policy);
  return [
    ...missing.slice(replaced).map((hash) => finding(describeMissing(hash), REMOVED)),
    ...refused.map(({ by, message }) => finding(`the approval of key "${by}" does not count: ${message}`, NOT_COUNTED)),
    ...(quorum === undefined ? [] : [finding(quorum, TOO_FEW)]),
  ];
}

function describeMissing(hash: string): string {
  return `an approval that counted (${hash}) is not in its record`;
}

interface CountContext {
  readonly send: JournalEntry;
  readonly payout: Payout;
  readonly platformId: number;
  readonly keyring: BoundKeyring;
}

function countThen(
  { send, payout, platformId, keyring }: CountContext,
  approvals: readonly SignedApproval[],
  now: number,
): ApprovalCount {
  const { key = '', intent = '' } = send.signed ?? {};
  const signedBy = keyring.find(key)?.person ?? '';
  const about = { platformId, payoutId: send.payoutId, intent, signedBy, requestedBy: payout.requestedBy };
  return countApprovals(about, approvals, { keyring: keysOfThen(keyring), lifetimeMs: Infinity, now });
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

type PolicyOfThen = Pick<LoadedPolicy, 'policy' | 'hash' | 'isListed'>;

/**
 * Checks only rules without a window or hours: what the others said then is unknown.
 * @returns undefined also if the send was checked against another policy
 */
function findMissingQuorum(
  { at, request, signed, judged }: JournalEntry,
  approvedBy: ReadonlySet<string>,
  { policy, hash, isListed }: PolicyOfThen,
): string | undefined {
  if (judged?.policy !== hash) return undefined;
  const { paymentId, amount, addressTo } = request;
  const world: PolicyWorld = {
    ...{ now: at, wallNow: at, isListed, approvedBy, rejectedBy: undefined, stranger: undefined, addressSeenAt: 0 },
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

import type { Approval, ApprovedPayment, SignedApproval } from '../../ledger/control-record.js';
import type { SignedFields } from '../intents/intent.js';
import { formatStatement, hashText, StatementError, tryFormat } from '../intents/statement.js';
import { verifySigner } from '../intents/verify-signature.js';
import type { KeyFinder } from '../keys/keyring.js';
import { namesPerson } from '../keys/person.js';
import type { Signer } from '../keys/signer.js';

/**
 * The lines that are signed. Those of the payment are empty unless it is an approval.
 * @throws StatementError when a value cannot stand on one line
 */
export function formatApproval(platformId: number, approval: Approval): string {
  return formatStatement('approval', approval.audience, [
    ['platformId', String(platformId)],
    ['payoutId', approval.payoutId],
    ['paymentId', approval.paymentId === undefined ? '' : String(approval.paymentId)],
    ['amount', approval.amount ?? ''],
    ['symbol', approval.symbol ?? ''],
    ['addressTo', approval.addressTo ?? ''],
    ['intent', approval.intent],
    ['decision', approval.decision],
    ['reason', approval.reason],
    ['by', approval.by],
    ['at', approval.at],
    ['expiresAt', approval.expiresAt ?? ''],
  ]);
}

export function hashApproval(platformId: number, approval: Approval): string {
  return hashText(formatApproval(platformId, approval));
}

/** Default lifetime of an approval, in ms, equal to a policy's default limit. */
export const APPROVAL_LIFETIME_MS = 24 * 60 * 60 * 1000;

/** Longest lifetime that is signed, in ms: no intent lasts longer. */
export const LONGEST_APPROVAL_MS = 7 * APPROVAL_LIFETIME_MS;

interface AskedApproval extends Pick<Approval, 'payoutId' | 'intent' | 'decision' | 'reason'> {
  readonly payment: ApprovedPayment;
}

export function paymentOf({ paymentId, amount, symbol = '', addressTo }: SignedFields): ApprovedPayment {
  return { paymentId, amount, symbol, addressTo };
}

/**
 * The text that {@link signApproval} or another program signs.
 * @param by - the key's name and the environment
 * @param now - wall clock, ms
 * @param lifetimeMs - of an approval: nothing else expires
 */
export function makeApproval(
  { payoutId, intent, decision, reason, payment }: AskedApproval,
  { name: by, audience }: { readonly name: string; readonly audience: string },
  now: number,
  lifetimeMs: number,
): Approval {
  const at = new Date(now).toISOString();
  const said = { intent, decision, reason, by, at };
  if (decision !== 'approve') return { audience, payoutId, ...said };
  return { audience, payoutId, ...payment, ...said, expiresAt: new Date(now + lifetimeMs).toISOString() };
}

export async function signApproval(signer: Signer, platformId: number, approval: Approval): Promise<SignedApproval> {
  return { ...approval, signature: await signer.sign(formatApproval(platformId, approval)) };
}

export interface ApprovedPayout {
  readonly platformId: number;
  readonly payoutId: string;
  readonly intent: string;
  readonly signedBy: string;
  readonly requestedBy: string | undefined;
  readonly payment: ApprovedPayment;
}

export interface ApprovalCount {
  readonly approvedBy: ReadonlySet<string>;
  readonly counted: readonly string[];
  readonly refused: readonly { readonly by: string; readonly message: string }[];
}

/** Without a keyring, or for a payout that is not verified, none counts. */
export const NO_APPROVALS: ApprovalCount = { approvedBy: new Set(), counted: [], refused: [] };

/** `lifetimeMs` is the policy's limit of an approval's lifetime; `now` is wall clock, ms. */
interface CountRule {
  readonly keyring: KeyFinder;
  readonly lifetimeMs: number;
  readonly now: number;
}

/** Counts approvals from Redis. They are untrusted: each signature is verified. Rejections: `countRejections`. */
export function countApprovals(
  payout: ApprovedPayout,
  approvals: readonly SignedApproval[],
  rule: CountRule,
): ApprovalCount {
  const approvedBy = new Set<string>();
  const counted: string[] = [];
  const refused: { by: string; message: string }[] = [];
  for (const approval of approvals) {
    if (approval.decision !== 'approve') continue;
    const verdict = verify(payout, approval, rule);
    if ('message' in verdict) refused.push({ by: approval.by, message: verdict.message });
    else {
      approvedBy.add(verdict.person);
      counted.push(hashApproval(payout.platformId, approval));
    }
  }
  return { approvedBy, counted, refused };
}

const PAYMENT_FIELDS = ['paymentId', 'amount', 'symbol', 'addressTo'] as const;

function verify(
  payout: ApprovedPayout,
  approval: SignedApproval,
  { keyring, lifetimeMs, now }: CountRule,
): { readonly person: string } | { readonly message: string } {
  const text = tryFormat(() => formatApproval(payout.platformId, approval));
  if (text instanceof StatementError) return { message: text.message };
  if (approval.payoutId !== payout.payoutId || approval.intent !== payout.intent) {
    return { message: 'it is about another payout, or the payout was signed again since' };
  }
  // A person may have been shown another payment beside the right hash.
  const other = PAYMENT_FIELDS.find((field) => approval[field] !== payout.payment[field]);
  if (other !== undefined) return { message: `its ${other} is another than that of the payout` };
  const { expiresAt = '' } = approval;
  const signer = verifySigner(text, { ...approval, expiresAt }, { role: 'approver', lifetimeMs }, keyring, now);
  if (signer.kind === 'refused') return signer;
  const { person } = signer.key;
  // Everyone may reject. No one approves their own payout.
  if (hasAsked(person, payout)) {
    return { message: `${person} asked for the payout, and cannot approve it` };
  }
  return { person };
}

/** Whether a person signed the payout, or is named in it, also in a look-alike spelling. */
export function hasAsked(person: string, { signedBy, requestedBy = '' }: ApprovedPayout): boolean {
  return person === signedBy || namesPerson(requestedBy, person);
}

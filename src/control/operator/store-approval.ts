import { z } from 'zod';
import { ConflictError, InvalidInputError, NotFoundError, NotVerifiedError } from '../../base/errors.js';
import { keyNameField, parseInput, payoutIdField } from '../../base/fields.js';
import {
  approvalFieldName,
  type SignedApproval,
  signedApprovalSchema,
  toApprovalField,
} from '../../ledger/control-record.js';
import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import { lineField, type Payout, toHeldField, toLine } from '../../ledger/payout.js';
import { parseRejection, type RejectionOf } from '../../ledger/sender-ledger.js';
import { hashApproval } from '../approvals/approval.js';
import { type ApprovalView, requireDecidable, verifyApprovals } from '../approvals/approvable-payout.js';
import { holdRejected } from '../approvals/rejection.js';

const BESIDE_IT = ['text'];

/**
 * Parses the output of `payouts approve --offline` without verifying it.
 * @throws InvalidInputError naming every field that breaks a rule
 */
export function parseUploadedApproval(input: unknown): SignedApproval {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw new InvalidInputError([{ field: 'approval', message: 'must be one signed approval, a JSON object' }]);
  }
  return parseApproval(Object.fromEntries(Object.entries(input).filter(([name]) => !BESIDE_IT.includes(name))));
}

/**
 * @returns the approver
 * @throws NotVerifiedError if a worker with this keyring would not count the decision
 */
export function requireApproval(payout: Payout, approval: SignedApproval, view: ApprovalView): string {
  const { payoutId, decision, intent, by } = approval;
  const approvals = [...(payout.approvals ?? []), approval];
  const check = verifyApprovals({ ...payout, approvals }, view).at(-1);
  const isOfNone = decision === 'unreject' && !hasRejection(payout, intent, view.platformId);
  const fault = isOfNone ? 'it takes back a rejection that the payout does not have' : check?.message;
  if (fault === undefined && check?.person !== undefined) return check.person;
  throw new NotVerifiedError(`${NAMES[decision]} of payout ${payoutId} by key ${by} does not count: ${fault ?? ''}`);
}

const NAMES = { approve: 'The approval', reject: 'The rejection', unreject: 'Taking back the rejection' } as const;

function hasRejection({ approvals = [] }: Payout, hash: string, platformId: number): boolean {
  return approvals.some((each) => each.decision === 'reject' && hashApproval(platformId, each) === hash);
}

/**
 * Stores a valid approval that was signed elsewhere. The signature proves it: its bearer does not matter.
 * @param source - as of {@link addApproval}
 * @returns the approver
 * @throws NotVerifiedError if the payout is not verified, or the approval does not count
 */
export async function storeApproval(
  ledger: PayoutLedger,
  payout: Payout,
  approval: SignedApproval,
  view: ApprovalView,
  source?: string,
): Promise<string> {
  requireDecidable(payout, approval.decision, view);
  const person = requireApproval(payout, approval, view);
  await addApproval(ledger, approval, { person, source });
  return person;
}

/** The most keys that may approve one payout, and the most rejections of one. */
export const MAX_APPROVALS = 40;
const MAX_APPROVAL_BYTES = 5_120;

const approvalField = signedApprovalSchema.extend({
  payoutId: payoutIdField,
  intent: z.string().regex(/^([0-9a-f]{64})?$/, 'must be the SHA-256 of an intent: 64 hexadecimal digits'),
  reason: z.literal('').or(lineField),
  by: keyNameField,
});

function parseApproval(input: unknown): SignedApproval {
  const approval = parseInput(approvalField, input);
  const { decision, intent, expiresAt } = approval;
  if (intent === '' && decision !== 'reject') {
    throw new InvalidInputError([{ field: 'intent', message: `is required where decision is ${decision}` }]);
  }
  const isPaymentGiven = [approval.paymentId, approval.amount, approval.symbol, approval.addressTo].map(
    (each) => each !== undefined,
  );
  if (isPaymentGiven.some((isGiven) => isGiven !== (decision === 'approve'))) {
    const message = `${decision === 'approve' ? 'are required' : 'must be absent'} where decision is ${decision}`;
    throw new InvalidInputError([{ field: 'paymentId, amount, symbol, addressTo', message }]);
  }
  // A rejection with an end would stop counting, and none does.
  if ((expiresAt === undefined) === (decision === 'approve')) {
    const message =
      decision === 'approve' ? 'is required: an approval expires' : `must be absent: no ${decision} expires`;
    throw new InvalidInputError([{ field: 'expiresAt', message }]);
  }
  const bytes = Buffer.byteLength(toApprovalField(approval));
  if (bytes <= MAX_APPROVAL_BYTES) return approval;
  const message = `must be at most ${MAX_APPROVAL_BYTES} bytes as JSON (got ${bytes})`;
  throw new InvalidInputError([{ field: 'approval', message }]);
}

/**
 * Stores a signed decision, and has the worker check the payout again. It grants nothing: the worker verifies it. A
 * rejection holds the payout at once. A key's later approval replaces its earlier one, but no rejection.
 * @param told - `person`: the approver, for the message of the hold; `source`: what a command for many chose them by,
 * such as `batch june`
 * @throws NotFoundError
 * @throws ConflictError if the payout is neither queued nor held, a rejection of the key stands, or {@link MAX_APPROVALS}
 * decided
 * @throws RedisUnavailableError if it may have happened; repeating is safe
 */
export async function addApproval(
  ledger: PayoutLedger,
  approval: SignedApproval,
  { person = approval.by, source = '' }: { readonly person?: string; readonly source?: string | undefined } = {},
): Promise<void> {
  const checked = parseApproval(approval);
  const { payoutId, decision, by, at, reason } = checked;
  const { run, keys, platformId } = ledger.connection;
  const field = approvalFieldName(checked, hashApproval(platformId, checked));
  const held = toHeldField(holdRejected({ person, by, reason }));
  const signed = { at: Date.parse(at), decision, by, reason, field, approval: toApprovalField(checked) };
  const args = { ...signed, most: MAX_APPROVALS, held, source: toLine(source) };
  const reply = await ledger.confirmed(async () => run('add-approval', args, [keys.payout(payoutId)]));
  const rejection = parseRejection('add-approval', reply);
  if (rejection !== undefined) throw toApprovalError(rejection, checked);
}

function toApprovalError(rejection: RejectionOf<'add-approval'>, { payoutId }: SignedApproval): Error {
  switch (rejection.kind) {
    case 'wrong_state': {
      const state = rejection.state ?? 'in an unknown state';
      const rule = 'only a payout that is queued or held is approved or rejected';
      return new ConflictError(`Payout ${payoutId} is ${state}: ${rule}`, ['state']);
    }
    case 'rejected_before':
      return new ConflictError(
        `The key ${rejection.by} rejected payout ${payoutId} before, which counts until its person takes it back: \`payouts unreject\``,
        ['approvals'],
      );
    case 'too_many_approvals':
      return new ConflictError(`Payout ${payoutId} has ${rejection.count} of them, which is the most`, ['approvals']);
    case 'not_found':
      return new NotFoundError(`Payout ${payoutId} not found`);
  }
}

import { z } from 'zod';
import { InvalidInputError, NotVerifiedError } from '../../errors.js';
import { parseInput } from '../../fields.js';
import { parseActor } from '../../ledger/actor.js';
import type { SignedApproval } from '../../ledger/control-record.js';
import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import type { Payout } from '../../ledger/payout.js';
import {
  judgeApproval,
  verifyApprovable,
  type ApprovablePayout,
  type ApprovalView,
} from '../approvals/approvable-payout.js';
import { addApproval, parseApproval } from './add-approval.js';

export interface UploadedApproval {
  readonly approval: SignedApproval;
  /** For the events and the activity; not signed. */
  readonly reason: string | undefined;
}

/** Unsigned fields that `payouts approve --offline` prints for readers. Only the verified content counts. */
const BESIDE_IT = ['payout', 'text', 'reason'];

/**
 * Does not verify it.
 * @param input - the parsed output of `payouts approve --offline`
 * @throws InvalidInputError naming every field that breaks a rule
 */
export function parseUploadedApproval(input: unknown): UploadedApproval {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw new InvalidInputError([{ field: 'approval', message: 'must be one signed approval, a JSON object' }]);
  }
  const approval = Object.fromEntries(Object.entries(input).filter(([name]) => !BESIDE_IT.includes(name)));
  const { reason } = parseInput(z.object({ reason: z.string('must be a string').optional() }), input);
  return {
    approval: parseApproval(approval),
    reason: reason === undefined ? undefined : parseActor({ by: 'approver', reason }).reason,
  };
}

export function checkApproval(payout: ApprovablePayout, approval: SignedApproval, view: ApprovalView): string {
  const { person, message } = judgeApproval(payout, approval, view);
  if (person !== undefined) return person;
  const { payoutId, by } = approval;
  throw new NotVerifiedError(`The approval of payout ${payoutId} by key ${by} does not count: ${message ?? ''}`);
}

/**
 * Stores a valid approval that was signed elsewhere. The signature proves it, so its bearer does not matter.
 * @returns the approver
 * @throws NotVerifiedError if the payout is not verified, or the approval does not count
 * @throws ConflictError if the payout is neither queued nor held, or the ledger accepts no approval of this key
 * @throws NotFoundError, RedisUnavailableError
 */
export async function storeApproval(
  ledger: PayoutLedger,
  payout: Payout,
  { approval, reason }: UploadedApproval,
  view: ApprovalView,
): Promise<string> {
  const person = checkApproval(verifyApprovable(payout, view), approval, view);
  await addApproval(ledger, approval, reason);
  return person;
}

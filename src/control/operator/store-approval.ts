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

/** An approval or a rejection that was signed elsewhere. */
export interface UploadedApproval {
  readonly approval: SignedApproval;
  /** For the events and the activity; not signed. */
  readonly reason: string | undefined;
}

/** What `payouts approve --offline` prints for persons to read, and is not signed: what is verified here counts. */
const BESIDE_IT = ['payout', 'text', 'reason'];

/**
 * Reads an approval in the form in which `payouts approve --offline` prints it. Whether it counts is not checked.
 * @param input - what the JSON stands for
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

/**
 * Checks that an approval of a payout counts now, as a worker with this keyring finds.
 * @returns the person who said it
 * @throws NotVerifiedError saying why it does not
 */
export function checkApproval(payout: ApprovablePayout, approval: SignedApproval, view: ApprovalView): string {
  const { person, message } = judgeApproval(payout, approval, view);
  if (person !== undefined) return person;
  const { payoutId, by } = approval;
  throw new NotVerifiedError(`The approval of payout ${payoutId} by key ${by} does not count: ${message ?? ''}`);
}

/**
 * Keeps an approval that was signed elsewhere, where it counts: it proves itself, so it does not matter who brings it.
 * @returns the person who said it
 * @throws NotVerifiedError when the payout is not verified, or the approval does not count
 * @throws ConflictError when the payout is neither queued nor held, or the ledger takes no approval of this key
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

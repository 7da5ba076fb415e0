import { z } from 'zod';
import { ConflictError, InvalidInputError, NotFoundError } from '../../errors.js';
import { keyNameField, parseInput, payoutIdField } from '../../fields.js';
import { signedApprovalSchema, type SignedApproval, toApprovalField } from '../../ledger/control-record.js';
import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import { toLine } from '../../ledger/payout.js';
import { parseRejection, type ScriptRejection } from '../../ledger/script-rejection.js';

/** The most keys that may approve or reject one payout. */
export const MAX_APPROVALS = 40;
/** The most bytes of a signed approval, as JSON. */
const MAX_APPROVAL_BYTES = 5_120;

const approvalField = signedApprovalSchema.extend({
  payoutId: payoutIdField,
  intent: z.string().regex(/^[0-9a-f]{64}$/, 'must be the SHA-256 of an intent: 64 hexadecimal digits'),
  by: keyNameField,
});

/**
 * Checks the form of a signed approval, as the ledger takes it. Whether it counts is not checked.
 * @throws InvalidInputError naming every field that breaks a rule
 */
export function parseApproval(input: unknown): SignedApproval {
  const approval = parseInput(approvalField, input);
  const bytes = Buffer.byteLength(toApprovalField(approval));
  if (bytes <= MAX_APPROVAL_BYTES) return approval;
  const message = `must be at most ${MAX_APPROVAL_BYTES} bytes as JSON (got ${bytes})`;
  throw new InvalidInputError([{ field: 'approval', message }]);
}

/**
 * Keeps a signed approval or rejection in the record of its payout, and has the worker judge the payout again. It grants
 * nothing: the worker verifies it. A later one of the same key takes its place, but no approval that of a rejection.
 * @param reason - for the events and the activity; not signed
 * @throws InvalidInputError when it has not the form of an approval
 * @throws NotFoundError when there is no such payout
 * @throws ConflictError when the payout is neither queued nor held, the key rejected it before, or it has the approvals of
 * {@link MAX_APPROVALS} keys
 * @throws RedisUnavailableError when it may or may not have happened; asking again is safe
 */
export async function addApproval(ledger: PayoutLedger, approval: SignedApproval, reason = ''): Promise<void> {
  const checked = parseApproval(approval);
  const { payoutId, decision, by, at } = checked;
  const { run, keys } = ledger.connection;
  const args = [Date.parse(at), decision, by, toLine(reason), toApprovalField(checked), MAX_APPROVALS];
  const reply = await ledger.confirmed(async () => run('add-approval', args, [keys.payout(payoutId)]));
  const rejection = parseRejection(reply);
  if (rejection !== undefined) throw toApprovalError(rejection, checked);
}

function toApprovalError(rejection: ScriptRejection, { payoutId }: SignedApproval): Error {
  switch (rejection.kind) {
    case 'wrong_state': {
      const state = rejection.state ?? 'in an unknown state';
      const rule = 'only a payout that is queued or held is approved or rejected';
      return new ConflictError(`Payout ${payoutId} is ${state}: ${rule}`, ['state']);
    }
    case 'rejected_before':
      return new ConflictError(
        `The key ${rejection.by} rejected payout ${payoutId} before, which stays: cancel the payout, or enqueue it again with a new signature`,
        ['approvals'],
      );
    case 'too_many_approvals':
      return new ConflictError(`Payout ${payoutId} has approvals of ${rejection.count} keys, which is the most`, [
        'approvals',
      ]);
    case 'not_found':
      return new NotFoundError(`Payout ${payoutId} not found`);
    default:
      return new Error(`add-approval refused payout ${payoutId} as ${rejection.kind}`);
  }
}

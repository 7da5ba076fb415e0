import { z } from 'zod';
import { ConflictError, InvalidInputError, NotFoundError } from '../../errors.js';
import { keyNameField, parseInput, payoutIdField } from '../../fields.js';
import { signedApprovalSchema, type SignedApproval, toApprovalField } from '../../ledger/control-record.js';
import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import { toLine } from '../../ledger/payout.js';
import { parseRejection, type ScriptRejection } from '../../ledger/script-rejection.js';

/** The most keys that may approve or reject one payout. */
export const MAX_APPROVALS = 40;
/** As JSON. */
const MAX_APPROVAL_BYTES = 5_120;

const approvalField = signedApprovalSchema.extend({
  payoutId: payoutIdField,
  intent: z.string().regex(/^[0-9a-f]{64}$/, 'must be the SHA-256 of an intent: 64 hexadecimal digits'),
  by: keyNameField,
});

/**
 * Checks the form only, not whether the approval counts.
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
 * Stores a signed approval or rejection with its payout, and has the worker check the payout again. It grants nothing:
 * the worker verifies it. A key's later decision replaces its earlier one, but an approval never replaces a rejection.
 * @param reason - for the events and the activity; not signed
 * @throws InvalidInputError if it does not have the form of an approval
 * @throws NotFoundError if there is no such payout
 * @throws ConflictError if the payout is neither queued nor held, the key rejected it before, or {@link MAX_APPROVALS}
 * keys decided
 * @throws RedisUnavailableError if it may or may not have happened; repeating is safe
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

import { z } from 'zod';
import { ConflictError, InvalidInputError, NotFoundError, NotVerifiedError } from '../../base/errors.js';
import { keyNameField, parseInput, payoutIdField } from '../../base/fields.js';
import { type SignedApproval, signedApprovalSchema, toApprovalField } from '../../ledger/control-record.js';
import { ask, type LedgerConnection } from '../../ledger/ledger-connection.js';
import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import { pairsToRecord } from '../../ledger/payout-record.js';
import { parseActor, type Payout, toLine } from '../../ledger/payout.js';
import { parseRejection, type ScriptRejection } from '../../ledger/sender-ledger.js';
import {
  type ApprovablePayout,
  type ApprovalView,
  verifyApproval,
  verifyApprovable,
} from '../approvals/approvable-payout.js';

export interface UploadedApproval {
  readonly approval: SignedApproval;
  readonly reason: string | undefined;
}

const BESIDE_IT = ['payout', 'text', 'reason'];

/**
 * Parses the output of `payouts approve --offline` without verifying it.
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

export function requireApproval(payout: ApprovablePayout, approval: SignedApproval, view: ApprovalView): string {
  const { person, message } = verifyApproval(payout, approval, view);
  if (person !== undefined) return person;
  const { payoutId, by } = approval;
  throw new NotVerifiedError(`The approval of payout ${payoutId} by key ${by} does not count: ${message ?? ''}`);
}

/**
 * Stores a valid approval that was signed elsewhere. The signature proves it: its bearer does not matter.
 * @returns the approver
 * @throws NotVerifiedError if the payout is not verified, or the approval does not count
 */
export async function storeApproval(
  ledger: PayoutLedger,
  payout: Payout,
  { approval, reason }: UploadedApproval,
  view: ApprovalView,
): Promise<string> {
  const person = requireApproval(verifyApprovable(payout, view), approval, view);
  await addApproval(ledger, approval, reason);
  return person;
}

/** The most keys that may decide on one payout. */
export const MAX_APPROVALS = 40;
const MAX_APPROVAL_BYTES = 5_120;

const approvalField = signedApprovalSchema.extend({
  payoutId: payoutIdField,
  intent: z.string().regex(/^[0-9a-f]{64}$/, 'must be the SHA-256 of an intent: 64 hexadecimal digits'),
  by: keyNameField,
});

function parseApproval(input: unknown): SignedApproval {
  const approval = parseInput(approvalField, input);
  const bytes = Buffer.byteLength(toApprovalField(approval));
  if (bytes <= MAX_APPROVAL_BYTES) return approval;
  const message = `must be at most ${MAX_APPROVAL_BYTES} bytes as JSON (got ${bytes})`;
  throw new InvalidInputError([{ field: 'approval', message }]);
}

/**
 * Stores a signed approval or rejection, and has the worker check the payout again. It grants nothing: the worker
 * verifies it. A key's later decision replaces its earlier one, but an approval never replaces a rejection.
 * @throws NotFoundError
 * @throws ConflictError if the payout is neither queued nor held, the key rejected it before, or {@link MAX_APPROVALS}
 * keys decided
 * @throws RedisUnavailableError if it may have happened; repeating is safe
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

/** The newest acts are searched; the ledger keeps about 10,000. */
const SEARCHED_ACTS = 3_000;
const ACTS_PER_READ = 1_000;

/** @param since - when the oldest approval was signed, wall clock, ms */
export async function readApprovalReasons(
  { redis, keys }: LedgerConnection,
  payoutId: string,
  since: number,
): Promise<ReadonlyMap<string, string>> {
  const reasons = new Map<string, string>();
  // The signer's clock may be ahead of that of Redis.
  const end = String(Math.max(0, since - CLOCK_MARGIN_MS));
  let place = '+';
  for (let searched = 0; searched < SEARCHED_ACTS; searched += ACTS_PER_READ) {
    const acts = await ask(redis.xrevrange(keys.activity, place, end, 'COUNT', ACTS_PER_READ));
    for (const [, pairs] of acts) {
      const act = pairsToRecord(pairs);
      if (act['type'] !== 'approval' || act['payoutId'] !== payoutId || !act['reason']) continue;
      const key = toReasonKey(act['by'] ?? '', Number(act['at']));
      if (!reasons.has(key)) reasons.set(key, act['reason']);
    }
    const last = acts.at(-1)?.[0];
    if (last === undefined || acts.length < ACTS_PER_READ) break;
    place = `(${last}`;
  }
  return reasons;
}

const CLOCK_MARGIN_MS = 10 * 60_000;

export function toReasonKey(by: string, at: number): string {
  return `${by} ${at}`;
}

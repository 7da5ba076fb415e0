import { InvalidInputError, type Problem } from '../errors.js';
import { parseInput } from '../fields.js';
import { payoutInputSchema, type PayoutInput, type ValidPayout } from '../ledger/payout.js';
import type { EnqueueResult } from '../ledger/payout-ledger.js';
import type { AccountAccess } from './account-access.js';
import { addWithdrawJobs, type JoblessPayouts } from './add-withdraw-jobs.js';

/** Large enough to make round trips cheap, small enough to leave Redis time for others. */
const CHUNK_SIZE = 1_000;

/**
 * Checks payouts that are given together.
 * @throws InvalidInputError naming every problem with the payout's index, such as `[3].amount`
 */
export function parsePayouts(inputs: readonly PayoutInput[]): ValidPayout[] {
  const payouts: ValidPayout[] = [];
  const problems: Problem[] = [];
  for (const [index, input] of inputs.entries()) {
    try {
      payouts.push(parseInput(payoutInputSchema, input));
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      for (const { field, message } of error.problems) problems.push({ field: `[${index}].${field}`, message });
    }
  }
  if (problems.length > 0) throw new InvalidInputError(problems);
  return payouts;
}

/**
 * Writes payouts to the ledger and then rings for them, chunk by chunk: while one chunk gets its jobs, the next is
 * written.
 * @returns one result for each payout, in order
 * @throws RedisUnavailableError when the ledger cannot be written; earlier chunks stay accepted
 */
export async function enqueuePayouts(
  account: AccountAccess,
  payouts: readonly ValidPayout[],
): Promise<EnqueueResult[]> {
  const results: EnqueueResult[] = [];
  let ringing = Promise.resolve();
  try {
    for (let start = 0; start < payouts.length; start += CHUNK_SIZE) {
      const chunk = payouts.slice(start, start + CHUNK_SIZE);
      const answers = await account.ledger.enqueue(chunk);
      results.push(...answers);
      await ringing;
      ringing = addWithdrawJobs(account, findJobless(chunk, answers));
    }
  } finally {
    await ringing;
  }
  return results;
}

/** New payouts, and those still queued: an enqueue that ended half-way may have left them without a job. */
function findJobless(payouts: readonly ValidPayout[], results: readonly EnqueueResult[]): JoblessPayouts {
  return {
    fresh: payouts.filter((_, index) => results[index]?.kind === 'created'),
    waiting: results.flatMap((result) =>
      result.kind === 'exists' && result.payout.state === 'queued' ? [result.payout] : [],
    ),
  };
}

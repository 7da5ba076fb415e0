import { InvalidInputError, type Problem } from '../errors.js';
import { parseInput } from '../fields.js';
import { payoutInputSchema, type NewPayout, type PayoutInput } from '../ledger/payout.js';
import type { EnqueueResult } from '../ledger/payout-ledger.js';
import type { LedgerAccess } from '../queues/open-ledger.js';
import type { AcceptedPayouts } from '../queues/outbox-relay.js';
import type { PayoutSigner } from './payout-signer.js';

/** Large enough to make round trips cheap, small enough to leave Redis time for others. */
export const CHUNK_SIZE = 1_000;

/**
 * Checks payouts that are given together.
 * @throws InvalidInputError naming every problem with the payout's index, such as `[3].amount`
 */
export function parsePayouts(inputs: readonly PayoutInput[], signer: PayoutSigner | undefined): NewPayout[] {
  const payouts: NewPayout[] = [];
  const problems: Problem[] = [];
  for (const [index, input] of inputs.entries()) {
    try {
      const payout = parseInput(payoutInputSchema, input);
      signer?.check(payout);
      payouts.push(payout);
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      for (const { field, message } of error.problems) problems.push({ field: `[${index}].${field}`, message });
    }
  }
  if (problems.length > 0) throw new InvalidInputError(problems);
  return payouts;
}

/**
 * Writes payouts to the ledger and then rings for them, chunk by chunk.
 * @param signer - signs those that are not signed yet; undefined where payouts are not signed
 * @returns one result for each payout, in order
 * @throws RedisUnavailableError when the ledger cannot be written; earlier chunks stay accepted
 */
export async function enqueuePayouts(
  account: LedgerAccess,
  payouts: readonly NewPayout[],
  signer: PayoutSigner | undefined,
): Promise<EnqueueResult[]> {
  const results: EnqueueResult[] = [];
  for await (const chunk of enqueueChunks(account, inChunks(payouts), signer)) results.push(...chunk);
  return results;
}

/**
 * As `enqueuePayouts`, for payouts that are not all in memory: while one chunk gets its jobs, the next is read and written.
 * @param chunks - each of some {@link CHUNK_SIZE} payouts
 * @param signer - as for `enqueuePayouts`; a chunk is signed when its turn comes, so that signing never keeps the process
 * busy for long, and no signature is older than its payout
 * @returns the results of one chunk after the other
 */
export async function* enqueueChunks(
  account: LedgerAccess,
  chunks: Iterable<readonly NewPayout[]> | AsyncIterable<readonly NewPayout[]>,
  signer: PayoutSigner | undefined,
): AsyncGenerator<EnqueueResult[]> {
  const { relay } = await account.openQueues();
  let ringing = Promise.resolve();
  try {
    for await (const chunk of chunks) {
      const given = signer === undefined ? chunk : chunk.map((payout) => signer.sign(payout));
      const results = await account.ledger.enqueue(given);
      await ringing;
      ringing = relay.tryDeliverAccepted(findJobless(chunk, results));
      yield results;
    }
  } finally {
    await ringing;
  }
}

function* inChunks(payouts: readonly NewPayout[]): Generator<readonly NewPayout[]> {
  for (let start = 0; start < payouts.length; start += CHUNK_SIZE) yield payouts.slice(start, start + CHUNK_SIZE);
}

/** New payouts, and those still queued: an enqueue that ended half-way may have left them without a job. */
function findJobless(payouts: readonly NewPayout[], results: readonly EnqueueResult[]): AcceptedPayouts {
  return {
    fresh: payouts.filter((_, index) => results[index]?.kind === 'created'),
    waiting: results.flatMap((result) =>
      result.kind === 'exists' && result.payout.state === 'queued' ? [result.payout] : [],
    ),
  };
}

import { isAborted } from '../../clock.js';
import { StoppedError } from '../../errors.js';
import type { NewPayout } from '../../ledger/payout.js';
import type { EnqueueResult } from '../../ledger/payout-ledger.js';
import type { LedgerAccess } from '../../queues/open-ledger.js';
import { CHUNK_SIZE, PayoutIntake } from '../../producer/payout-intake.js';
import type { PayoutSigner } from '../../control/intents/payout-signer.js';
import type { PayoutSpool, SpooledPayout } from './payout-spool.js';

/** A payout that the ledger has with different data, or has removed. */
export type Conflict = Extract<EnqueueResult, { kind: 'conflict' | 'removed' }> & { readonly line: number };

/** What became of the payouts so far. */
export interface EnqueueCounts {
  created: number;
  existing: number;
  /** Of the existing: those that are in no batch, or in another one than the file's. */
  otherBatch: number;
  conflicts: number;
  /** Of the conflicts: final payouts that were removed, whose data can no longer be compared. */
  removed: number;
}

export interface EnqueueSpoolOptions {
  readonly account: LedgerAccess;
  /** Undefined where payouts are not signed. */
  readonly signer: PayoutSigner | undefined;
  /** Updated during the run, for the caller to know them also when it fails. */
  readonly counts: EnqueueCounts;
  readonly onConflict: (conflict: Conflict) => void;
  readonly onProgress: () => void;
  readonly signal: AbortSignal;
}

/**
 * Enqueues the checked payouts, chunk by chunk. Those that already exist are counted as such, so a second run continues
 * where the first one ended.
 * @throws RedisUnavailableError, StoppedError: the chunks before are done
 */
export async function enqueueSpool(spool: PayoutSpool, options: EnqueueSpoolOptions): Promise<void> {
  const { account, signer, signal, onProgress } = options;
  // The next is read before the results of one are there.
  const given: SpooledPayout[][] = [];
  const chunks = async function* (): AsyncGenerator<NewPayout[]> {
    for await (const chunk of inChunks(spool.read())) {
      if (isAborted(signal)) throw new StoppedError('Stopped');
      given.push(chunk);
      yield chunk.map(({ payout }) => payout);
    }
  };
  const intake = await PayoutIntake.open(account);
  for await (const results of intake.enqueueChunks(chunks(), signer)) {
    countResults(given.shift() ?? [], results, options);
    onProgress();
  }
}

async function* inChunks(payouts: AsyncIterable<SpooledPayout>): AsyncGenerator<SpooledPayout[]> {
  let chunk: SpooledPayout[] = [];
  for await (const payout of payouts) {
    chunk.push(payout);
    if (chunk.length < CHUNK_SIZE) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}

function countResults(
  chunk: readonly SpooledPayout[],
  results: readonly EnqueueResult[],
  { counts, onConflict }: EnqueueSpoolOptions,
): void {
  for (const [index, result] of results.entries()) {
    const given = chunk[index];
    if (given === undefined) throw new Error('The ledger returned more results than it was given payouts');
    if (result.kind === 'created') counts.created += 1;
    else if (result.kind === 'exists') {
      counts.existing += 1;
      if (given.payout.batch !== undefined && result.payout.batch !== given.payout.batch) counts.otherBatch += 1;
    } else {
      counts.conflicts += 1;
      if (result.kind === 'removed') counts.removed += 1;
      onConflict({ ...result, line: given.line });
    }
  }
}

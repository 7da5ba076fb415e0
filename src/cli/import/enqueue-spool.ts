import { isAborted } from '../../clock.js';
import { StoppedError } from '../../errors.js';
import type { EnqueueResult } from '../../ledger/payout-ledger.js';
import type { AccountAccess } from '../../producer/account-access.js';
import { enqueuePayouts } from '../../producer/enqueue-payouts.js';
import type { PayoutSpool, SpooledPayout } from './payout-spool.js';

/** A payout that the ledger has with other data than the file, or no longer has. */
export type Conflict = Extract<EnqueueResult, { kind: 'conflict' | 'removed' }> & { readonly line: number };

/** What became of the payouts so far. */
export interface EnqueueCounts {
  created: number;
  existing: number;
  /** Of the existing: those that are in no batch, or in another one than the file's. */
  otherBatch: number;
  conflicts: number;
  /** Of the conflicts: those that ended and were removed, so that nobody can tell whether they differ. */
  removed: number;
}

export interface EnqueueSpoolOptions {
  readonly account: AccountAccess;
  /** Added up while it goes on, so that the caller knows them also when it fails. */
  readonly counts: EnqueueCounts;
  readonly onConflict: (conflict: Conflict) => void;
  readonly onProgress: () => void;
  readonly signal: AbortSignal;
}

/** Enough for the producer to give jobs to some while it writes others, and few enough to stop soon. */
const STEP = 5_000;

/**
 * Enqueues the checked payouts, step by step; while one step is written, the next is read. Those that are there already
 * are counted as such, so doing it again goes on where it ended.
 * @throws RedisUnavailableError, StoppedError: the steps before are done
 */
export async function enqueueSpool(spool: PayoutSpool, options: EnqueueSpoolOptions): Promise<void> {
  let writing = Promise.resolve();
  try {
    for await (const step of inSteps(spool.read())) {
      await writing;
      if (isAborted(options.signal)) throw new StoppedError('Stopped');
      writing = writeStep(step, options);
      // Its failure is seen when the next step is there.
      writing.catch(() => undefined);
    }
  } finally {
    await writing;
  }
}

async function* inSteps(payouts: AsyncIterable<SpooledPayout>): AsyncGenerator<SpooledPayout[]> {
  let step: SpooledPayout[] = [];
  for await (const payout of payouts) {
    step.push(payout);
    if (step.length < STEP) continue;
    yield step;
    step = [];
  }
  if (step.length > 0) yield step;
}

async function writeStep(step: readonly SpooledPayout[], options: EnqueueSpoolOptions): Promise<void> {
  const { account, counts, onConflict, onProgress } = options;
  const results = await enqueuePayouts(
    account,
    step.map(({ payout }) => payout),
  );
  for (const [index, result] of results.entries()) {
    const given = step[index];
    if (given === undefined) throw new Error('The ledger answered for more payouts than it was given');
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
  onProgress();
}

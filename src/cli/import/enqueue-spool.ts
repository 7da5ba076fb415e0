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
  conflicts: number;
}

export interface EnqueueSpoolOptions {
  readonly account: AccountAccess;
  /** Added up while it goes on, so that the caller knows them also when it fails. */
  readonly counts: EnqueueCounts;
  readonly onConflict: (conflict: Conflict) => void;
  readonly onProgress: () => void;
  readonly signal: AbortSignal;
}

/** Large enough to make round trips cheap, small enough to stop soon and to need little memory. */
const STEP = 1_000;

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
  const payouts = step.map(({ payout }) => payout);
  const results = await enqueuePayouts(account, payouts);
  for (const [index, result] of results.entries()) {
    if (result.kind === 'created') counts.created += 1;
    else if (result.kind === 'exists') counts.existing += 1;
    else {
      counts.conflicts += 1;
      onConflict({ ...result, line: step[index]?.line ?? 0 });
    }
  }
  onProgress();
}

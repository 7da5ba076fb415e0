import { ConflictError, NotFoundError } from '../base/errors.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import type { EnqueueResult } from '../ledger/payout-ledger.js';
import { PAYOUT_STATES, type PayoutState } from '../ledger/states.js';

/** A payout that the ledger has. */
export interface EnqueuedPayout {
  readonly payoutId: string;
  readonly state: PayoutState;
  /** False if it existed with the same data. */
  readonly created: boolean;
}

/** The result for one payout of many. A conflict is a value, so it does not stop the others. */
export type BulkResult =
  | ({ readonly kind: 'created' | 'existing' } & EnqueuedPayout)
  | {
      readonly kind: 'conflict';
      readonly payoutId: string;
      readonly state: PayoutState;
      /** The fields that differ from the existing payout. */
      readonly fields: readonly string[];
      /** Retention removed the final payout, so differences are unknown. */
      readonly removed?: true;
    };

/** The results of payouts that were enqueued together. */
export interface BulkEnqueue {
  /** One for each payout, in the order given. */
  readonly results: readonly BulkResult[];
  readonly created: number;
  readonly existing: number;
  readonly conflicts: number;
}

export function toBulkEnqueue(found: readonly EnqueueResult[]): BulkEnqueue {
  const results = found.map(toBulkResult);
  const count = (kind: BulkResult['kind']): number => results.filter((result) => result.kind === kind).length;
  return { results, created: count('created'), existing: count('existing'), conflicts: count('conflict') };
}

/** @throws ConflictError if the payoutId exists with other data */
export function toEnqueuedPayout(found: EnqueueResult): EnqueuedPayout {
  const result = toBulkResult(found);
  if (result.kind !== 'conflict') {
    const { payoutId, state, created } = result;
    return { payoutId, state, created };
  }
  const { payoutId, state, fields, removed } = result;
  if (removed) {
    throw new ConflictError(
      `Payout ${payoutId} was ${state} and has been removed (PAYOUT_RETENTION_DAYS). It is never paid again. Use a new payoutId only for another payment that is owed as well.`,
      ['payoutId'],
    );
  }
  throw new ConflictError(
    `Payout ${payoutId} already exists (${state}) with a different ${fields.join(', ')}. Send identical data, or, if it is another payment that is owed as well, use a new payoutId: both are paid.`,
    fields,
  );
}

function toBulkResult(result: EnqueueResult): BulkResult {
  switch (result.kind) {
    case 'created':
      return { kind: 'created', payoutId: result.payoutId, state: 'queued', created: true };
    case 'exists':
      return { kind: 'existing', payoutId: result.payout.payoutId, state: result.payout.state, created: false };
    case 'removed':
      return { kind: 'conflict', payoutId: result.payoutId, state: result.state, fields: [], removed: true };
    case 'conflict':
      return result;
  }
}

/** Payouts of a batch by state. */
export interface BatchStats extends Readonly<Record<PayoutState, number>> {
  readonly batch: string;
  readonly total: number;
}

/** @throws NotFoundError if the batch has no payouts; RedisUnavailableError */
export async function readBatchStats(connection: LedgerConnection, batch: string): Promise<BatchStats> {
  const { readBatchSums } = await import('../ledger/reads/batches.js');
  const sums = await readBatchSums(connection, batch);
  const counts = PAYOUT_STATES.map(
    (state) => [state, sums[state].reduce((total, { count }) => total + count, 0)] as const,
  );
  const total = counts.reduce((all, [, count]) => all + count, 0);
  if (total === 0) throw new NotFoundError(`Batch ${batch} not found`);
  return { batch, total, ...(Object.fromEntries(counts) as Record<PayoutState, number>) };
}

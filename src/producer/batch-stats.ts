import { NotFoundError } from '../errors.js';
import { readBatchCounts } from '../ledger/batch-counts.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import { PAYOUT_STATES, type PayoutState } from '../ledger/states.js';

/** Payouts of a batch by state. */
export interface BatchStats extends Readonly<Record<PayoutState, number>> {
  readonly batch: string;
  readonly total: number;
}

/** @throws NotFoundError if the batch has no payouts; RedisUnavailableError */
export async function readBatchStats(connection: LedgerConnection, batch: string): Promise<BatchStats> {
  const { total, counts } = await readBatchCounts(connection, batch);
  if (total === 0) throw new NotFoundError(`Batch ${batch} not found`);
  const byState = Object.fromEntries(PAYOUT_STATES.map((state) => [state, counts.get(state) ?? 0]));
  return { batch, total, ...(byState as Record<PayoutState, number>) };
}

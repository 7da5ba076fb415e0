import { NotFoundError } from '../errors.js';
import { pipelined, type LedgerConnection } from '../ledger/ledger-connection.js';
import { listPayoutIds } from '../ledger/payout-queries.js';
import { PAYOUT_STATES, type PayoutState } from '../ledger/states.js';

/** How far the payouts of a batch are. */
export interface BatchStats extends Readonly<Record<PayoutState, number>> {
  readonly batch: string;
  readonly total: number;
}

const PAGE_SIZE = 1_000;

/**
 * Counts the payouts of a batch by state. A batch has no counters of its own, so the time grows with its size.
 * @throws NotFoundError when no payout is in the batch
 */
export async function readBatchStats(connection: LedgerConnection, batch: string): Promise<BatchStats> {
  const counts = new Map<unknown, number>();
  let total = 0;
  let cursor: string | undefined;
  do {
    const { payoutIds, next } = await listPayoutIds(connection, {
      batch,
      limit: PAGE_SIZE,
      ...(cursor === undefined ? {} : { cursor }),
    });
    for (const state of await readStates(connection, payoutIds)) counts.set(state, (counts.get(state) ?? 0) + 1);
    total += payoutIds.length;
    cursor = next;
  } while (cursor !== undefined);
  if (total === 0) throw new NotFoundError(`Batch ${batch} not found`);
  const byState = Object.fromEntries(PAYOUT_STATES.map((state) => [state, counts.get(state) ?? 0]));
  return { batch, total, ...(byState as Record<PayoutState, number>) };
}

async function readStates(connection: LedgerConnection, payoutIds: readonly string[]): Promise<unknown[]> {
  return pipelined(connection, (pipeline) => {
    for (const payoutId of payoutIds) pipeline.hget(connection.keys.payout(payoutId), 'state');
  });
}

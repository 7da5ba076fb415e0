import { ask, type LedgerConnection } from './ledger-connection.js';
import { readPayout } from './payout-queries.js';

/**
 * Counts the payouts that have been `in_progress` for longer than `stuckAfterMs`. The index is in order of entry, so a
 * binary search suffices: 20 reads for a million payouts.
 */
export async function countStuck(connection: LedgerConnection, stuckAfterMs: number): Promise<number> {
  const { redis, keys, clock } = connection;
  const index = keys.state('in_progress');
  const before = clock.wallNow() - stuckAfterMs;
  let stuck = 0;
  let young = await ask(redis.zcard(index));
  while (stuck < young) {
    const middle = Math.floor((stuck + young) / 2);
    const [payoutId] = await ask(redis.zrange(index, String(middle), String(middle)));
    const payout = payoutId === undefined ? undefined : await readPayout(connection, payoutId);
    // A payout that has left the state meanwhile was changed just now.
    const isStuck = payout?.state === 'in_progress' && Date.parse(payout.updatedAt) < before;
    if (isStuck) stuck = middle + 1;
    else young = middle;
  }
  return stuck;
}

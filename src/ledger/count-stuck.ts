import { ask, type LedgerConnection } from './ledger-connection.js';
import { readPayout } from './payout-queries.js';

/**
 * Counts the payouts that have been `in_progress` for longer than a time. The ledger keeps them in the order in which
 * they came into the state, so a search by halves finds the first that is young: 20 looks for a million payouts.
 * @param stuckAfterMs - ms
 * @throws RedisUnavailableError
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
    // One that has left the state in the meantime was changed just now.
    const isStuck = payout?.state === 'in_progress' && Date.parse(payout.updatedAt) < before;
    if (isStuck) stuck = middle + 1;
    else young = middle;
  }
  return stuck;
}

import { ask, pipelined, type LedgerConnection } from './ledger-connection.js';
import { toPaymentFacts, type PaymentFacts } from './payment-facts.js';
import type { PayoutState } from './states.js';

/**
 * Removes payouts that came into a final state before a time: of each, its id and that state stay.
 * @param before - wall clock, ms
 * @param limit - at most this many are looked at, the oldest first
 * @returns what each was that was removed
 * @throws RedisUnavailableError
 */
export async function removePayouts(
  connection: LedgerConnection,
  state: PayoutState,
  before: number,
  limit: number,
): Promise<PaymentFacts[]> {
  const { redis, keys, run } = connection;
  const payoutIds = await ask(redis.zrange(keys.state(state), '0', String(limit - 1)));
  if (payoutIds.length === 0) return [];
  const records = (await pipelined(connection, (pipeline) => {
    for (const payoutId of payoutIds)
      pipeline.hmget(keys.payout(payoutId), 'txhash', 'batch', 'paymentId', 'symbol', 'amount');
  })) as (string | null)[][];
  const touched = payoutIds.flatMap((payoutId, index) => {
    const [txhash, batch] = records[index] ?? [];
    const record = keys.payout(payoutId);
    return [
      record,
      keys.removedBucket(payoutId),
      txhash == null ? record : keys.txhashBucket(txhash),
      batch == null ? record : keys.batch(batch),
    ];
  });
  const args = records.flatMap(([txhash, batch]) => [txhash ?? '', batch == null ? 0 : 1]);
  const removed = (await run('remove-payouts', [state, before, ...args], touched)) as number[];
  return removed.flatMap((place) => toPaymentFacts(records[place - 1]?.slice(2) ?? []) ?? []);
}

import type { LedgerConnection } from './ledger-connection.js';
import { isPayoutState, type PayoutState } from './states.js';

/** Payouts by state. */
export type StateCounts = Map<PayoutState, number>;

/** Payouts of a batch, counted at one moment. */
export interface CountedStates {
  /** The counts are those right after this event. */
  readonly eventId: string;
  /** How many payouts the whole batch has. */
  readonly total: number;
  /** Of the payouts that were given. */
  readonly counts: StateCounts;
}

/** Payouts of one script: 500 keep Redis busy for some 1 ms. */
export const PAYOUTS_PER_COUNT = 500;

/**
 * Counts payouts of a batch by state.
 * @param payoutIds - {@link PAYOUTS_PER_COUNT} at most
 * @throws RedisUnavailableError
 */
export async function countStates(
  { run, keys }: LedgerConnection,
  batch: string,
  payoutIds: readonly string[],
): Promise<CountedStates> {
  const records = payoutIds.map((payoutId) => keys.payout(payoutId));
  const reply = (await run('count-states', [], [keys.batch(batch), ...records])) as [string, number, ...unknown[]];
  const [eventId, total, ...pairs] = reply;
  const counts: StateCounts = new Map();
  for (let index = 0; index < pairs.length; index += 2) {
    const state = String(pairs[index]);
    if (isPayoutState(state)) counts.set(state, Number(pairs[index + 1]));
  }
  return { eventId, total, counts };
}

/** @param times - -1 takes them out */
export function addCount(counts: StateCounts, state: PayoutState, times: number): void {
  counts.set(state, (counts.get(state) ?? 0) + times);
}

/** All payouts that were counted. */
export function sumCounts(counts: StateCounts): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

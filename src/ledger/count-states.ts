import type { LedgerConnection } from './ledger-connection.js';
import { isPayoutState, type PayoutState } from './states.js';

export type StateCounts = Map<PayoutState, number>;

export interface CountedStates {
  /** The counts are those right after this event. */
  readonly eventId: string;
  /** The number of payouts in the whole batch. */
  readonly total: number;
  readonly counts: StateCounts;
}

/** 500 keep Redis busy for some 1 ms. */
export const PAYOUTS_PER_COUNT = 500;

/** @param payoutIds - {@link PAYOUTS_PER_COUNT} at most */
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

/** @param times - -1 subtracts one */
export function addCount(counts: StateCounts, state: PayoutState, times: number): void {
  counts.set(state, (counts.get(state) ?? 0) + times);
}

export function sumCounts(counts: StateCounts): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

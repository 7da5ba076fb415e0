import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import type { NewPayout, Payout } from '../../ledger/payout.js';
import { findPayouts } from '../../ledger/payout-queries.js';
import { paymentKey } from '../../ledger/same-payment.js';

export interface Twins {
  /** Rows that have address, currency, amount and reference of a payout with another id. */
  readonly rows: number;
  /** The first of those payouts. */
  readonly example: Payout | undefined;
  /** Whether every payout of that time was compared. */
  readonly isWhole: boolean;
}

export const TWIN_DAYS = 30;

const PAGE = 1_000;
/** A few seconds of reading. */
const MOST_COMPARED = 100_000;

/**
 * Finds rows that may have been imported before under other ids: a retry with new ids pays twice. The payouts of the
 * last 30 days are compared, the latest first.
 */
export async function findTwins(
  connection: LedgerConnection,
  given: readonly NewPayout[],
  signal: AbortSignal,
): Promise<Twins> {
  const ids = new Set(given.map(({ payoutId }) => payoutId));
  const rows = new Map<string, number>();
  for (const payout of given) {
    const key = paymentKey(payout);
    rows.set(key, (rows.get(key) ?? 0) + 1);
  }
  const since = connection.clock.wallNow() - TWIN_DAYS * 86_400_000;
  let [found, compared] = [0, 0];
  let example: Payout | undefined;
  let after: string | undefined;
  let isUnreadable = false;
  do {
    const page = await findPayouts(connection, { since }, PAGE, after);
    compared += page.searched;
    after = page.next;
    isUnreadable ||= page.unreadable.length > 0;
    for (const payout of page.payouts) {
      const key = paymentKey(payout);
      const count = ids.has(payout.payoutId) ? undefined : rows.get(key);
      if (count === undefined) continue;
      found += count;
      example ??= payout;
      rows.delete(key);
    }
  } while (after !== undefined && rows.size > 0 && compared < MOST_COMPARED && !signal.aborted);
  return { rows: found, example, isWhole: (after === undefined && !isUnreadable) || rows.size === 0 };
}

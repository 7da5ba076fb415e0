import type { Actor } from './actor.js';
import type { PayoutLedger } from './payout-ledger.js';
import { toChangeError } from './state-change.js';
import { toLine } from './payout.js';
import { parseRejection } from './script-rejection.js';
import type { PayoutState } from './states.js';

export interface ManyChanges {
  readonly from: PayoutState;
  readonly to: PayoutState;
  readonly payouts: readonly ChangedPayout[];
}

export interface ChangedPayout {
  readonly payoutId: string;
  /** The attempt that was decided about: a payout sent again since is not changed. */
  readonly attempt?: number;
  /** The operator's signed act, as JSON: for all payouts of a call, or for none. */
  readonly act?: string;
}

/** Keeps Redis busy for some 2 ms. A caller with more pauses in between. */
export const PAYOUTS_PER_CHANGE = 50;

/**
 * Moves payouts in one script, as one recorded act. Each is checked like `PayoutLedger.change`; a refused one does not
 * stop the others.
 * @param payouts - {@link PAYOUTS_PER_CHANGE} at most
 * @returns for each payout, in order, undefined if it was moved, or the NotFoundError or ConflictError
 * @throws RedisUnavailableError if it may or may not have happened; repeating is safe
 */
export async function changePayouts(
  ledger: PayoutLedger,
  { from, to, payouts }: ManyChanges,
  { by, reason }: Actor,
): Promise<(Error | undefined)[]> {
  const { run, keys, clock } = ledger.connection;
  const attempts = payouts.map(({ attempt = '' }) => attempt);
  const acts = payouts.flatMap(({ act }) => (act === undefined ? [] : [act]));
  const args = [clock.wallNow(), from, to, toLine(by), toLine(reason), ...attempts, ...acts];
  const records = payouts.map(({ payoutId }) => keys.payout(payoutId));
  const replies = (await ledger.confirmed(async () => run('change-states', args, records))) as unknown[];
  return payouts.map(({ payoutId }, index) => {
    const rejection = parseRejection(replies[index]);
    return rejection === undefined ? undefined : toChangeError(rejection, { payoutId, from, to });
  });
}

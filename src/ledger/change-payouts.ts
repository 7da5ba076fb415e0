import type { Actor } from './actor.js';
import type { PayoutLedger } from './payout-ledger.js';
import { toChangeError } from './state-change.js';
import { toLine } from './payout.js';
import { parseRejection } from './script-rejection.js';
import type { PayoutState } from './states.js';

/** One decision about many payouts. */
export interface ManyChanges {
  readonly from: PayoutState;
  readonly to: PayoutState;
  readonly payouts: readonly ChangedPayout[];
}

/** One payout of many. */
export interface ChangedPayout {
  readonly payoutId: string;
  /** The attempt that was decided about: a payout that was sent again since is left. */
  readonly attempt?: number;
  /** The operator's signed act, as JSON: of all payouts of a call, or of none. */
  readonly act?: string;
}

/** Payouts of one script: keeps Redis busy for some 2 ms. A caller with more gives Redis time for others in between. */
export const PAYOUTS_PER_CHANGE = 50;

/**
 * Moves payouts from one state to another, in one script, which notes them as one act of the operator. Each is checked as
 * `PayoutLedger.change` checks it; one that is refused does not hold up the others.
 * @param payouts - {@link PAYOUTS_PER_CHANGE} at most
 * @returns for each payout, in order, undefined where it was moved, or the NotFoundError or ConflictError that says why not
 * @throws RedisUnavailableError when it may or may not have happened; asking again is safe
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

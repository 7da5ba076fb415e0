import type { Actor } from '../ledger/actor.js';
import { readAccountStats, type AccountStats } from '../ledger/account-stats.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';

/** The account's state after a pause or a resume. */
export interface PauseState extends Pick<
  AccountStats,
  'platformId' | 'paused' | 'pausedReason' | 'pausedBy' | 'pausedAt'
> {
  /** False if it was already so. */
  readonly changed: boolean;
}

/**
 * @param act - the signed act of a resume, as JSON
 * @throws see `PayoutLedger.pause` and `resume`
 */
export async function setPause(
  ledger: PayoutLedger,
  verb: 'pause' | 'resume',
  { by, reason }: Actor,
  act?: string,
): Promise<PauseState> {
  const changed = verb === 'pause' ? await ledger.pause(by, reason) : await ledger.resume(by, reason, act);
  const { platformId, paused, pausedReason, pausedBy, pausedAt } = await readAccountStats(ledger.connection);
  return { platformId, changed, paused, pausedReason, pausedBy, pausedAt };
}

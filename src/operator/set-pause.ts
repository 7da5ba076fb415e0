import type { Actor } from '../ledger/actor.js';
import { readAccountStats, type AccountStats } from '../ledger/account-stats.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';

/** How the account stands after a pause or a resume. */
export interface PauseState extends Pick<
  AccountStats,
  'platformId' | 'paused' | 'pausedReason' | 'pausedBy' | 'pausedAt'
> {
  /** False when it stood so before. */
  readonly changed: boolean;
}

/**
 * Pauses or resumes an account, and reads how it stands now.
 * @param act - the signed act of a resume, as JSON
 * @throws as `PayoutLedger.pause` and `resume` do
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

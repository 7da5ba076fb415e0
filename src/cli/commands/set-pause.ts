import { readAccountStats } from '../../ledger/account-stats.js';
import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import type { CliContext } from '../context/cli-context.js';
import { withAccount } from '../context/with-account.js';

/** How the account stands after `pause` or `resume`. */
export interface PauseResult {
  readonly platformId: number;
  /** False when it stood so before. */
  readonly changed: boolean;
  readonly paused: boolean;
  readonly pausedReason: string | null;
  readonly pausedBy: string | null;
  readonly pausedAt: string | null;
}

/** Runs `set` on the account's ledger and reads how the account stands now. */
export async function setPause(
  context: CliContext,
  set: (ledger: PayoutLedger) => Promise<boolean>,
): Promise<PauseResult> {
  return withAccount(context, async ({ ledger }) => {
    const changed = await set(ledger);
    const { platformId, paused, pausedReason, pausedBy, pausedAt } = await readAccountStats(ledger.connection);
    return { platformId, changed, paused, pausedReason, pausedBy, pausedAt };
  });
}

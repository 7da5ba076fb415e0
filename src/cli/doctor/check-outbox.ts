import { formatCount } from '../../format.js';
import type { AccountStats } from '../../ledger/account-stats.js';
import { ok, warning, type CheckResult } from './check-result.js';

/** Whether the outbox holds something that no worker of this version can deal with. */
export function checkOutbox({
  platformId,
  withoutJob,
  outboxUnreadable,
}: Pick<AccountStats, 'platformId' | 'withoutJob' | 'outboxUnreadable'>): CheckResult {
  const name = 'outbox';
  if (outboxUnreadable === 0) return ok(name, `${formatCount(withoutJob, 'payout')} waiting for a job`);
  return warning(
    name,
    `${formatCount(outboxUnreadable, 'member')} that this version does not understand`,
    `A newer version or an operator wrote them: start that version, or see \`redis-cli ZRANGE '{payouts:${platformId}}:outbox' 0 -1\`.`,
  );
}

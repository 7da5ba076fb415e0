import { formatDuration } from '../../format.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { NOTIFICATIONS_LATE_MS, readNotificationLag } from '../../ledger/notification-lag.js';
import { ok, warning, type CheckResult } from './check-result.js';

const NAME = 'notifications';

/** Whether `payouts notify` keeps up, as one line; none where it was never started. */
export async function checkNotifications(connection: LedgerConnection): Promise<CheckResult[]> {
  const lagMs = await readNotificationLag(connection);
  if (lagMs === undefined) return [];
  if (lagMs === 0) return [ok(NAME, 'all delivered')];
  const detail = `the oldest waits for ${formatDuration(lagMs)}`;
  if (lagMs < NOTIFICATIONS_LATE_MS) return [ok(NAME, detail)];
  const fix =
    'Read the log of `payouts notify`, or start it; where it is no longer wanted, see "Stop using it" in docs/notifications.md.';
  return [warning(NAME, detail, fix)];
}

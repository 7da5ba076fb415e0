import type { Clock } from '../../clock.js';
import { readAccountStats, type AccountStats } from '../../ledger/account-stats.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { adviseAccount } from '../../operator/account-advice.js';
import { formatDuration } from '../../format.js';
import { ok, problem, warning, type CheckResult } from './check-result.js';

/** The sender sends a heartbeat every second. */
const WATCH_MS = 2_500;
const CHECK_EVERY_MS = 100;

/** Whether a process sends for the account and is alive: only a new heartbeat proves that, no clock does. */
export async function checkSender(connection: LedgerConnection, clock: Clock): Promise<CheckResult> {
  const name = 'sender';
  const startedAt = clock.now();
  const { sender: first } = await readAccountStats(connection);
  if (first === null) return warning(name, 'no process sends for the account', 'Start `payouts worker`.');
  const who = `${first.owner} (epoch ${first.epoch})`;
  while (clock.now() - startedAt < WATCH_MS) {
    await clock.sleep(CHECK_EVERY_MS);
    const { sender } = await readAccountStats(connection);
    if (sender?.owner !== first.owner || sender.epoch !== first.epoch)
      return ok(name, 'the sender is changing right now');
    if (sender.heartbeat !== first.heartbeat)
      return ok(name, `${who}, heartbeat received within ${formatMs(clock.now() - startedAt)}`);
  }
  return warning(
    name,
    `${who} sent no heartbeat for ${formatMs(clock.now() - startedAt)}`,
    'It has ended or hangs: start `payouts worker`, or wait until a standby worker takes over.',
  );
}

function formatMs(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

/** Whether the account may send. */
export function checkPause(stats: AccountStats): CheckResult {
  const name = 'pause';
  const [advice] = adviseAccount(stats);
  if (advice === undefined) return ok(name, 'the account is not paused, and no journal objects');
  const by = advice.kind === 'pause' && stats.pausedBy !== null ? ` (by ${stats.pausedBy})` : '';
  return problem(name, `nothing is sent: ${advice.problem}${by}`, `${advice.first} ${advice.command}`);
}

/** Whether payouts wait for an operator because it is unknown if they were sent. */
export function checkUnknown({ unknown, oldestAgeMs }: AccountStats): CheckResult {
  const name = 'unknown payouts';
  if (unknown === 0) return ok(name, 'none');
  const age = oldestAgeMs.unknown === null ? '' : `, the oldest for ${formatDuration(oldestAgeMs.unknown)}`;
  return warning(
    name,
    `${unknown} may or may not have been sent${age}`,
    'See `payouts list --state unknown`; ask the gateway, and decide each with `payouts resolve`.',
  );
}

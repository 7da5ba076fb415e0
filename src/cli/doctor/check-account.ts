import type { Clock } from '../../clock.js';
import type { AccountStats } from '../../ledger/account-stats.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { findRefused, readWorkers } from '../../ledger/workers.js';
import { watchHeartbeat } from '../../ledger/watch-heartbeat.js';
import { adviseAccount } from '../../operator/account-advice.js';
import type { AdviceOptions } from '../../operator/signed-command.js';
import { formatCount, formatDuration, formatSeconds } from '../../format.js';
import { ok, problem, warning, type CheckResult } from './check-result.js';

/** The sender sends a heartbeat every second. */
const WATCH_MS = 2_500;

/**
 * Whether a process sends for the account and is alive. Without one nothing is wrong before the first start and after a
 * stop in good order; but a sender that has vanished while payouts wait stops them.
 */
export async function checkSender(
  connection: LedgerConnection,
  { platformId, queued, sends }: Pick<AccountStats, 'platformId' | 'queued' | 'sends'>,
  clock: Clock,
): Promise<CheckResult> {
  const name = 'sender';
  const life = await watchHeartbeat(connection, clock, WATCH_MS);
  if (life.kind === 'changing') return ok(name, 'the sender is changing right now');
  const refused = life.kind === 'alive' ? undefined : findRefused(await readWorkers(connection), clock.wallNow());
  if (refused !== undefined) {
    const detail = `the worker ${refused.name} refuses to send. ${refused.reason ?? ''}`;
    return problem(
      name,
      detail,
      'Do what the reason says; `payouts worker` elsewhere sends if its journal knows the account.',
    );
  }
  if (life.kind === 'none') {
    return warning(
      name,
      'no process sends for the account',
      `Start \`payouts worker\`.${sends === 0 ? askIfNew(platformId) : ''}`,
    );
  }
  const who = `${life.owner} (epoch ${life.epoch})`;
  if (life.kind === 'alive') {
    const { waitedMs, holdOffMs } = life;
    const wait =
      holdOffMs === 0 ? '' : `; sends nothing for another ${formatSeconds(holdOffMs)}, the wait of a new sender`;
    return ok(name, `${who}, heartbeat received within ${formatSeconds(waitedMs)}${wait}`);
  }
  const detail = `${who} sent no heartbeat for ${formatSeconds(life.waitedMs)}`;
  const fix = 'It has ended or hangs: start `payouts worker`, or wait until a standby worker takes over.';
  return queued === 0
    ? warning(name, detail, fix)
    : problem(name, `${detail}, and ${formatCount(queued, 'payout')} queued`, fix);
}

/** An account whose Redis was emptied looks like a new one: only a person can tell. */
function askIfNew(platformId: number): string {
  return ` Was nothing ever sent for this account, and was its Redis not emptied? Then say so with \`payouts new-account --account ${platformId} --reason WHY\`, and its first payout leaves at once.`;
}

/** Whether the account may send. */
export function checkPause(stats: AccountStats, options: AdviceOptions): CheckResult {
  const name = 'pause';
  const [advice] = adviseAccount(stats, options);
  if (advice === undefined) return ok(name, 'the account is not paused, and no journal objects');
  const by = advice.kind === 'pause' && stats.pausedBy !== null ? ` (by ${stats.pausedBy})` : '';
  return problem(name, `nothing is sent: ${advice.problem}${by}`, `${advice.first} ${advice.command}`);
}

/** Whether payouts wait for an operator because it is unknown if they were sent. */
export function checkUnknown({ platformId, unknown, oldestAgeMs }: AccountStats): CheckResult {
  const name = 'unknown payouts';
  if (unknown === 0) return ok(name, 'none');
  const age = oldestAgeMs.unknown === null ? '' : `, the oldest for ${formatDuration(oldestAgeMs.unknown)}`;
  return warning(
    name,
    `${unknown} may or may not have been sent${age}`,
    `See \`payouts list --account ${platformId} --state unknown\`; ask the gateway, and decide each with \`payouts resolve --account ${platformId}\`.`,
  );
}

import type { Queue } from 'bullmq';
import { formatCount, formatDuration, formatSeconds } from '../../base/format.js';
import { readAccountStats, type AccountStats } from '../../ledger/reads/account-stats.js';
import { compareBalance } from '../../ledger/reads/balance-cover.js';
import { type GatewayFacts, readGatewayFacts } from '../../ledger/reads/gateway-facts.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { NOTIFICATIONS_LATE_MS, readNotificationLag } from '../../ledger/reads/state-events.js';
import { listDrops, readReconciliation, summariseDrops } from '../../ledger/reads/reconciliation.js';
import { STATES_WITH_JOB, type StateWithJob } from '../../ledger/states.js';
import { readQueuedSums } from '../../ledger/reads/statistics.js';
import { senderOf } from '../../ledger/reads/workers.js';
import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import { adviseAccount } from '../../operator/account-advice.js';
import { describeEvidence } from '../../operator/describe-look-up.js';
import { WORKER_SILENT_AFTER_MS } from '../../operator/account-poller.js';
import { observeAccount } from '../../operator/account-summary.js';
import type { AccountAccess } from '../../queues/open-account.js';
import { countDueJobs, readJobBalance } from '../../queues/job-balance.js';
import { findForeignSettings, type PayoutQueues } from '../../queues/payout-queues.js';
import { ok, problem, warning, type Check, type Finding } from './check-result.js';

/** Redis settings can stop a queue, or override the limits of its worker. */
async function checkQueue(queue: Queue, connection: LedgerConnection): Promise<Finding> {
  const found = await findForeignSettings(connection, queue);
  if (found.length === 0) return ok('no settings that override the worker');
  const commands = found.map(({ command }) => `redis-cli ${command}`).join(' && ');
  return problem(found.map(({ detail }) => detail).join('; '), `This was set by hand; undo it: ${commands}`);
}

const JOB_CHECK_NAMES: Readonly<Record<StateWithJob, string>> = {
  queued: 'withdraw jobs',
  in_progress: 'status jobs',
};

/** The counts differ for a moment while a payout or its job moves. */
const ATTEMPTS = 5;
const RETRY_AFTER_MS = 200;

/**
 * Whether every payout that needs a job has one.
 * @param hasWorker - a live worker re-creates missing jobs
 */
async function checkJobs(
  state: StateWithJob,
  connection: LedgerConnection,
  queues: PayoutQueues,
  hasWorker: boolean,
): Promise<Finding> {
  let found = await readJobBalance(connection, queues, state);
  for (let attempt = 1; attempt < ATTEMPTS && found.lost > 0; attempt += 1) {
    await connection.clock.sleep(RETRY_AFTER_MS);
    found = await readJobBalance(connection, queues, state);
  }
  const { payouts, jobs, lost } = found;
  if (lost <= 0) return ok(`${formatCount(jobs, 'job')} for ${formatCount(payouts, 'payout')}`);
  const detail = `${lost} of ${formatCount(payouts, 'payout')} have no job in the queue`;
  return hasWorker
    ? problem(detail, 'The worker repairs this within a minute; if it persists, check the log of the worker and Redis.')
    : warning(detail, 'Start `payouts worker`: it adds the missing jobs at the start.');
}

/** Seconds of polls that may wait after an outage. More means a too low rate. */
const TOLERATED_S = 60;

/** @param pollRate - polls a second */
async function checkPolls(connection: LedgerConnection, queues: PayoutQueues, pollRate: number): Promise<Finding> {
  const due = await countDueJobs(connection, queues.transactionstatus);
  const seconds = due / pollRate;
  if (seconds <= TOLERATED_S) return ok(`${formatCount(due, 'poll')} due`);
  return warning(
    `${formatCount(due, 'poll')} due, which take ${formatDuration(seconds * 1_000)} at STATUS_POLL_RATE=${pollRate}`,
    'Raise STATUS_POLL_RATE or STATUS_POLL_MAX_MS, if no worker was stopped for long: payouts are found completed late.',
  );
}

/**
 * Having no sender is normal before the first start and after an orderly stop. A sender that vanished while payouts
 * wait is a problem.
 */
async function checkSender(
  account: Pick<AccountAccess, 'ledger' | 'queues'>,
  { platformId, queued, sends }: AccountStats,
): Promise<Finding> {
  const { ledger, redis } = await observeAccount(account);
  if (ledger === undefined || redis.kind === 'unavailable') {
    return problem('Redis does not respond', 'Check that it runs, and REDIS_URL.');
  }
  const { life, workers, wallNow } = ledger;
  if (life.kind === 'checking') return ok('the sender is changing right now');
  const refused =
    life.kind === 'alive'
      ? undefined
      : workers.find(({ role, silentMs }) => role === 'refused' && silentMs < WORKER_SILENT_AFTER_MS);
  if (refused !== undefined) {
    const detail = `the worker ${refused.name} refuses to send. ${refused.reason ?? ''}`;
    return problem(
      detail,
      'Do what the reason says; `payouts worker` elsewhere sends if its journal knows the account.',
    );
  }
  if (life.kind === 'none') {
    return warning(
      'no process sends for the account',
      `Start \`payouts worker\`.${sends === 0 ? askIfNew(platformId) : ''}`,
    );
  }
  const who = `${life.owner} (epoch ${life.epoch})`;
  if (life.kind === 'alive') {
    const { holdOffUntil = 0 } = senderOf(life.owner, workers) ?? {};
    const holdOffMs = Math.max(0, holdOffUntil - wallNow);
    const wait =
      holdOffMs === 0 ? '' : `; sends nothing for another ${formatSeconds(holdOffMs)}, the wait of a new sender`;
    return ok(`${who}, heartbeat received${wait}`);
  }
  const detail = `${who} sent no heartbeat for ${formatSeconds(life.silentMs)}`;
  const fix = 'It has ended or hangs: start `payouts worker`, or wait until a standby worker takes over.';
  return queued === 0 ? warning(detail, fix) : problem(`${detail}, and ${formatCount(queued, 'payout')} queued`, fix);
}

/** An account whose Redis was emptied looks new: only an operator knows. */
function askIfNew(platformId: number): string {
  return ` Was nothing ever sent for this account, and was its Redis not emptied? Then say so with \`payouts new-account --account ${platformId} --reason WHY\`, and its first payout leaves at once.`;
}

function checkPause(stats: AccountStats, isSigned: boolean): Finding {
  const [advice] = adviseAccount(stats, { isSigned });
  if (advice === undefined) return ok('the account is not paused, and no journal objects');
  const by = advice.kind === 'pause' && stats.pausedBy !== null ? ` (by ${stats.pausedBy})` : '';
  return problem(`nothing is sent: ${advice.problem}${by}`, `${advice.first} ${advice.command}`);
}

function checkUnknown({ platformId, unknown, oldestAgeMs }: AccountStats, facts: GatewayFacts): Finding {
  const evidence = describeEvidence(facts);
  if (unknown === 0) return ok(evidence === undefined ? 'none' : `none. ${evidence}`);
  const age = oldestAgeMs.unknown === null ? '' : `, the oldest for ${formatDuration(oldestAgeMs.unknown)}`;
  return warning(
    `${unknown} may or may not have been sent${age}`,
    `See \`payouts list --account ${platformId} --state unknown\`; ask the gateway, and decide each with \`payouts resolve --account ${platformId}\`.${evidence === undefined ? '' : ` The worker asks for each by order id. ${evidence}`}`,
  );
}

function checkOutbox({ platformId, withoutJob, outboxUnreadable }: AccountStats): Finding {
  if (outboxUnreadable === 0) return ok(`${formatCount(withoutJob, 'payout')} waiting for a job`);
  return warning(
    `${formatCount(outboxUnreadable, 'member')} that this version does not understand`,
    `A newer version or an operator wrote them: start that version, or see \`redis-cli ZRANGE '{payouts:${platformId}}:outbox' 0 -1\`.`,
  );
}

async function checkBalance(connection: LedgerConnection): Promise<Finding> {
  const facts = await readGatewayFacts(connection);
  if (facts.balanceAt === undefined) return ok('not known yet: a worker that sends queries it');
  const age = `${formatDuration(Math.max(0, connection.clock.wallNow() - facts.balanceAt))} ago`;
  const covers = compareBalance(facts, await readQueuedSums(connection));
  const low = covers.filter(({ isEnough }) => !isEnough);
  if (low.length === 0) return ok(`enough for what is queued, as far as it can be compared (${age})`);
  const list = low
    .map(({ currency, balance, queued }) => `${balance} ${currency} for ${queued ?? ''} queued`)
    .join(', ');
  return warning(`${list} (${age})`, 'Top the account up, or pause it: the gateway rejects what it cannot pay.');
}

export async function checkReconciliation(connection: LedgerConnection): Promise<Finding> {
  const [stored, { currencies }] = await Promise.all([readReconciliation(connection), readGatewayFacts(connection)]);
  const { reconciliation } = stored;
  if (reconciliation === undefined) return ok('not compared yet: a worker that sends does it');
  const drops = summariseDrops(stored, currencies).filter(({ amount }) => amount !== '0');
  const age = `${formatDuration(Math.max(0, connection.clock.wallNow() - reconciliation.comparedAt))} ago`;
  if (drops.length > 0) {
    const fix = `Run \`payouts reconcile --account ${connection.platformId}\`; unless someone knows of it, change the gateway's secret key.`;
    return warning(`the balance fell by ${listDrops(drops)} more than the payouts explain (${age})`, fix);
  }
  const incomparable = reconciliation.balances.filter(({ unexplained }) => unexplained === undefined).length;
  if (incomparable > 0)
    return ok(`${incomparable} of ${reconciliation.balances.length} balances cannot be compared now (${age})`);
  return ok(`nothing is missing (${age})`);
}

/** No result if `payouts notify` was never started. */
async function checkNotifications(connection: LedgerConnection): Promise<Finding[]> {
  const lagMs = await readNotificationLag(connection);
  if (lagMs === undefined) return [];
  if (lagMs === 0) return [ok('all delivered')];
  const detail = `the oldest waits for ${formatDuration(lagMs)}`;
  if (lagMs < NOTIFICATIONS_LATE_MS) return [ok(detail)];
  const fix =
    'Read the log of `payouts notify`, or start it. If it is no longer wanted, see "Stop using it" in docs/notifications.md.';
  return [warning(detail, fix)];
}

export function accountChecks(
  ledger: PayoutLedger,
  queues: PayoutQueues,
  isSigned: boolean,
  pollRate: number,
): readonly Check[] {
  const { connection } = ledger;
  let hasWorker = false;
  const readStats = async (): Promise<AccountStats> => readAccountStats(connection);
  return [
    ...[queues.withdraw, queues.transactionstatus].map((queue): Check => [
      `${queue.name} queue`,
      async () => checkQueue(queue, connection),
    ]),
    [
      'sender',
      async () => {
        const sender = await checkSender({ ledger, queues }, await readStats());
        hasWorker = sender.status === 'ok';
        return sender;
      },
    ],
    ...STATES_WITH_JOB.map((state): Check => [
      JOB_CHECK_NAMES[state],
      async () => checkJobs(state, connection, queues, hasWorker),
    ]),
    ['status polls', async () => checkPolls(connection, queues, pollRate)],
    ['outbox', async () => checkOutbox(await readStats())],
    ['pause', async () => checkPause(await readStats(), isSigned)],
    ['balance', async () => checkBalance(connection)],
    ['reconciliation', async () => checkReconciliation(connection)],
    ['unknown payouts', async () => checkUnknown(await readStats(), await readGatewayFacts(connection))],
    ['notifications', async () => checkNotifications(connection)],
  ];
}

import { untilAborted } from '../clock.js';
import type { GatewayClient } from '../gateway/gateway-client.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import { JobReconciler } from '../queues/job-reconciler.js';
import type { OutboxRelay } from '../queues/outbox-relay.js';
import { keepGatewayFacts } from './gateway-facts/keep-gateway-facts.js';
import type { JobWorkerContext } from './job-worker.js';
import { repairClockJumpsRegularly } from './repair-clock-jump.js';
import { applyRetention } from './retention.js';
import type { AccountPolicy } from './policy/account-policy.js';
import type { ActiveSender } from './sender/send-until-decided.js';
import { keepStatistics } from './statistics/keep-statistics.js';
import { StatisticsKeeper } from './statistics/statistics-keeper.js';
import { watchJobs } from './watch-jobs.js';
import { WithdrawJobs } from './withdraw-jobs.js';

export interface ActiveWorkOptions extends Omit<JobWorkerContext, 'logger'> {
  readonly ledger: PayoutLedger;
  readonly relay: OutboxRelay;
  /** The longest time between two polls of a payout, in ms. */
  readonly longestPollDelayMs: number;
  /** Final payouts are kept for this many days. @defaultValue they are never removed */
  readonly retentionDays?: number | undefined;
  readonly gateway: Pick<GatewayClient, 'currencies' | 'balance'>;
  /** How often the gateway's facts are queried, in ms; 0 for never. */
  readonly balanceEveryMs: number;
  readonly currenciesEveryMs: number;
  /** Keeps what the policy holds up to date; undefined without a policy. */
  readonly policy?: Pick<AccountPolicy, 'keep'> | undefined;
}

/**
 * Does what only the holder of the lease does: runs the withdraw jobs, keeps the queues intact, removes old payouts.
 * Resolves when the signal was aborted and the send in progress has its response.
 */
export async function doActiveWork(options: ActiveWorkOptions, active: ActiveSender, end: AbortSignal): Promise<void> {
  const { clock, ledger, queues, relay, longestPollDelayMs, retentionDays, policy, observer } = options;
  const { logger } = active;
  const { connection } = ledger;
  const jobs = new WithdrawJobs({ ...options, active, logger });
  const reconciler = new JobReconciler({ ledger, queues, relay, logger });
  const statistics = new StatisticsKeeper(connection, logger);
  const upkeep = [
    repairClockJumpsRegularly({ clock, queues, longestPollDelayMs, logger }, end),
    watchJobs({ clock, connection, queues, reconciler, observer, logger }, end),
    keepStatistics({ keeper: statistics, connection, logger }, end),
    keepGatewayFacts({ ...options, connection, queuedPaymentIds: () => statistics.queuedPaymentIds, logger }, end),
    ...(policy === undefined ? [] : [policy.keep(end)]),
    ...(retentionDays === undefined ? [] : [applyRetention({ connection, retentionDays, statistics, logger }, end)]),
  ];
  await untilAborted(end);
  await jobs.close();
  await Promise.all(upkeep);
}

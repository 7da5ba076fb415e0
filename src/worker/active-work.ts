import { untilAborted } from '../base/clock.js';
import type { GatewayClient } from '../gateway/gateway-client.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import { JobReconciler } from '../queues/job-reconciler.js';
import type { OutboxRelay } from '../queues/outbox-relay.js';
import { keepGatewayFacts } from './keep-gateway-facts.js';
import type { JobWorkerContext } from './job-worker.js';
import { applyRetention, type RetentionOptions } from './retention.js';
import type { SendControl } from './account-control.js';
import type { ActiveSender } from './sender/send-until-decided.js';
import { StatisticsKeeper } from './statistics/statistics-keeper.js';
import type { SendGap } from './statistics/counters.js';
import { Reconciler } from './reconciliation/reconciler.js';
import { watchJobs } from './watch-jobs.js';
import { WithdrawJobs } from './withdraw-jobs.js';

interface ActiveWorkOptions
  extends Omit<JobWorkerContext, 'logger'>, Pick<RetentionOptions, 'archive' | 'onArchiveTrouble'> {
  readonly ledger: PayoutLedger;
  readonly relay: OutboxRelay;
  /** Days for which final payouts are kept. @defaultValue they are never removed */
  readonly retentionDays?: number | undefined;
  readonly gateway: Pick<GatewayClient, 'currencies' | 'balance'>;
  /** In ms; 0 for never. */
  readonly balanceEveryMs: number;
  readonly currenciesEveryMs: number;
  readonly takeGaps: () => readonly SendGap[];
  readonly control?: Pick<SendControl, 'keep'> | undefined;
}

/** A gateway's status may be ahead of its balance for this long, or for this many readings. */
const SETTLE_MS = 10 * 60_000;
const SETTLE_READINGS = 10;

/**
 * The lease holder's work: withdraw jobs, intact queues, retention. Resolves after the abort, once the send in progress
 * has its response.
 */
export async function doActiveWork(options: ActiveWorkOptions, active: ActiveSender, end: AbortSignal): Promise<void> {
  const { clock, ledger, queues, relay, retentionDays, control, observer } = options;
  const { logger } = active;
  const { connection } = ledger;
  const jobs = new WithdrawJobs({ ...options, active, logger });
  const reconciler = new JobReconciler(ledger, { queues, relay }, logger);
  const statistics = new StatisticsKeeper(connection, logger, options.takeGaps);
  const settleMs = Math.min(SETTLE_MS, SETTLE_READINGS * options.balanceEveryMs);
  const upkeep = [
    watchJobs({ clock, connection, queues, reconciler, observer, logger }, end),
    statistics.run(end),
    keepGatewayFacts(
      {
        ...{ ...options, connection, logger },
        queuedPaymentIds: () => statistics.queuedPaymentIds,
        reconciler: new Reconciler(connection, settleMs, logger),
      },
      end,
    ),
    ...(control === undefined ? [] : [control.keep(end)]),
    ...(retentionDays === undefined
      ? []
      : [applyRetention({ ...options, connection, retentionDays, statistics, logger }, end)]),
  ];
  await untilAborted(end);
  await jobs.close();
  await Promise.all(upkeep);
}

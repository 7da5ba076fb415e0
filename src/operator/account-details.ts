import { compareBalance, type BalanceCover } from '../ledger/reads/balance-cover.js';
import { readAccountStats, type AccountStats } from '../ledger/reads/account-stats.js';
import { readGatewayFacts, type GatewayFacts } from '../ledger/reads/gateway-facts.js';
import { countStuck } from '../ledger/reads/payout-queries.js';
import { readPolicyReport, type PolicyReport } from '../ledger/reads/policy-report.js';
import { readReconciliation, summariseDrops, type UnexplainedDrop } from '../ledger/reads/reconciliation.js';
import { readNotificationLag } from '../ledger/reads/state-events.js';
import { readQueuedSums, type CurrencySum } from '../ledger/reads/statistics.js';
import { type KnownWorker, readWorkers, senderOf } from '../ledger/reads/workers.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import { countDueJobs, countDuePayouts } from '../queues/job-balance.js';
import { findForeignSettings, type ForeignSetting, type PayoutQueues } from '../queues/payout-queues.js';

/** What Redis has about an account, as metrics and health report it. */
export interface AccountDetails {
  readonly stats: AccountStats;
  /** Every process that reported. */
  readonly workers: readonly KnownWorker[];
  /** Their `notBefore` has passed. */
  readonly due: number;
  readonly pollsDue: number;
  readonly stuck: number;
  readonly foreignSettings: readonly (ForeignSetting & { readonly queue: string })[];
  /** Age of the oldest event that `payouts notify` has not handled, in ms. Undefined if it is not used. */
  readonly notificationLagMs: number | undefined;
  readonly money: AccountMoney;
  /** The sending process's report of its policy. */
  readonly policyReport: PolicyReport | undefined;
}

export interface AccountMoney {
  readonly queued: readonly CurrencySum[];
  readonly currencies: GatewayFacts['currencies'];
  /** Empty if the balance is unknown or too old. */
  readonly covers: readonly BalanceCover[];
  /** In ms; undefined if the balance is unknown. */
  readonly balanceAgeMs: number | undefined;
  /** Drops of the balances that no payout explains, if balances are compared. */
  readonly unexplained: readonly UnexplainedDrop[];
}

/** An older balance looks true and is not. */
const BALANCE_VALID_MS = 15 * 60_000;

/** A worker with a policy reports it every ten seconds. */
const POLICY_REPORTED_WITHIN_MS = 3 * 60_000;

/** The account's state in Redis. @param stuckAfterMs - a payout in progress for longer is stuck */
export async function readAccountDetails(
  connection: LedgerConnection,
  queues: PayoutQueues,
  stuckAfterMs: number,
): Promise<AccountDetails> {
  const [stats, workers, due, pollsDue, notificationLagMs, withdraw, polls, money, policyReport] = await Promise.all([
    readAccountStats(connection),
    readWorkers(connection),
    countDuePayouts(connection, queues),
    countDueJobs(connection, queues.transactionstatus),
    readNotificationLag(connection),
    findForeignSettings(connection, queues.withdraw),
    findForeignSettings(connection, queues.transactionstatus),
    readMoney(connection),
    readPolicyReport(connection),
  ]);
  // The age of the oldest almost always shows that no payout is stuck.
  const mayBeStuck = (stats.oldestAgeMs.in_progress ?? 0) > stuckAfterMs;
  return {
    ...{ stats, workers, due, pollsDue, notificationLagMs, money },
    policyReport: dropFormer(policyReport, stats, workers),
    stuck: mayBeStuck ? await countStuck(connection, stuckAfterMs) : 0,
    foreignSettings: [
      ...withdraw.map((setting) => ({ queue: queues.withdraw.name, ...setting })),
      ...polls.map((setting) => ({ queue: queues.transactionstatus.name, ...setting })),
    ],
  };
}

/** A sender that has reported itself long after it reported a policy has none any more. Both times are of its clock. */
function dropFormer(
  report: PolicyReport | undefined,
  { sender }: AccountStats,
  workers: readonly KnownWorker[],
): PolicyReport | undefined {
  const reportedAt = senderOf(sender?.owner ?? '', workers)?.at ?? 0;
  return report !== undefined && reportedAt - report.at < POLICY_REPORTED_WITHIN_MS ? report : undefined;
}

async function readMoney(connection: LedgerConnection): Promise<AccountMoney> {
  const [facts, queued, reconciled] = await Promise.all([
    readGatewayFacts(connection),
    readQueuedSums(connection),
    readReconciliation(connection),
  ]);
  const { balanceAt, currencies } = facts;
  const balanceAgeMs = balanceAt === undefined ? undefined : Math.max(0, connection.clock.wallNow() - balanceAt);
  const isValid = balanceAgeMs !== undefined && balanceAgeMs <= BALANCE_VALID_MS;
  const covers = isValid ? compareBalance(facts, queued) : [];
  return { queued, currencies, covers, balanceAgeMs, unexplained: summariseDrops(reconciled, currencies) };
}

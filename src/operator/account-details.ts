import { freshCovers, type BalanceCover } from '../ledger/reads/balance-cover.js';
import { readAccountStats, type AccountStats } from '../ledger/reads/account-stats.js';
import { readGatewayFacts, type GatewayFacts } from '../ledger/reads/gateway-facts.js';
import { type MoneyAtRisk, readMoneyAtRisk } from '../ledger/reads/money-at-risk.js';
import { countStuck } from '../ledger/payout-queries.js';
import { readPolicyReport, type PolicyReport } from '../ledger/reads/policy-report.js';
import {
  readReconciliation,
  type StoredReconciliation,
  summariseDrops,
  type UnexplainedDrop,
} from '../ledger/reads/reconciliation.js';
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
  /** The gateway has been seen to find a payment by its order id. */
  readonly lookUpWorks: boolean;
  readonly atRisk: MoneyAtRisk;
  /** The sending process's report of its policy. */
  readonly policyReport: PolicyReport | undefined;
}

export interface AccountMoney {
  readonly queued: readonly CurrencySum[];
  readonly currencies: GatewayFacts['currencies'];
  /** Empty if the balance is unknown, or too old although a sender lives. */
  readonly covers: readonly BalanceCover[];
  /** In ms; undefined if the balance is unknown. */
  readonly balanceAgeMs: number | undefined;
  /** Drops of the balances that no payout explains, if balances are compared. */
  readonly unexplained: readonly UnexplainedDrop[];
}

/** A worker with a policy reports it every ten seconds. */
const POLICY_REPORTED_WITHIN_MS = 3 * 60_000;

/** The account's state in Redis. @param stuckAfterMs - a payout in progress for longer is stuck */
export async function readAccountDetails(
  connection: LedgerConnection,
  queues: PayoutQueues,
  stuckAfterMs: number,
): Promise<AccountDetails> {
  const [stats, workers, due, pollsDue, notificationLagMs, withdraw, polls, moneyRead, policyReport, atRisk] =
    await Promise.all([
      readAccountStats(connection),
      readWorkers(connection),
      countDuePayouts(connection),
      countDueJobs(connection, queues.transactionstatus),
      readNotificationLag(connection),
      findForeignSettings(connection, queues.withdraw),
      findForeignSettings(connection, queues.transactionstatus),
      Promise.all([readGatewayFacts(connection), readQueuedSums(connection), readReconciliation(connection)]),
      readPolicyReport(connection),
      readMoneyAtRisk(connection),
    ]);
  // The age of the oldest almost always shows that no payout is stuck.
  const mayBeStuck = (stats.oldestAgeMs.in_progress ?? 0) > stuckAfterMs;
  const reportedAt = senderOf(stats.sender?.owner ?? '', workers)?.at ?? 0;
  return {
    ...{ stats, workers, due, pollsDue, notificationLagMs, atRisk },
    lookUpWorks: moneyRead[0].lookUp === 'works',
    money: describeMoney(moneyRead, reportedAt, connection.clock.wallNow()),
    policyReport: dropFormer(policyReport, reportedAt),
    stuck: mayBeStuck ? await countStuck(connection, stuckAfterMs) : 0,
    foreignSettings: [
      ...withdraw.map((setting) => ({ queue: queues.withdraw.name, ...setting })),
      ...polls.map((setting) => ({ queue: queues.transactionstatus.name, ...setting })),
    ],
  };
}

/** A sender that has reported itself long after it reported a policy has none any more. Both times are of its clock. */
function dropFormer(report: PolicyReport | undefined, reportedAt: number): PolicyReport | undefined {
  return report !== undefined && reportedAt - report.at < POLICY_REPORTED_WITHIN_MS ? report : undefined;
}

/**
 * @param reportedAt - of the sender, by its clock: a balance stays valid when it dies, because nobody reads a newer one and
 * no alert may resolve by that
 */
function describeMoney(
  [facts, queued, reconciled]: readonly [GatewayFacts, readonly CurrencySum[], StoredReconciliation],
  reportedAt: number,
  now: number,
): AccountMoney {
  const { balanceAt, currencies } = facts;
  const covers = freshCovers(facts, queued, reportedAt);
  const balanceAgeMs = balanceAt === undefined ? undefined : Math.max(0, now - balanceAt);
  return { queued, currencies, covers, balanceAgeMs, unexplained: summariseDrops(reconciled, currencies) };
}

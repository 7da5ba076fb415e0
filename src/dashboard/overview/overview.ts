import { readAccountStats, type AccountStats } from '../../ledger/reads/account-stats.js';
import { countStuck, listPayouts, type UnreadablePayout } from '../../ledger/payout-queries.js';
import { readGatewayFacts, type GatewayFacts } from '../../ledger/reads/gateway-facts.js';
import type { HeadlineFacts } from '../../operator/account-headline.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import type { Payout } from '../../ledger/payout.js';
import { FINAL_STATES, URGENT_STATES, type PayoutState } from '../../ledger/states.js';
import { isJustAdopted } from '../../operator/account-advice.js';
import { type CameBack, readCameBack } from '../../operator/came-back.js';
import { freshCovers } from '../../ledger/reads/balance-cover.js';
import { type PolicyReport, readPolicyReport } from '../../ledger/reads/policy-report.js';
import { readReconciliation, summariseDrops, type UnexplainedDrop } from '../../ledger/reads/reconciliation.js';
import { readNotificationLag } from '../../ledger/reads/state-events.js';
import { readStatistics, type AccountStatistics } from '../../ledger/reads/statistics.js';

export interface Overview {
  readonly stats: AccountStats;
  readonly statistics: AccountStatistics;
  readonly gateway: GatewayFacts;
  /** What is missing of the balance, and no payout explains. */
  readonly drops: readonly UnexplainedDrop[];
  /** The sending process's report of its policy. */
  readonly report: PolicyReport | undefined;
  readonly stuck: number;
  /** Undefined if `payouts notify` is not used. */
  readonly notificationLagMs: number | undefined;
  /** What an adoption brought back, until the account is resumed after it. */
  readonly cameBack: CameBack | undefined;
  readonly listed: ReadonlyMap<PayoutState, readonly Payout[]>;
  /** Payouts among those whose record cannot be read. */
  readonly unreadable: readonly UnreadablePayout[];
  readonly wallNow: number;
}

/** What the overview knows beyond the watch of the account. */
export function headlineFacts({ gateway, statistics, listed, report, wallNow, ...left }: Overview): HeadlineFacts {
  const covers = freshCovers(gateway, statistics.sums.queued, wallNow);
  const heldBy = report?.held ?? [];
  const { stats, stuck, notificationLagMs } = left;
  const firstHeld = listed.get('held')?.[0];
  return { gateway, heldSums: statistics.sums.held, firstHeld, heldBy, covers, stats, stuck, notificationLagMs };
}

const LISTED = 5;
const CAME_BACK_LISTED = 20;

/** The statistics hold a day of minutes, and change every few seconds. */
const STATISTICS_KEPT_MS = 2_000;

/** Reads the first page's facts. Concurrent readers share one read of the statistics. */
export class OverviewReader {
  readonly #connection: LedgerConnection;
  readonly #stuckAfterMs: number;
  #statistics: { readonly reading: Promise<AccountStatistics>; readonly at: number } | undefined;

  constructor(connection: LedgerConnection, stuckAfterMs: number) {
    this.#connection = connection;
    this.#stuckAfterMs = stuckAfterMs;
  }

  async read(): Promise<Overview> {
    const connection = this.#connection;
    const [stats, statistics, gateway, reconciliation, report, notificationLagMs, ...lists] = await Promise.all([
      readAccountStats(connection),
      this.#readStatistics(),
      readGatewayFacts(connection),
      readReconciliation(connection),
      readPolicyReport(connection),
      readNotificationLag(connection),
      ...URGENT_STATES.map((state) =>
        listPayouts(connection, { state, limit: LISTED, newestFirst: FINAL_STATES.includes(state) }),
      ),
    ]);
    // The age of the oldest almost always shows that no payout is stuck.
    const mayBeStuck = (stats.oldestAgeMs.in_progress ?? 0) > this.#stuckAfterMs;
    return {
      ...{ stats, statistics, gateway, report, notificationLagMs },
      drops: summariseDrops(reconciliation, gateway.currencies).filter(({ amount }) => amount !== '0'),
      stuck: mayBeStuck ? await countStuck(connection, this.#stuckAfterMs) : 0,
      cameBack: isJustAdopted(stats) ? await readCameBack(connection, CAME_BACK_LISTED) : undefined,
      listed: new Map(URGENT_STATES.map((state, index) => [state, lists[index]?.payouts ?? []])),
      unreadable: lists.flatMap(({ unreadable }) => unreadable),
      wallNow: connection.clock.wallNow(),
    };
  }

  async #readStatistics(): Promise<AccountStatistics> {
    const now = performance.now();
    const kept = this.#statistics;
    if (kept !== undefined && now - kept.at < STATISTICS_KEPT_MS) return kept.reading;
    const reading = readStatistics(this.#connection);
    this.#statistics = { reading, at: now };
    return reading;
  }
}

import { systemClock, within } from '../base/clock.js';
import { describeRedis } from '../base/describe-redis.js';
import { RedisUnavailableError, UnsupportedFormatError } from '../base/errors.js';
import { type AccountStats, readAccountStats } from '../ledger/reads/account-stats.js';
import { readGatewayFacts } from '../ledger/reads/gateway-facts.js';
import { countStuck, listPayouts } from '../ledger/payout-queries.js';
import { freshCovers } from '../ledger/reads/balance-cover.js';
import { readPolicyReport } from '../ledger/reads/policy-report.js';
import { readNotificationLag } from '../ledger/reads/state-events.js';
import { type AccountStatistics, readStatistics } from '../ledger/reads/statistics.js';
import type { AccountAccess } from '../queues/open-account.js';
import { type AccountAdvice, adviseAccount } from './account-advice.js';
import { accountHeadline, type Headline, otherVersionHeadline } from './account-headline.js';
import { type Backlog, estimateBacklog } from './account-backlog.js';
import { AccountPoller, type LedgerObservation, type Observation } from './account-poller.js';
import type { AdviceOptions } from './next-steps.js';

/** An account in one look. */
export interface AccountSummary extends Headline {
  readonly platformId: number;
  /** Where it was read, without user and password. */
  readonly redis: string;
  /** The gateway that the ledger is bound to; null before the first send, or if it is not known. */
  readonly gateway: string | null;
  /** What stops the account until an operator runs the command. */
  readonly advice: readonly AccountAdvice[];
  /** Undefined if Redis does not respond. */
  readonly ledger: LedgerFacts | undefined;
}

interface LedgerFacts {
  /** Process and random word of the lease's owner; null if no process holds it. */
  readonly sender: string | null;
  /** Whether its heartbeat rose. */
  readonly isAlive: boolean;
  readonly lastSendAgoMs: number | null;
  readonly pausedBy: string | null;
  /** ISO 8601, UTC. */
  readonly pausedAt: string | null;
  readonly due: number;
  readonly sending: number;
  readonly held: number;
  readonly backlog: Backlog;
}

/** A busy machine must not look like a Redis that is down. */
const READ_WITHIN_MS = 5_000;

/** A busy machine may miss a heartbeat, which is due every two seconds. */
const LISTEN_MS = 4_500;

/** Looks until a heartbeat shows that the sender lives, for {@link LISTEN_MS} at most. */
export async function observeAccount(account: Pick<AccountAccess, 'ledger' | 'queues'>): Promise<Observation> {
  const watch = new AccountPoller(account, systemClock);
  const endsAt = systemClock.now() + LISTEN_MS;
  try {
    let seen = await watch.visitSender();
    const isOpen = (): boolean => ['checking', 'silent'].includes(seen.ledger?.life.kind ?? '');
    while (isOpen() && systemClock.now() < endsAt) {
      await systemClock.sleep(LOOK_AGAIN_MS);
      seen = await watch.visit();
    }
    return seen;
  } finally {
    watch.close();
  }
}

const LOOK_AGAIN_MS = 100;

interface SummaryOptions extends AdviceOptions {
  /** A payout in progress for longer is stuck. */
  readonly stuckAfterMs: number;
}

/** Waits up to {@link LISTEN_MS} for a heartbeat of the sender: only that proves life. */
export async function readAccountSummary(account: AccountAccess, options: SummaryOptions): Promise<AccountSummary> {
  const { connection } = account.ledger;
  const { platformId } = connection;
  const redis = describeRedis(connection.redis);
  try {
    const observation = await observeAccount(account);
    const read = observation.redis.kind === 'up' ? await readFacts(connection, options.stuckAfterMs) : undefined;
    if (read === undefined) {
      const silent = { kind: 'unavailable', sinceMs: 0, reason: 'it does not reply' } as const;
      const lost = observation.redis.kind === 'up' ? { redis: silent, ledger: undefined } : observation;
      return { platformId, redis, gateway: null, ...accountHeadline(lost), advice: [], ledger: undefined };
    }
    const { stats, statistics, ...facts } = read;
    const ledger = observation.ledger && withPast(observation.ledger, stats, statistics.lastSendAt);
    const headline = accountHeadline({ redis: observation.redis, ledger }, { ...facts, stats });
    return {
      ...{ platformId, redis, gateway: ledger?.gateway ?? null },
      ...headline,
      advice: adviseAccount(stats, options),
      ledger: ledger && describeLedger(ledger, { stats, statistics, headline }),
    };
  } catch (error) {
    if (!(error instanceof UnsupportedFormatError)) throw error;
    return { platformId, redis, gateway: null, ...otherVersionHeadline(error), advice: [], ledger: undefined };
  }
}

async function readFacts(connection: AccountAccess['ledger']['connection'], stuckAfterMs: number) {
  const reading = Promise.all([
    readAccountStats(connection),
    readStatistics(connection),
    readGatewayFacts(connection),
    listPayouts(connection, { state: 'held', limit: 1 }),
    readPolicyReport(connection),
    readNotificationLag(connection),
    countStuck(connection, stuckAfterMs),
  ]);
  const found = await within(READ_WITHIN_MS, reading).catch((error: unknown) => {
    if (error instanceof RedisUnavailableError) return undefined;
    throw error;
  });
  if (found === undefined) return undefined;
  const [stats, statistics, gateway, held, report, notificationLagMs, stuck] = found;
  const covers = freshCovers(gateway, statistics.sums.queued, connection.clock.wallNow());
  const facts = {
    gateway,
    heldSums: statistics.sums.held,
    firstHeld: held.payouts[0],
    heldBy: report?.held ?? [],
    ...{ covers, stuck, notificationLagMs },
  };
  return { stats, statistics, ...facts };
}

/** A look of two seconds does not see how long a send has been open, or that none begins. */
function withPast(
  ledger: LedgerObservation,
  { oldestAgeMs: { sending, queued } }: AccountStats,
  lastSendAt: number | undefined,
): LedgerObservation {
  const sinceSendMs = sending ?? (lastSendAt === undefined ? undefined : Math.max(0, ledger.wallNow - lastSendAt));
  if (ledger.sinceSendMs !== undefined || sinceSendMs === undefined) return ledger;
  return { ...ledger, sinceSendMs, readyMs: Math.min(sinceSendMs, sending ?? queued ?? 0) };
}

function describeLedger(
  { life, wallNow, due, sending, held }: LedgerObservation,
  facts: { readonly stats: AccountStats; readonly statistics: AccountStatistics; readonly headline: Headline },
): LedgerFacts {
  const { lastSendAt } = facts.statistics;
  const { pausedBy, pausedAt } = facts.stats;
  return {
    sender: life.kind === 'none' ? null : life.owner,
    isAlive: life.kind === 'alive',
    lastSendAgoMs: lastSendAt === undefined ? null : Math.max(0, wallNow - lastSendAt),
    ...{ pausedBy, pausedAt, due, sending, held },
    backlog: estimateBacklog(facts, wallNow),
  };
}

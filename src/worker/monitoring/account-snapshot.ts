import { GUARD_MS } from '../../base/settings.js';
import { within } from '../../base/clock.js';
import { RedisUnavailableError, UnsupportedFormatError } from '../../base/errors.js';
import { readAccountStats, type AccountStats } from '../../ledger/reads/account-stats.js';
import { compareBalance, type BalanceCover } from '../../ledger/reads/balance-cover.js';
import { findServer, findWriteRefusal, readClockOffset, type WriteRefusal } from '../../ledger/redis-durability.js';
import { countStuck } from '../../ledger/reads/payout-queries.js';
import { readGatewayFacts, type GatewayFacts } from '../../ledger/reads/gateway-facts.js';
import { checkFormat, type LedgerConnection } from '../../ledger/ledger-connection.js';
import { readPolicyReport, type PolicyReport } from '../../ledger/reads/policy-report.js';
import { readReconciliation, summariseDrops, type UnexplainedDrop } from '../../ledger/reads/reconciliation.js';
import { readNotificationLag } from '../../ledger/reads/state-events.js';
import { readQueuedSums, type CurrencySum } from '../../ledger/reads/statistics.js';
import { type KnownWorker, readWorkers } from '../../ledger/reads/workers.js';
import { countDueJobs, countDuePayouts } from '../../queues/job-balance.js';
import { findForeignSettings, type ForeignSetting, type PayoutQueues } from '../../queues/payout-queues.js';
import { toRedisError } from '../../base/redis.js';
import type { AccountStatus } from '../account-runtime.js';
import type { AccountWorker } from '../account-worker.js';

/** An {@link AccountWorker} as metrics and health read it. */
export type MonitoredAccount = Pick<
  AccountWorker,
  'platformId' | 'status' | 'part' | 'redis' | 'keyring' | 'policy' | 'journalHead' | 'ledger' | 'queues' | 'work'
>;

export interface AccountView extends Pick<
  MonitoredAccount,
  'platformId' | 'status' | 'work' | 'keyring' | 'policy' | 'journalHead'
> {
  readonly redisIsUp: boolean;
  readonly writeRefusal: WriteRefusal | undefined;
  /** How far this machine's wall clock is ahead of Redis's, in ms. Undefined if unknown. */
  readonly clockOffsetMs: number | undefined;
  /**
   * Undefined while Redis is unavailable, if the ledger's format is newer, or if this process rests. The working
   * process publishes them: reading them everywhere would be most of Redis's load.
   */
  readonly details: AccountDetails | undefined;
}

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

/** With a slower Redis, no send may begin either. */
const RESPOND_WITHIN_MS = GUARD_MS;

export async function viewAccount(account: MonitoredAccount, stuckAfterMs: number): Promise<AccountView> {
  const { platformId, status, part, keyring, policy, journalHead, ledger, queues, work } = account;
  const view = {
    platformId,
    status,
    work,
    keyring,
    policy,
    journalHead,
    redisIsUp: true,
    writeRefusal: undefined,
    clockOffsetMs: undefined,
    details: undefined,
  };
  try {
    const { connection } = ledger;
    const found = await whileRedisIsAvailable(
      Promise.all([
        probeWrites(connection),
        readClockOffset(connection.clock, connection.redis),
        part === 'rest' ? requireKnownFormat(connection) : readDetails(connection, queues, stuckAfterMs),
      ]),
    );
    if (found === undefined) return { ...view, redisIsUp: false };
    const [writeRefusal, clockOffsetMs, details] = found;
    return {
      ...view,
      writeRefusal,
      clockOffsetMs,
      details,
      status: writeRefusal ? refuse(status, writeRefusal) : status,
    };
  } catch (error) {
    if (!(error instanceof UnsupportedFormatError)) throw error;
    return { ...view, status: { role: 'refused', reason: error.message } };
  }
}

/** The process's own refusal says more. */
function refuse(status: AccountStatus, { reason, action }: WriteRefusal): AccountStatus {
  if (status.role === 'refused' || status.role === 'stopped') return status;
  return { ...status, role: 'refused', reason: `Redis refuses writes: ${reason}. ${action}`, cause: 'redis' };
}

/** An unknown server also fails the read of the ledger. */
async function probeWrites({ redis, keys }: LedgerConnection): Promise<WriteRefusal | undefined> {
  const server = findServer(redis, keys.ledger);
  return server && findWriteRefusal(server);
}

async function requireKnownFormat({ redis, keys }: LedgerConnection): Promise<undefined> {
  checkFormat(await redis.hget(keys.ledger, 'format'));
}

async function readDetails(
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
    ...{ stats, workers, due, pollsDue, notificationLagMs, money, policyReport },
    stuck: mayBeStuck ? await countStuck(connection, stuckAfterMs) : 0,
    foreignSettings: [
      ...withdraw.map((setting) => ({ queue: queues.withdraw.name, ...setting })),
      ...polls.map((setting) => ({ queue: queues.transactionstatus.name, ...setting })),
    ],
  };
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

/**
 * Waits briefly, because a health check needs a prompt response. @returns undefined if Redis is unavailable or hangs
 */
async function whileRedisIsAvailable<Reply>(reply: Promise<Reply>): Promise<Reply | undefined> {
  try {
    return await within(RESPOND_WITHIN_MS, reply);
  } catch (error) {
    const known = toRedisError(error);
    if (known instanceof RedisUnavailableError) return undefined;
    throw known;
  }
}

import { GUARD_MS } from '../../base/settings.js';
import { within } from '../../base/clock.js';
import { RedisUnavailableError, UnsupportedFormatError } from '../../base/errors.js';
import { readAccountStats, type AccountStats } from '../../ledger/account-stats.js';
import { compareBalance, type BalanceCover } from '../../ledger/balance-cover.js';
import { findServer, findWriteRefusal, readClockOffset, type WriteRefusal } from '../../ledger/redis-durability.js';
import { countStuck } from '../../ledger/payout-queries.js';
import { readGatewayFacts, type GatewayFacts } from '../../ledger/gateway-facts.js';
import { checkFormat, type LedgerConnection } from '../../ledger/ledger-connection.js';
import { readPolicyReport, type PolicyReport } from '../../ledger/policy-report.js';
import { readReconciliation, summariseDrops, type UnexplainedDrop } from '../../ledger/reconciliation.js';
import { readNotificationLag } from '../../ledger/state-events.js';
import { readQueuedSums, type CurrencySum } from '../../ledger/statistics.js';
import { countDueJobs, countDuePayouts } from '../../queues/job-balance.js';
import { findForeignSettings, type ForeignSetting, type PayoutQueues } from '../../queues/payout-queues.js';
import { toRedisError } from '../../base/redis.js';
import type { AccountStatus } from '../account-worker-options.js';
import type { AccountWorker } from '../account-worker.js';

/** The part of an account's worker that is looked at from outside. */
export type WatchedAccount = Pick<
  AccountWorker,
  'platformId' | 'status' | 'part' | 'redis' | 'keyring' | 'policy' | 'journalHead' | 'ledger' | 'queues' | 'work'
>;

/** What can be said of an account: this process always, Redis only while it is available. */
export interface AccountView extends Pick<
  WatchedAccount,
  'platformId' | 'status' | 'work' | 'keyring' | 'policy' | 'journalHead'
> {
  readonly redisIsUp: boolean;
  /** Why Redis takes no writes. */
  readonly writeRefusal: WriteRefusal | undefined;
  /** How far the wall clock of this machine is ahead of that of Redis, in ms; undefined while that is not known. */
  readonly clockOffsetMs: number | undefined;
  /**
   * Undefined while Redis is unavailable, when the ledger is of a newer format, and where this process rests: the one that
   * works for the account tells them, and with hundreds of accounts reading them in each process would be most of what Redis does.
   */
  readonly details: AccountDetails | undefined;
}

/** What the ledger and the queues say of an account. */
export interface AccountDetails {
  readonly stats: AccountStats;
  /** Queued payouts that could be sent now, for all that `notBefore` says. */
  readonly due: number;
  /** Status polls that are due and wait for their turn. */
  readonly pollsDue: number;
  /** Payouts in progress for longer than `stuckAfterMs`. */
  readonly stuck: number;
  readonly foreignSettings: readonly (ForeignSetting & { readonly queue: string })[];
  /** For how long the oldest event waits that `payouts notify` has not handled, in ms; undefined where it is not used. */
  readonly notificationLagMs: number | undefined;
  readonly money: AccountMoney;
  /** What the process that sends says of its policy. */
  readonly policyReport: PolicyReport | undefined;
}

/** What is queued, and from what it is paid. */
export interface AccountMoney {
  readonly queued: readonly CurrencySum[];
  readonly currencies: GatewayFacts['currencies'];
  /** Empty where the balance is not known, or not since some time. */
  readonly covers: readonly BalanceCover[];
  /** In ms; undefined while the balance is not known. */
  readonly balanceAgeMs: number | undefined;
  /** What the balances lost without a payout that explains it, where they were compared. */
  readonly unexplained: readonly UnexplainedDrop[];
}

/** An older balance looks like a true one, and is none. */
const BALANCE_VALID_MS = 15 * 60_000;

/** A Redis that takes longer lets no send begin either. */
const RESPOND_WITHIN_MS = GUARD_MS;

/** @param stuckAfterMs - a payout in progress for longer than this, in ms, is stuck */
export async function viewAccount(account: WatchedAccount, stuckAfterMs: number): Promise<AccountView> {
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

/** A refusal of the process's own says more. */
function refuse(status: AccountStatus, { reason, action }: WriteRefusal): AccountStatus {
  if (status.role === 'refused' || status.role === 'stopped') return status;
  return { ...status, role: 'refused', reason: `Redis refuses writes: ${reason}. ${action}`, cause: 'redis' };
}

/** A server that is not known yet fails the reading of the ledger too. */
async function probeWrites({ redis, keys }: LedgerConnection): Promise<WriteRefusal | undefined> {
  const server = findServer(redis, keys.ledger);
  return server && findWriteRefusal(server);
}

/** What a reading of the details would find out first. */
async function requireKnownFormat({ redis, keys }: LedgerConnection): Promise<undefined> {
  checkFormat(await redis.hget(keys.ledger, 'format'));
}

async function readDetails(
  connection: LedgerConnection,
  queues: PayoutQueues,
  stuckAfterMs: number,
): Promise<AccountDetails> {
  const [stats, due, pollsDue, notificationLagMs, withdraw, polls, money, policyReport] = await Promise.all([
    readAccountStats(connection),
    countDuePayouts(connection, queues),
    countDueJobs(connection, queues.transactionstatus),
    readNotificationLag(connection),
    findForeignSettings(connection, queues.withdraw),
    findForeignSettings(connection, queues.transactionstatus),
    readMoney(connection),
    readPolicyReport(connection),
  ]);
  // The age of the oldest says almost always that there is nothing to count.
  const mayBeStuck = (stats.oldestAgeMs.in_progress ?? 0) > stuckAfterMs;
  return {
    ...{ stats, due, pollsDue, notificationLagMs, money, policyReport },
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
 * Waits for Redis, but never for long: a health check needs a prompt response.
 * @returns undefined when Redis is unavailable or hangs
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

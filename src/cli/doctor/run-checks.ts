import { systemClock, within, type Clock } from '../../clock.js';
import { createGatewayClient } from '../../gateway/gateway-client.js';
import { readAccountStats } from '../../ledger/account-stats.js';
import { STATES_WITH_JOB } from '../../ledger/states.js';
import { silentLogger, type Logger } from '../../logger.js';
import { openAccount } from '../../queues/open-account.js';
import { closeRedis, connectRedis, type RedisClient } from '../../redis.js';
import { openAudience } from '../../control/keys/audience.js';
import { audienceOf } from '../../account-settings.js';
import type { KeyFinder } from '../../control/keys/keyring.js';
import { ACCOUNT_SETTINGS } from '../../settings.js';
import type { AccountOptions } from '../../worker/payout-worker.js';
import { checkArchiveFolder } from './check-archive-folder.js';
import { checkPause, checkSender, checkUnknown } from './check-account.js';
import { checkBalance } from './check-balance.js';
import { checkReconciliation } from './check-reconciliation.js';
import { checkClock } from './check-clock.js';
import { checkGatewayAccount, checkGatewayConnection, checkGatewayCurrencies } from './check-gateway.js';
import { checkJobs, JOB_CHECK_NAMES } from './check-jobs.js';
import { checkJournalAgreement } from './check-journal.js';
import { checkJournalFolder } from './check-journal-folder.js';
import { checkAudience } from './check-audience.js';
import { checkKeys, type KeysToCheck } from './check-keys.js';
import { checkNotifications } from './check-notifications.js';
import { checkOutbox } from './check-outbox.js';
import { checkPolicy } from './check-policy.js';
import { checkPolls } from './check-polls.js';
import { checkQueue } from './check-queue.js';
import {
  checkRedis,
  checkRedisDurability,
  checkRedisLatency,
  checkRedisMemory,
  checkRedisReplicas,
  checkRedisWrites,
} from './check-redis.js';
import { checkSignedJournal } from './check-signed-journal.js';
import { problem, type CheckResult } from './check-result.js';
import { checkWorker, type WorkerPlace } from './check-worker.js';

export interface DoctorOptions {
  readonly redisUrl: string;
  readonly journalDir: string;
  readonly archiveDir?: string | undefined;
  readonly allowVolatileRedis: boolean;
  readonly redisReplicas?: number | undefined;
  readonly accounts: readonly AccountOptions[];
  readonly keys: KeysToCheck;
  /** Where the worker serves its health, if it is known. */
  readonly worker?: WorkerPlace | undefined;
  /** @defaultValue the machine's clock */
  readonly clock?: Clock;
}

/** Reading the journals of weeks takes seconds. */
const CHECK_WITHIN_MS = 30_000;

/** Short: an operator waits for the result. */
const GATEWAY_TIMEOUT_MS = 10_000;

/** Checks everything that a worker with these options needs, and changes nothing. What cannot be reached is skipped. */
export async function* runChecks(options: DoctorOptions): AsyncGenerator<CheckResult> {
  const {
    redisUrl,
    redisReplicas,
    journalDir,
    archiveDir,
    allowVolatileRedis,
    accounts,
    keys,
    worker,
    clock = systemClock,
  } = options;
  let trouble: string | undefined;
  const listener: Logger = {
    ...silentLogger,
    warn: (fields) => (trouble = (fields as { readonly error?: string }).error),
  };
  const redis = connectRedis(redisUrl, 'commands', listener);
  try {
    const reachable = await checkRedis(redis, () => trouble);
    yield reachable;
    const there = reachable.status === 'ok' ? redis : undefined;
    if (there !== undefined) {
      yield await attempt('Redis writes', async () => checkRedisWrites(there));
      yield await attempt('Redis keeps its data', async () => checkRedisDurability(there, allowVolatileRedis));
      yield await attempt('Redis replicas', async () => checkRedisReplicas(there, redisReplicas, allowVolatileRedis));
      yield await attempt('Redis latency', async () => checkRedisLatency(there, clock));
      yield await attempt('Redis memory', async () => checkRedisMemory(there));
    }
    yield await attempt('system clock', async () => checkClock(clock, there));
    yield await checkJournalFolder(journalDir, clock);
    const { keyring, results } = checkKeys(keys, clock);
    yield* results;
    const isSigned = keys.file !== undefined;
    if (worker !== undefined) {
      const platformIds = accounts.map(({ platformId }) => platformId);
      yield* await checkWorker(worker, platformIds);
    }
    for (const account of accounts) {
      const { platformId } = account;
      // Of a keyring that cannot be used the checks of the keys tell.
      const policy = isSigned && keyring === undefined ? [] : checkPolicy(account, keyring, clock);
      for (const result of policy) yield { ...result, platformId };
      if (archiveDir !== undefined) {
        yield { ...(await checkArchiveFolder({ dir: archiveDir, platformId }, account, clock)), platformId };
      }
      for await (const result of checkGateway(account, clock)) yield { ...result, platformId };
      const audience = audienceOf(account);
      if (there === undefined) {
        yield { ...(await checkAudience(undefined, audience)), platformId };
        continue;
      }
      const { pollRate = ACCOUNT_SETTINGS.pollRate.default } = account;
      const bound = keyring?.for(openAudience(audience, keys.acceptUnboundUntil, clock));
      const options = { journalDir, isSigned, audience, keyring: bound, pollRate, clock };
      for await (const result of checkLedger(there, platformId, options)) yield { ...result, platformId };
    }
  } finally {
    await closeRedis(redis);
  }
}

async function* checkGateway(account: AccountOptions, clock: Clock): AsyncGenerator<CheckResult> {
  const { baseUrl, platformId, secretKey, timeoutMs = GATEWAY_TIMEOUT_MS } = account;
  const connection = await checkGatewayConnection(baseUrl, clock, { connectTimeoutMs: GATEWAY_TIMEOUT_MS });
  yield connection;
  if (connection.status === 'problem') return;
  const gateway = createGatewayClient({
    baseUrl,
    platformId,
    secretKey,
    timeoutMs: Math.min(timeoutMs, GATEWAY_TIMEOUT_MS),
    logger: silentLogger,
    clock,
  });
  try {
    const known = await checkGatewayAccount(gateway);
    yield known;
    if (known.status === 'ok') yield await checkGatewayCurrencies(gateway);
  } finally {
    gateway.close();
  }
}

interface LedgerCheckOptions {
  readonly journalDir: string;
  readonly audience: string;
  /** Whether only signed payouts are sent. */
  readonly isSigned: boolean;
  /** Undefined where nothing has to be signed, or the file cannot be used. */
  readonly keyring: KeyFinder | undefined;
  readonly pollRate: number;
  readonly clock: Clock;
}

async function* checkLedger(
  redis: RedisClient,
  platformId: number,
  { journalDir, isSigned, audience, keyring, pollRate, clock }: LedgerCheckOptions,
): AsyncGenerator<CheckResult> {
  const account = openAccount({ platformId, connection: redis, confirmation: 'reply', readOnly: true, clock });
  const { queues } = account;
  const { connection } = account.ledger;
  try {
    yield await attempt('audience', async () => checkAudience(account.ledger, audience));
    yield await attempt('journal and ledger', async () => checkJournalAgreement(journalDir, connection, { isSigned }));
    if (keyring !== undefined) {
      yield await attempt('signed journal', async () => checkSignedJournal(journalDir, connection, keyring));
    }
    for (const queue of [queues.withdraw, queues.transactionstatus]) {
      yield await attempt(`${queue.name} queue`, async () => checkQueue(queue, connection));
    }
    const sender = await attempt('sender', async () =>
      checkSender(connection, await readAccountStats(connection), clock),
    );
    yield sender;
    const jobs = { connection, queues, clock, hasWorker: sender.status === 'ok' };
    for (const state of STATES_WITH_JOB) {
      yield await attempt(JOB_CHECK_NAMES[state], async () => checkJobs(state, jobs));
    }
    yield await attempt('status polls', async () => checkPolls({ connection, queues, pollRate }));
    yield await attempt('outbox', async () => checkOutbox(await readAccountStats(connection)));
    yield await attempt('pause', async () => checkPause(await readAccountStats(connection), { isSigned }));
    yield await attempt('balance', async () => checkBalance(connection));
    yield await attempt('reconciliation', async () => checkReconciliation(connection));
    yield await attempt('unknown payouts', async () => checkUnknown(await readAccountStats(connection)));
    yield* await attemptAll('notifications', async () => checkNotifications(connection));
  } finally {
    await account.close();
  }
}

/** As {@link attemptAll}, for a check with one result. */
async function attempt(name: string, check: () => Promise<CheckResult>): Promise<CheckResult> {
  const [result] = await attemptAll(name, async () => [await check()] as const);
  return result;
}

/** Redis may become unavailable or refuse a command during a check: that is a result too, and the other checks run. */
async function attemptAll<Results extends readonly CheckResult[]>(
  name: string,
  check: () => Promise<Results>,
): Promise<Results | readonly [CheckResult]> {
  try {
    const results = await within(CHECK_WITHIN_MS, check());
    if (results !== undefined) return results;
    const detail = `no result within ${CHECK_WITHIN_MS / 1_000} s: a disk or Redis does not answer`;
    return [problem(name, detail, 'Check the disk of SEND_JOURNAL_DIR, and Redis.')];
  } catch (error) {
    const fix = 'Run `payouts doctor` again; if it persists, check Redis and its log.';
    return [problem(name, (error as Error).message, fix)];
  }
}

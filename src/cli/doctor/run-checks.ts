import { ACCOUNT_SETTINGS, audienceOf } from '../../base/settings.js';
import { systemClock, type Clock } from '../../base/clock.js';
import { openAudience } from '../../control/keys/audience.js';
import type { Keyring } from '../../control/keys/keyring.js';
import { silentLogger, type Logger } from '../../base/logger.js';
import { openAccount } from '../../queues/open-account.js';
import { closeRedis, connectRedis, type RedisClient } from '../../base/redis.js';
import type { AccountOptions } from '../../worker/payout-worker.js';
import { accountChecks } from './check-account.js';
import { checkArchiveFolder, checkJournalFolder, journalChecks } from './check-journal.js';
import { checkAudience, checkKeys, checkPolicy, type KeysToCheck } from './check-keys.js';
import { checkClock, checkRedis, redisChecks } from './check-redis.js';
import { runEach, type CheckResult } from './check-result.js';
import { checkGateway, checkWorker, type WorkerPlace } from './check-services.js';

export interface DoctorOptions {
  readonly redisUrl: string;
  readonly journalDir: string;
  readonly archiveDir?: string | undefined;
  readonly allowVolatileRedis: boolean;
  readonly redisReplicas?: number | undefined;
  readonly accounts: readonly AccountOptions[];
  readonly keys: KeysToCheck;
  readonly worker?: WorkerPlace | undefined;
  readonly clock?: Clock;
}

/** Changes nothing, and skips what it cannot reach. */
export async function* runChecks(options: DoctorOptions): AsyncGenerator<CheckResult> {
  const { accounts, keys, worker, clock = systemClock } = options;
  let trouble: string | undefined;
  const listener: Logger = {
    ...silentLogger,
    warn: (fields) => (trouble = (fields as { readonly error?: string }).error),
  };
  const redis = connectRedis(options.redisUrl, 'commands', listener);
  try {
    const reachable = await checkRedis(redis, () => trouble);
    yield reachable;
    const there = reachable.status === 'ok' ? redis : undefined;
    if (there !== undefined) yield* runEach(redisChecks(there, { ...options, clock }));
    yield* runEach([['system clock', async () => checkClock(clock, there)]]);
    yield await checkJournalFolder(options.journalDir, clock);
    const { keyring, results } = checkKeys(keys, clock);
    yield* results;
    if (worker !== undefined) {
      const platformIds = accounts.map(({ platformId }) => platformId);
      yield* await checkWorker(worker, platformIds);
    }
    for (const account of accounts) {
      const { platformId } = account;
      for await (const result of checkAccount(account, { ...options, redis: there, keyring, clock })) {
        yield { ...result, platformId };
      }
    }
  } finally {
    await closeRedis(redis);
  }
}

interface Around extends DoctorOptions {
  readonly redis: RedisClient | undefined;
  /** Undefined if nothing has to be signed, or the file is not usable. */
  readonly keyring: Keyring | undefined;
  readonly clock: Clock;
}

async function* checkAccount(account: AccountOptions, around: Around): AsyncGenerator<CheckResult> {
  const { redis, archiveDir, journalDir, keys, keyring, clock } = around;
  const { platformId, pollRate = ACCOUNT_SETTINGS.pollRate.default } = account;
  const isSigned = keys.file !== undefined;
  // `checkKeys` has already reported an unusable keyring.
  if (!isSigned || keyring !== undefined) yield* checkPolicy(account, keyring, clock);
  if (archiveDir !== undefined) yield await checkArchiveFolder({ dir: archiveDir, platformId }, account, clock);
  yield* checkGateway(account, clock);
  const audience = audienceOf(account);
  if (redis === undefined) {
    yield await checkAudience(undefined, audience);
    return;
  }
  const bound = keyring?.for(openAudience(audience, keys.acceptUnboundUntil, clock));
  const opened = openAccount({ platformId, connection: redis, confirmation: 'reply', readOnly: true, clock });
  const { ledger, queues } = opened;
  try {
    yield* runEach([
      ['audience', async () => checkAudience(ledger, audience)],
      ...journalChecks(journalDir, ledger.connection, { isSigned, keyring: bound }),
      ...accountChecks({ connection: ledger.connection, queues, clock }, { isSigned, pollRate }),
    ]);
  } finally {
    await opened.close();
  }
}

import { systemClock, type Clock } from '../../base/clock.js';
import type { Environment } from '../../base/config.js';
import { readSettings } from '../../base/config.js';
import { silentLogger, type Logger } from '../../base/logger.js';
import { closeRedis, connectRedis, type RedisClient } from '../../base/redis.js';
import { audienceOf, bindingOf } from '../../base/audience.js';
import { ACCOUNT_SETTINGS, CONTROL_SETTINGS, WORKER_COMMAND_SETTINGS, WORKER_SETTINGS } from '../../base/settings.js';
import type { Keyring } from '../../control/keys/keyring.js';
import { readJournal } from '../../journal/journal-reader.js';
import { openAccount } from '../../queues/open-account.js';
import type { AccountOptions } from '../../worker/core-worker.js';
import { accountChecks } from './check-account.js';
import { checkArchiveFolder, checkJournalFolder, journalChecks } from './check-journal.js';
import { checkAudience, checkKeys, checkPolicy, checkSigners } from './check-keys.js';
import { checkClock, checkRedis, checkRedisReplicas, redisChecks } from './check-redis.js';
import { type BeginCheck, type Check, type CheckResult, runEach } from './check-result.js';
import { checkGateway, checkOtherAccounts, checkWorker } from './check-services.js';

const { healthHost, healthPort } = WORKER_COMMAND_SETTINGS;
const { keysFile } = CONTROL_SETTINGS;
const SETTINGS = { ...WORKER_SETTINGS, healthHost, healthPort, keysFile };

type Settings = ReturnType<typeof readSettings<typeof SETTINGS>>;

/** Changes nothing, and skips what it cannot reach. */
export async function* runChecks(
  environment: Environment,
  accounts: readonly AccountOptions[],
  begin: BeginCheck = () => true,
): AsyncGenerator<CheckResult> {
  const settings = readSettings(SETTINGS, environment);
  const { allowVolatileRedis, healthPort: port } = settings;
  const clock = systemClock;
  let trouble: string | undefined;
  const listener: Logger = {
    ...silentLogger,
    warn: (fields) => (trouble = (fields as { readonly error?: string }).error),
  };
  const redis = connectRedis(settings.redisUrl, 'commands', listener);
  try {
    const reachable = await checkRedis(redis, () => trouble);
    yield { name: 'Redis', ...reachable };
    const there = reachable.status === 'ok' ? redis : undefined;
    if (there !== undefined) yield* runEach(redisChecks(there, allowVolatileRedis, clock), begin);
    // Reads files in this thread.
    const { keyring, findings } = begin('keys')
      ? checkKeys(settings.keysFile, clock.wallNow())
      : { keyring: undefined, findings: [] };
    const platformIds = accounts.map(({ platformId }) => platformId);
    // Without a port, perhaps no worker serves there. Port 0 does not say which one is used.
    const isServed = Boolean(environment['HEALTH_PORT']) && port !== 0;
    const ofWorker: Check = ['worker', async () => checkWorker(settings.healthHost, port, platformIds)];
    const first: Check[] = [
      ['system clock', async () => checkClock(clock, there)],
      ['journal folder', async () => checkJournalFolder(settings.journalDir, clock)],
    ];
    yield* runEach(first, begin);
    yield* findings.map((finding) => ({ name: 'keys', ...finding }));
    yield* runEach([['signers', async () => checkSigners(environment, keyring)]], begin);
    if (isServed) yield* runEach([ofWorker], begin);
    if (there !== undefined) {
      yield* runEach([['other accounts', async () => checkOtherAccounts(there, platformIds, clock)]], begin);
    }
    for (const account of accounts) {
      for await (const result of checkAccount(account, settings, there, keyring, clock, begin)) {
        yield { ...result, platformId: account.platformId };
      }
    }
  } finally {
    await closeRedis(redis);
  }
}

/**
 * @param redis - undefined if it is unavailable
 * @param keyring - undefined if nothing has to be signed, or the file is not usable
 */
async function* checkAccount(
  account: AccountOptions,
  settings: Settings,
  redis: RedisClient | undefined,
  keyring: Keyring | undefined,
  clock: Clock,
  begin: BeginCheck,
): AsyncGenerator<CheckResult> {
  const { platformId, policyFile, retentionDays, pollRate = ACCOUNT_SETTINGS.pollRate.default } = account;
  const { archiveDir, journalDir, redisReplicas, allowVolatileRedis } = settings;
  const isSigned = settings.keysFile !== undefined;
  const checks: Check[] = [];
  // `checkKeys` has already reported an unusable keyring.
  if (policyFile !== undefined && (!isSigned || keyring !== undefined)) {
    checks.push(['policy', () => Promise.resolve([...checkPolicy(policyFile, platformId, keyring, clock.wallNow())])]);
  }
  if (archiveDir !== undefined) {
    const folder = { dir: archiveDir, platformId };
    checks.push(['archive folder', async () => checkArchiveFolder(folder, retentionDays, clock)]);
  }
  yield* runEach(checks, begin, platformId);
  yield* checkGateway(account, clock);
  const audience = audienceOf(account);
  const bound = bindingOf(account);
  if (redis === undefined) {
    yield { name: 'audience', ...(await checkAudience(undefined, bound)) };
    return;
  }
  const keys = keyring?.for(audience);
  // The checks of the journal report one that cannot be read.
  const readJournaled = async (): Promise<number> =>
    (await readJournal(journalDir, platformId).catch(() => undefined))?.knownReplicas ?? 0;
  const opened = openAccount({ platformId, connection: redis, readOnly: true, clock }, 'reply');
  const { ledger, queues } = opened;
  try {
    const ofLedger: Check[] = [
      ['audience', async () => checkAudience(ledger, bound)],
      [
        'Redis replicas',
        async () => checkRedisReplicas(ledger.connection, redisReplicas, await readJournaled(), allowVolatileRedis),
      ],
      ...journalChecks(journalDir, ledger.connection, isSigned, keys),
      ...accountChecks(ledger, queues, isSigned, pollRate),
    ];
    yield* runEach(ofLedger, begin, platformId);
  } finally {
    await opened.close();
  }
}

import { GUARD_MS } from '../../base/settings.js';
import type { Clock } from '../../base/clock.js';
import { checkDurability, checkServer, readSettings, replicasSeen } from '../../ledger/redis-durability.js';
import { CLOCK_OFFSET_MAX_MS, describeClockOffset, readClockOffset } from '../../ledger/clock-offset.js';
import { findServer, listServers } from '../../ledger/redis-servers.js';
import { findWriteRefusal } from '../../ledger/write-refusal.js';
import { adviseMissing, KnownReplicas, MAX_REPLICAS } from '../../ledger/known-replicas.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { readWorkers } from '../../ledger/reads/workers.js';
import type { RedisClient } from '../../base/redis.js';
import { describeTrouble } from '../../base/redis-errors.js';
import { ok, problem, warning, type Check, type Finding } from './check-result.js';

/** The ledger uses ZRANGE … BYSCORE, new in this version. */
const LOWEST_VERSION = [6, 2] as const;
const ROUND_TRIPS = 9;
const SLOW_MS = 50;

/** Checks every node of a cluster. */
export async function checkRedis(redis: RedisClient, connectionTrouble: () => string | undefined): Promise<Finding> {
  try {
    // Comes first, as a cluster knows its nodes only after connecting. PING fails on a server whose disk fails.
    await redis.time();
    const nodes = listServers(redis);
    // Accepts a compatible server that reports no version.
    const versions = await Promise.all(nodes.map(async (node) => parseVersion(await node.info('server'))));
    const tooOld = versions.find(isTooOld);
    if (tooOld !== undefined) {
      return problem(`version ${tooOld} is too old`, `Use Redis ${LOWEST_VERSION.join('.')} or later.`);
    }
    return ok(`reachable, version ${[...new Set(versions)].join(', ')}`);
  } catch (error) {
    return problem(
      `not reachable: ${connectionTrouble() ?? describeTrouble(error as Error)}`,
      'Check that Redis is running, and host, port, user and password in REDIS_URL.',
    );
  }
}

function parseVersion(info: string): string {
  return /redis_version:(\S+)/.exec(info)?.[1] ?? 'unknown';
}

function isTooOld(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [lowestMajor, lowestMinor] = LOWEST_VERSION;
  return major < lowestMajor || (major === lowestMajor && minor < lowestMinor);
}

/** Writes nothing. Checks every master of a cluster. */
async function checkRedisWrites(redis: RedisClient): Promise<Finding> {
  const refusals = await Promise.all(listServers(redis).map(async (server) => findWriteRefusal(server)));
  const refusal = refusals.find((found) => found !== undefined);
  if (refusal === undefined) return ok('taken');
  return problem(`refused, so nothing is sent: ${refusal.reason}`, refusal.action);
}

export async function checkRedisDurability(redis: RedisClient, allowVolatileRedis: boolean): Promise<Finding> {
  const { problems, warnings } = await checkDurability(redis);
  if (problems.length > 0) {
    const found = problems.join('; ');
    return allowVolatileRedis
      ? warning(`${found}; ALLOW_VOLATILE_REDIS accepts it`, 'Fix it before you send real money.')
      : problem(found, 'Change the settings, also in the configuration file of Redis.');
  }
  if (warnings.length > 0) return warning(warnings.join('; '), 'Set it in the configuration file of Redis.');
  return ok('every write is on disk before a send, and nothing is evicted');
}

/**
 * Whether as many replicas acknowledge writes as an account knows: in its ledger, this host's journal and settings, and
 * what Redis, Sentinel or the cluster shows. Writes nothing.
 * @param fixed - REDIS_REPLICAS, if set
 * @param journaled - what this host's journal knows
 * @throws InvalidConfigError if that number is impossible
 */
export async function checkRedisReplicas(
  connection: LedgerConnection,
  fixed: number | undefined,
  journaled: number,
  allowVolatileRedis: boolean,
): Promise<Finding> {
  const { redis, keys } = connection;
  const knownReplicas = new KnownReplicas(redis, fixed);
  const account = knownReplicas.of(connection);
  account.setJournal(() => journaled);
  const server = findServer(redis, keys.ledger);
  if (server === undefined) return problem('the server of the account is not known', 'Check the cluster.');
  const report = await checkServer(server);
  await account.read(redis);
  account.see(replicasSeen(report));
  const { required } = account;
  if (required === 0)
    return ok(knownReplicas.isComplete ? 'none known' : 'none known; if there may be one, set REDIS_REPLICAS');
  const acknowledged = Number(await server.call('WAIT', Math.min(required, MAX_REPLICAS), GUARD_MS));
  if (acknowledged < required) {
    const names = await describeNames(account.missingFrom(report), connection);
    const found = `only ${acknowledged} of ${required} acknowledge writes${names}`;
    const fix = adviseMissing(account, acknowledged);
    return allowVolatileRedis
      ? warning(`${found}; ALLOW_VOLATILE_REDIS accepts it`, fix)
      : problem(`${found}, so nothing is sent`, fix);
  }
  const says = `${required} acknowledge every send before its request is written`;
  if (knownReplicas.isComplete) return ok(says);
  return warning(
    `${says}; a Redis behind one address does not say whether it has more`,
    'Set REDIS_REPLICAS to the number of all replicas that may become the master.',
  );
}

/** Since when, as the account's workers have reported it. */
async function describeNames(missing: readonly string[], connection: LedgerConnection): Promise<string> {
  const reported = (await readWorkers(connection)).flatMap((worker) => worker.missing ?? []);
  const names = missing.map((name) => {
    const [since] = reported.flatMap((each) => (each.name === name ? [each.since] : [])).sort();
    return since === undefined ? name : `${name} since ${since} at the latest`;
  });
  return names.length === 0 ? '' : ` (not ${names.join(', ')})`;
}

/** A longer value makes Redis store the whole record in twice the memory. */
const LONGEST_VALUE = 128;

/** Whether Redis stores records with a signature, or a txhash of `0x` and 64 digits, compactly. */
async function checkRedisMemory(redis: RedisClient): Promise<Finding> {
  const settings = await Promise.all(listServers(redis).map(async (server) => readSettings(server)));
  const limits = settings.map((each) => each?.['hash-max-listpack-value'] ?? each?.['hash-max-ziplist-value']);
  if (limits.includes(undefined)) return ok('its settings cannot be read');
  const lowest = Math.min(...limits.map(Number));
  if (lowest >= LONGEST_VALUE) return ok('records are kept compactly');
  return warning(
    `hash-max-listpack-value is ${lowest}: a payout with a longer txhash or a signature takes twice the memory`,
    `Set \`hash-max-listpack-value ${LONGEST_VALUE}\` (\`hash-max-ziplist-value\` before Redis 7): it counts for records that are written from then on.`,
  );
}

export async function checkRedisLatency(redis: RedisClient, clock: Clock): Promise<Finding> {
  const times: number[] = [];
  for (let trip = 0; trip < ROUND_TRIPS; trip += 1) {
    const startedAt = clock.now();
    await redis.time();
    times.push(clock.now() - startedAt);
  }
  const typical = times.sort((one, other) => one - other)[Math.floor(ROUND_TRIPS / 2)] ?? 0;
  const detail = `${typical.toFixed(1)} ms per round trip`;
  if (typical > GUARD_MS / 2) {
    return problem(detail, `A send must begin within ${GUARD_MS} ms: run the worker closer to Redis.`);
  }
  if (typical > SLOW_MS)
    return warning(detail, 'Every send waits for several round trips: run the worker closer to Redis.');
  return ok(detail);
}

const EARLIEST = Date.UTC(2025, 0, 1);
const SYNCHRONISE = 'Synchronise the clock with NTP.';

/**
 * No send depends on the wall clock, but `notBefore`, histories and certificates do.
 * @param redis - undefined while it is unavailable
 */
export async function checkClock(clock: Clock, redis: RedisClient | undefined): Promise<Finding> {
  const date = new Date(clock.wallNow()).toISOString();
  if (clock.wallNow() < EARLIEST) return problem(`${date} is in the past`, SYNCHRONISE);
  if (redis === undefined) return ok(date);
  const offsetMs = await readClockOffset(clock, redis);
  if (Math.abs(offsetMs) > CLOCK_OFFSET_MAX_MS)
    return warning(`${date}, ${describeClockOffset(offsetMs)}`, SYNCHRONISE);
  return ok(`${date}, in line with the clock of Redis`);
}

export function redisChecks(redis: RedisClient, allowVolatileRedis: boolean, clock: Clock): readonly Check[] {
  return [
    ['Redis writes', async () => checkRedisWrites(redis)],
    ['Redis keeps its data', async () => checkRedisDurability(redis, allowVolatileRedis)],
    ['Redis latency', async () => checkRedisLatency(redis, clock)],
    ['Redis memory', async () => checkRedisMemory(redis)],
  ];
}

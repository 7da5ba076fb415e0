import type { RedisClient } from '../base/redis.js';
import { ask, type LedgerConnection, pipelined } from './ledger-connection.js';
import { SHARED_KEYS } from './keys.js';

/** Far more than a Redis has. Invented accounts must not delay a scrape. */
const ACCOUNTS_MAX = 1_000;

/** Lists an account that payouts are accepted for, so that workers of other accounts know of it. */
export async function listAccount({ redis, platformId }: LedgerConnection): Promise<void> {
  await ask(redis.sadd(SHARED_KEYS.accounts, platformId));
}

export async function readListedAccounts(redis: RedisClient): Promise<number[]> {
  const listed = await ask(redis.smembers(SHARED_KEYS.accounts));
  return listed
    .map(Number)
    .filter((platformId) => Number.isSafeInteger(platformId) && platformId > 0)
    .sort((one, other) => one - other)
    .slice(0, ACCOUNTS_MAX);
}

/** Whether a worker process ever reported for the account, or had its lease. */
export async function wasEverServed(connection: LedgerConnection): Promise<boolean> {
  const { keys } = connection;
  const [reports, epoch] = (await pipelined(connection, (pipeline) =>
    pipeline.hlen(keys.workers).hget(keys.sender, 'epoch'),
  )) as [number, string | null];
  return reports > 0 || epoch !== null;
}

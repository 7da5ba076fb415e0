import { randomUUID } from 'node:crypto';
import { ask, type LedgerConnection } from './ledger-connection.js';

/** The statistics as they stand in Redis, with what tells whether another process wrote them since. */
export interface StoredStatistics {
  /** '' where there are none. */
  readonly revision: string;
  readonly fields: Readonly<Record<string, string>>;
}

/** @throws RedisUnavailableError */
export async function loadStatistics({ redis, keys }: LedgerConnection): Promise<StoredStatistics> {
  const { revision = '', ...fields } = await ask(redis.hgetall(keys.statistics));
  return { revision, fields };
}

/**
 * Writes what changed, all of it or nothing.
 * @param fields - those to set
 * @param dropped - the names of those to remove
 * @returns the new revision; undefined when another process wrote since, or the statistics are gone: load them again
 * @throws RedisUnavailableError when it may or may not have happened: load them again
 */
export async function saveStatistics(
  { run, keys }: LedgerConnection,
  revision: string,
  fields: Readonly<Record<string, string>>,
  dropped: readonly string[],
): Promise<string | undefined> {
  const next = randomUUID();
  const written = Object.entries({ ...fields, revision: next }).flat();
  const reply = await run('write-statistics', [revision, dropped.length, ...dropped, ...written], [keys.statistics]);
  return reply === 1 ? next : undefined;
}

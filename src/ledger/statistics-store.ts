import { randomUUID } from 'node:crypto';
import { ask, type LedgerConnection } from './ledger-connection.js';

/** The statistics in Redis, with a revision that another process's write changes. */
export interface StoredStatistics {
  /** '' if there are none. */
  readonly revision: string;
  readonly fields: Readonly<Record<string, string>>;
}

export async function loadStatistics({ redis, keys }: LedgerConnection): Promise<StoredStatistics> {
  const { revision = '', ...fields } = await ask(redis.hgetall(keys.statistics));
  return { revision, fields };
}

/**
 * Writes all changes, or none.
 * @param dropped - the names of fields to remove
 * @returns the new revision; undefined if another process wrote since, or the statistics are gone: load them again
 * @throws RedisUnavailableError if it may or may not have happened: load them again
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

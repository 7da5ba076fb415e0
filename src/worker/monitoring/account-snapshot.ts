import { GUARD_MS } from '../../account-settings.js';
import { within } from '../../clock.js';
import { RedisUnavailableError, UnsupportedFormatError } from '../../errors.js';
import { readAccountStats, type AccountStats } from '../../ledger/account-stats.js';
import type { AccountStatus, AccountWorker } from '../account-worker.js';

/** The part of an account's worker that is looked at from outside. */
export type WatchedAccount = Pick<AccountWorker, 'platformId' | 'status' | 'redis' | 'ledger'>;

/** What can be said of an account: this process always, Redis only while it is available. */
export interface AccountView {
  readonly platformId: number;
  readonly status: AccountStatus;
  readonly redisIsUp: boolean;
  /** Undefined while Redis is unavailable, or when the ledger is of a newer format. */
  readonly stats: AccountStats | undefined;
}

/** A Redis that takes longer lets no send begin either. */
const RESPOND_WITHIN_MS = GUARD_MS;

export async function viewAccount({ platformId, status, ledger }: WatchedAccount): Promise<AccountView> {
  try {
    const stats = await whileRedisIsAvailable(readAccountStats(ledger.connection));
    return { platformId, status, redisIsUp: stats !== undefined, stats };
  } catch (error) {
    if (!(error instanceof UnsupportedFormatError)) throw error;
    return { platformId, status: { role: 'refused', reason: error.message }, redisIsUp: true, stats: undefined };
  }
}

/**
 * Waits for Redis, but never for long: a health check needs a prompt response.
 * @returns undefined when Redis is unavailable or hangs
 */
export async function whileRedisIsAvailable<Reply>(reply: Promise<Reply>): Promise<Reply | undefined> {
  try {
    return await within(RESPOND_WITHIN_MS, reply);
  } catch (error) {
    if (error instanceof RedisUnavailableError) return undefined;
    throw error;
  }
}

import { GUARD_MS } from '../../account-settings.js';
import { within } from '../../clock.js';
import { RedisUnavailableError, UnsupportedFormatError } from '../../errors.js';
import { readAccountStats, type AccountStats } from '../../ledger/account-stats.js';
import type { AccountStatus, AccountWorker } from '../account-worker.js';

/** The part of an account's worker that is looked at from outside. */
export type WatchedAccount = Pick<AccountWorker, 'platformId' | 'status' | 'redis' | 'ledger'>;

/** What can be said of an account: what this process does always, what Redis knows only while it is there. */
export interface AccountView {
  readonly platformId: number;
  readonly status: AccountStatus;
  readonly redisIsUp: boolean;
  /** Undefined while Redis is away, or when the ledger is of a newer format. */
  readonly stats: AccountStats | undefined;
}

/** A Redis that takes longer lets no send begin either. */
const ANSWER_WITHIN_MS = GUARD_MS;

export async function viewAccount({ platformId, status, ledger }: WatchedAccount): Promise<AccountView> {
  try {
    const stats = await whileRedisIsThere(readAccountStats(ledger.connection));
    return { platformId, status, redisIsUp: stats !== undefined, stats };
  } catch (error) {
    if (!(error instanceof UnsupportedFormatError)) throw error;
    return { platformId, status: { role: 'refused', reason: error.message }, redisIsUp: true, stats: undefined };
  }
}

/**
 * Waits for what Redis says, but never for long: whoever asks whether all is well wants an answer.
 * @returns undefined when Redis is away or hangs
 */
export async function whileRedisIsThere<Answer>(answer: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await within(ANSWER_WITHIN_MS, answer);
  } catch (error) {
    if (error instanceof RedisUnavailableError) return undefined;
    throw error;
  }
}

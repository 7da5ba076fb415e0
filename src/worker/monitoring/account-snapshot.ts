import { GUARD_MS } from '../../base/settings.js';
import { within } from '../../base/clock.js';
import { RedisUnavailableError, UnsupportedFormatError } from '../../base/errors.js';
import { findRefusalOf } from '../../ledger/account-refusal.js';
import { readClockOffset } from '../../ledger/clock-offset.js';
import { type WriteRefusal } from '../../ledger/write-refusal.js';
import { ask, checkFormat, type LedgerConnection } from '../../ledger/ledger-connection.js';
import { type AccountDetails, readAccountDetails } from '../../operator/account-details.js';
import { toRedisError } from '../../base/redis-errors.js';
import type { AccountStatus } from '../account-runtime.js';
import type { AccountWorker } from '../account-worker.js';

/** An {@link AccountWorker} as metrics and health read it. */
export type MonitoredAccount = Pick<
  AccountWorker,
  | 'platformId'
  | 'status'
  | 'part'
  | 'redis'
  | 'missingReplicas'
  | 'keyring'
  | 'policy'
  | 'journalHead'
  | 'ledger'
  | 'queues'
  | 'work'
>;

export interface AccountView extends Pick<
  MonitoredAccount,
  'platformId' | 'status' | 'work' | 'keyring' | 'policy' | 'journalHead'
> {
  readonly redisIsUp: boolean;
  readonly writeRefusal: WriteRefusal | undefined;
  /** Set if this version cannot read the ledger. */
  readonly formatError?: UnsupportedFormatError;
  /** How far this machine's wall clock is ahead of Redis's, in ms. Undefined if unknown. */
  readonly clockOffsetMs: number | undefined;
  /**
   * Undefined while Redis is unavailable, if the ledger cannot be read, or if this process rests. The working
   * process publishes them: reading them everywhere would be most of Redis's load.
   */
  readonly details: AccountDetails | undefined;
  /** Why the account cannot be read in Redis, although it responds. */
  readonly unreadable?: string;
}

/** With a slower Redis, no send may begin either. */
const RESPOND_WITHIN_MS = GUARD_MS;

export async function viewAccount(account: MonitoredAccount, stuckAfterMs: number): Promise<AccountView> {
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
        findRefusalOf(connection),
        readClockOffset(connection.clock, connection.redis),
        part === 'rest' ? requireKnownFormat(connection) : readAccountDetails(connection, queues, stuckAfterMs),
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
    // One account's trouble is that account's: the others are shown.
    if (!(error instanceof UnsupportedFormatError)) return { ...view, unreadable: (error as Error).message };
    return { ...view, formatError: error, status: { role: 'refused', reason: error.message } };
  }
}

/** The process's own refusal says more. */
function refuse(status: AccountStatus, { reason, action }: WriteRefusal): AccountStatus {
  if (status.role === 'refused' || status.role === 'stopped') return status;
  return { ...status, role: 'refused', reason: `Redis refuses writes: ${reason}. ${action}`, cause: 'redis' };
}

async function requireKnownFormat({ redis, keys }: LedgerConnection): Promise<undefined> {
  checkFormat(await ask(redis.hget(keys.ledger, 'format')));
}

/**
 * Waits briefly, because a health check needs a prompt response. @returns undefined if Redis is unavailable or hangs
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

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Clock } from '../../clock.js';
import { RedisUnavailableError } from '../../errors.js';
import { findServer, listServers } from '../../ledger/find-server.js';
import { MemberRegistry } from '../../ledger/member-registry.js';
import { SHARED_KEYS } from '../../ledger/shared-keys.js';
import type { Logger } from '../../logger.js';
import { replyCode, type RedisClient } from '../../redis.js';
import { AccountSharing, type SharedAccount } from './account-sharing.js';
import { nameFolder } from './shared-journal.js';

interface OpenSharingOptions {
  readonly redis: RedisClient;
  readonly journalDir: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Whether a process with these accounts shares them with others. One account cannot be shared out. */
export function isShared(accounts: readonly unknown[]): boolean {
  return accounts.length > 1;
}

/** @returns undefined where there is nothing to share out */
export function openSharing(
  accounts: readonly SharedAccount[],
  { redis, journalDir, clock, logger }: OpenSharingOptions,
): AccountSharing | undefined {
  if (!isShared(accounts)) return undefined;
  const id = `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`;
  return new AccountSharing({
    ...{ id, accounts, clock, logger },
    registry: new MemberRegistry(redis, id),
    nameFolder: async () => nameFolder(journalDir),
    patienceMs: (error) => patienceMs(error, redis),
  });
}

/** In a cluster the accounts may be on servers that work while that of the registry does not. */
const OTHER_SERVERS_MS = 15_000;

/**
 * A user without rights for the registry, or a key that is something else, does not change by waiting. While Redis is
 * unavailable as a whole, nobody can take a lease, and to compete would only add to what there is to do afterwards.
 */
function patienceMs(error: unknown, redis: RedisClient): number {
  if (!(error instanceof RedisUnavailableError) || replyCode(error.cause) === 'NOPERM') return 0;
  return hasOtherServer(redis) ? OTHER_SERVERS_MS : Infinity;
}

function hasOtherServer(redis: RedisClient): boolean {
  const own = findServer(redis, SHARED_KEYS.members);
  return listServers(redis).some((server) => server !== own && server.status === 'ready');
}

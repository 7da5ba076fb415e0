import { randomUUID } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { type Clock, every } from '../../base/clock.js';
import { RedisUnavailableError } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';
import { type RedisClient, replyCode } from '../../base/redis.js';
import type { SendJournal } from '../../journal/send-journal.js';
import { SHARED_KEYS } from '../../ledger/keys.js';
import { MemberRegistry } from '../../ledger/member-registry.js';
import { findServer, listServers } from '../../ledger/redis-durability.js';
import { AccountSharing, type SharedAccount } from './account-sharing.js';

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

/** Linux makes one at each start of the machine: two machines that were copied from one image have different ones. */
const BOOT_ID_FILE = '/proc/sys/kernel/random/boot_id';

/**
 * A name of the folder that only processes which share it come to: two hosts may use the same path for two folders, so the
 * host and its start, the file system, the inode and the birth of the folder count.
 * @param bootIdFile - what tells one start of a machine from all others
 * @returns undefined where the folder is not there, or its birth is unknown: then no other process is taken to share it
 */
export async function nameFolder(dir: string, bootIdFile = BOOT_ID_FILE): Promise<string | undefined> {
  try {
    const { dev, ino, birthtimeNs } = await stat(dir, { bigint: true });
    return birthtimeNs > 0n ? `${hostname()}:${await readBootId(bootIdFile)}:${dev}:${ino}:${birthtimeNs}` : undefined;
  } catch {
    return undefined;
  }
}

/** '' on a system that has none: hosts are told apart by their names alone there. */
async function readBootId(file: string): Promise<string> {
  return readFile(file, 'utf8').then(
    (text) => text.trim(),
    () => '',
  );
}

interface FollowJournalOptions {
  readonly journal: Pick<SendJournal, 'reload'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What is read is the same however often: seldom only spares looking at the folder. */
const FOLLOW_EVERY_MS = 5 * 60_000;

/**
 * Reads what another process adds to a journal that this one shares, until the signal is aborted. Where nobody looked until
 * the file that was read last is removed, since it is old, the journal looks as if it had been exchanged, and is refused. And
 * a takeover that first reads the sends of weeks would be late.
 */
export async function followJournal({ journal, clock, logger }: FollowJournalOptions, end: AbortSignal): Promise<void> {
  // The process that takes over reads it again, and refuses it then.
  const onError = ({ message }: Error): void => {
    logger.debug({ error: message }, 'cannot follow the send journal');
  };
  await every(FOLLOW_EVERY_MS, async () => journal.reload(), { clock, signal: end, onError });
}

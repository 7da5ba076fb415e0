import { randomUUID } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { every } from '../../base/clock.js';
import { RedisUnavailableError } from '../../base/errors.js';
import type { RedisClient } from '../../base/redis.js';
import { replyCode } from '../../base/redis-errors.js';
import type { SendJournal } from '../../journal/send-journal.js';
import { SHARED_KEYS } from '../../ledger/keys.js';
import { MemberRegistry } from '../../ledger/member-registry.js';
import { findServer, listServers } from '../../ledger/redis-servers.js';
import { AccountSharing, type AccountSharingOptions, type SharedAccount } from './account-sharing.js';

/** A single account cannot be shared. */
export function isShared(accounts: readonly unknown[]): boolean {
  return accounts.length > 1;
}

/** @returns undefined if there is nothing to share */
export function openSharing(
  accounts: readonly SharedAccount[],
  redis: RedisClient,
  journalDir: string,
  { clock, logger }: Pick<AccountSharingOptions, 'clock' | 'logger'>,
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

/** In a cluster, servers of accounts may work while the registry's server does not. */
const OTHER_SERVERS_MS = 15_000;

/**
 * Missing rights or a wrong key type do not change with time. While all of Redis is unavailable, no process can take a
 * lease, and competing would only add later work.
 */
function patienceMs(error: unknown, redis: RedisClient): number {
  if (!(error instanceof RedisUnavailableError) || replyCode(error.cause) === 'NOPERM') return 0;
  return hasOtherServer(redis) ? OTHER_SERVERS_MS : Infinity;
}

function hasOtherServer(redis: RedisClient): boolean {
  const own = findServer(redis, SHARED_KEYS.members);
  return listServers(redis).some((server) => server !== own && server.status === 'ready');
}

/** Linux makes a new id at each boot, so two machines from one image differ. */
const BOOT_ID_FILE = '/proc/sys/kernel/random/boot_id';

/**
 * Names a folder so that only processes that share it get the same name. Two hosts may use one path for two folders. So
 * host, boot, file system, inode and birth time of the folder count.
 * @param bootIdFile - differs for each boot of each machine
 * @returns undefined if the folder is missing or has no birth time: then it counts as not shared
 */
export async function nameFolder(dir: string, bootIdFile = BOOT_ID_FILE): Promise<string | undefined> {
  try {
    const { dev, ino, birthtimeNs } = await stat(dir, { bigint: true });
    return birthtimeNs > 0n ? `${hostname()}:${await readBootId(bootIdFile)}:${dev}:${ino}:${birthtimeNs}` : undefined;
  } catch {
    return undefined;
  }
}

/** '' if the system has none: then only host names tell hosts apart. */
async function readBootId(file: string): Promise<string> {
  return readFile(file, 'utf8').then(
    (text) => text.trim(),
    () => '',
  );
}

/** The interval does not change what is read. A long one saves looks at the folder. */
const FOLLOW_EVERY_MS = 5 * 60_000;

/**
 * Reads what another process adds to a shared journal, until the signal is aborted. If the last read file were removed
 * unseen, the journal would look exchanged and be refused. A takeover that first reads weeks of sends would also be
 * late.
 */
export async function followJournal(
  journal: Pick<SendJournal, 'reload'>,
  { clock, logger }: Pick<AccountSharingOptions, 'clock' | 'logger'>,
  end: AbortSignal,
): Promise<void> {
  // A takeover reads the journal again and refuses it then.
  const onError = ({ message }: Error): void => {
    logger.debug({ error: message }, 'cannot follow the send journal');
  };
  await every(FOLLOW_EVERY_MS, async () => journal.reload(), { clock, signal: end, onError });
}

import { readFile, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { every, type Clock } from '../../clock.js';
import type { SendJournal } from '../../journal/send-journal.js';
import type { Logger } from '../../logger.js';

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

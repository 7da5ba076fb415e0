import { readFile, stat } from 'node:fs/promises';
import { hostname } from 'node:os';

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

import { readFileSync, realpathSync, statSync, type Stats } from 'node:fs';
import { dirname, resolve } from 'node:path';

/**
 * Files that say what may be done: who can change one decides. As sshd does, such a file is used only where nobody but
 * root and the user of this process can write it, or put another in its place.
 */

const WRITE_BY_OTHERS = 0o022;
const STICKY = 0o1000;
const ROOT = 0;

/**
 * Reads such a file.
 * @throws Error that says why it is not trusted, and what to do
 */
export function readTrustedFile(path: string): string {
  return readTrustedBytes(path).toString('utf8');
}

/** As {@link readTrustedFile}, to the byte. */
export function readTrustedBytes(path: string): Buffer {
  try {
    const target = realpathSync(path);
    // The folders of a link too, and those above: who can write one can put another folder or link in place of what is in it.
    for (const folder of new Set([...foldersOf(path), ...foldersOf(target)])) checkFolder(folder);
    checkOwner(target, statSync(target), WRITE_BY_OTHERS);
    return readFileSync(target);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    throw new Error(`cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

function foldersOf(path: string): string[] {
  const folder = dirname(resolve(path));
  return folder === resolve(path) ? [] : [folder, ...foldersOf(folder)];
}

/** In a folder with the sticky bit, only its owner can replace a file. */
function checkFolder(folder: string): void {
  const stats = statSync(folder);
  checkOwner(folder, stats, (stats.mode & STICKY) === 0 ? WRITE_BY_OTHERS : 0);
}

/** Windows has neither owners nor modes of this kind. */
function checkOwner(path: string, { uid, mode }: Stats, forbidden: number): void {
  const self = process.getuid?.();
  if (self === undefined) return;
  if (uid !== ROOT && uid !== self) {
    throw new Error(
      `is not trusted: ${path} belongs to user ${uid}. Run \`chown root ${path}\`, or give it to the user of this process (${self})`,
    );
  }
  if ((mode & forbidden) !== 0) {
    const shown = (mode & 0o7777).toString(8).padStart(4, '0');
    throw new Error(
      `is not trusted: others than its owner can write ${path} (mode ${shown}). Run \`chmod go-w ${path}\``,
    );
  }
}

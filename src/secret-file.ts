import { readFileSync, statSync, type Stats } from 'node:fs';

/** Reading and writing by users who are neither the owner nor in the file's group. */
const OTHERS = 0o006;

/**
 * Reads a file that holds a secret. One trailing line break is dropped.
 * @param mayBeOpen - accepts a file that every user of the machine can read or write, as in a container, which has no others
 * @throws Error that says why it cannot be used, never with its content
 */
export function readSecretFile(path: string, mayBeOpen: boolean): string {
  let content: string;
  let stats: Stats;
  try {
    stats = statSync(path);
    content = readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`cannot be read: ${(error as Error).message}`, { cause: error });
  }
  if (!mayBeOpen && isOpenToOthers(stats)) {
    const mode = (stats.mode & 0o777).toString(8).padStart(4, '0');
    throw new Error(
      `is open to every user of this machine (mode ${mode}): run \`chmod o-rw ${path}\`; in a container set ALLOW_READABLE_SECRETS=true`,
    );
  }
  return content.replace(/\r?\n$/, '');
}

/** A pipe is nobody else's. Windows has no such modes. */
function isOpenToOthers(stats: Stats): boolean {
  return process.platform !== 'win32' && stats.isFile() && (stats.mode & OTHERS) !== 0;
}

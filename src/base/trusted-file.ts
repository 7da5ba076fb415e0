import { lstatSync, readFileSync, readlinkSync, realpathSync, statSync, type Stats } from 'node:fs';
import { parse, resolve, sep } from 'node:path';

/**
 * Files with permissions or secrets. As in sshd, such a file is used only if no one but root and the process's user can
 * write or replace it.
 */

const WRITE_BY_OTHERS = 0o022;
/** A group may read, so that a mounted secret or a key of mode 0640 works for a service that is not root. */
const OPEN_TO_ALL = 0o006;
const STICKY = 0o1000;
const ROOT = 0;

/** @throws Error that says why the file is not trusted, and what to do */
export function readTrustedFile(path: string): string {
  return readTrustedBytes(path).toString('utf8');
}

/**
 * Reads a secret's file, which must also not be readable by every user of the machine. One trailing line break is
 * dropped.
 * @param mayBeOpen - skips the checks of owners and modes: a container has no other users, and mounts have the host's
 * owners
 * @throws Error with the reason, never with its content
 */
export function readSecretFile(path: string, mayBeOpen: boolean): string {
  try {
    const content = mayBeOpen
      ? readFileSync(path)
      : isStream(path)
        ? readStream(path)
        : readTrustedBytes(path, OPEN_TO_ALL);
    return content.toString('utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const problem = code === undefined ? `${message}; in a container set ALLOW_READABLE_SECRETS=true` : message;
    throw new Error(code === undefined ? problem : `cannot be read: ${problem}`, { cause: error });
  }
}

/** A pipe, a terminal, `/dev/null`. */
function isStream(path: string): boolean {
  return !statSync(path).isFile();
}

/**
 * A descriptor that was handed over belongs to this process. A name in a folder that others can write may be theirs.
 */
function readStream(path: string): Buffer {
  const target = findTarget(path);
  checkWay(path);
  const stats = statSync(path);
  if (target !== undefined && stats.isFIFO()) checkOwner(target, stats, WRITE_BY_OTHERS);
  return readFileSync(path);
}

/** @returns undefined for the pipe of a descriptor, which has no name */
function findTarget(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

/**
 * As {@link readTrustedFile}, to the byte.
 * @param forbidden - additional mode bits that it must not have
 */
export function readTrustedBytes(path: string, forbidden = 0): Buffer {
  return namingFault(() => readFileSync(findTrusted(path, forbidden)));
}

/** Checks a program that decides what is sent, as {@link readTrustedFile} checks a file. */
export function checkTrustedProgram(path: string): void {
  namingFault(() => findTrusted(path, 0));
}

function findTrusted(path: string, forbidden: number): string {
  const target = realpathSync(path);
  checkWay(path);
  const stats = statSync(target);
  checkOpen(target, stats, forbidden);
  checkOwner(target, stats, WRITE_BY_OTHERS);
  return target;
}

function namingFault<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    throw new Error(`cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

/**
 * Checks a folder for files that must be trusted later.
 * @param dir - it must exist
 * @throws Error if others can write it, or a folder above it
 */
export function checkTrustedFolder(dir: string): void {
  checkWay(resolve(dir, 'file'));
}

const MOST_LINKS = 40;

/**
 * Checks every folder in which a name on the way to a file stands, through each link of a chain: who can write one can
 * replace what is in it.
 */
function checkWay(path: string, links = 0): void {
  const { root } = parse(resolve(path));
  let at = root;
  const names = resolve(path).slice(root.length).split(sep).filter(Boolean);
  for (const [index, name] of names.entries()) {
    checkFolder(at);
    const next = resolve(at, name);
    const stats = lstatSync(next, { throwIfNoEntry: false });
    if (stats?.isSymbolicLink() === true) {
      // In a folder with the sticky bit, anyone may have made it. A link's own mode says nothing.
      checkOwner(next, stats, 0);
      const target = readlinkSync(next);
      // A descriptor's link, such as `pipe:[1]`, leads to no name.
      if (links >= MOST_LINKS || /^\w+:\[/.test(target)) return;
      checkWay(resolve(at, target, ...names.slice(index + 1)), links + 1);
      return;
    }
    at = next;
  }
}

/** In a folder with the sticky bit, only its owner can replace a file. */
function checkFolder(folder: string): void {
  const stats = statSync(folder);
  checkOwner(folder, stats, (stats.mode & STICKY) === 0 ? WRITE_BY_OTHERS : 0);
}

function checkOpen(path: string, { mode }: Stats, forbidden: number): void {
  if (process.getuid === undefined || (mode & forbidden) === 0) return;
  throw new Error(`is open to every user of this machine (mode ${showMode(mode, 0o777)}): run \`chmod o-rw ${path}\``);
}

/** Windows has no such owners and modes. */
function checkOwner(path: string, { uid, mode }: Stats, forbidden: number): void {
  const self = process.getuid?.();
  if (self === undefined) return;
  if (uid !== ROOT && uid !== self) {
    throw new Error(
      `is not trusted: ${path} belongs to user ${uid}. Run \`chown root ${path}\`, or give it to the user of this process (${self})`,
    );
  }
  if ((mode & forbidden) !== 0) {
    const shown = showMode(mode, 0o7777);
    throw new Error(
      `is not trusted: others than its owner can write ${path} (mode ${shown}). Run \`chmod go-w ${path}\``,
    );
  }
}

function showMode(mode: number, bits: number): string {
  return (mode & bits).toString(8).padStart(4, '0');
}

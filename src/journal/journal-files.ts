import { randomBytes, randomUUID } from 'node:crypto';
import type { Stats } from 'node:fs';
import { constants, type FileHandle, link, lstat, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { TORN_MARK } from './parse-line.js';

/**
 * The files of one account's journal: lines are appended to `<platformId>.journal`; full files are beside it,
 * `<platformId>.journal.1` the oldest.
 */

export interface JournalFile {
  readonly path: string;
  readonly inode: number;
  readonly size: number;
  /** Wall clock, ms. */
  readonly changedAt: number;
}

type ListedFile = Pick<JournalFile, 'path' | 'inode'>;

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

export function journalPath(dir: string, platformId: number): string {
  return join(dir, `${platformId}.journal`);
}

/** The folder or its nearest existing parent. @throws Error if it is behind a link that leads nowhere */
export async function findExisting(dir: string): Promise<string> {
  try {
    await stat(dir);
    return dir;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(dir) === dir) throw error;
  }
  if (await isLink(dir)) throw new Error(`${dir} is a symbolic link to nothing: make what it names, or another link`);
  return findExisting(dirname(dir));
}

async function isLink(path: string): Promise<boolean> {
  return lstat(path).then(
    (found) => found.isSymbolicLink(),
    () => false,
  );
}

/**
 * Makes a folder and its parents. Node's own recursive mkdir never ends if a file system denies that a parent exists.
 * @returns the first of them that was made; undefined if all exist
 */
export async function makeFolder(dir: string): Promise<string | undefined> {
  if ((await findExisting(dir)) === dir) return undefined;
  const first = await makeFolder(dirname(dir));
  await mkdir(dir, FOLDER_MODE).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  });
  return first ?? dir;
}

const IN_THE_WAY = 'A file is in the way: move it, or name a folder.';
const NOT_ALLOWED = 'Let the user of the worker write there.';
const FULL = 'Free space on this disk.';
const ADVICE: Readonly<Record<string, string>> = {
  ENOTDIR: IN_THE_WAY,
  EEXIST: IN_THE_WAY,
  EROFS: 'Its file system is read-only: mount it for writing.',
  ENOSPC: FULL,
  EDQUOT: FULL,
};

/** What to do about a folder that cannot be made or written. */
export function folderAdvice({ code = '' }: NodeJS.ErrnoException): string {
  return ADVICE[code] ?? NOT_ALLOWED;
}

/**
 * Lists the files of one moment, oldest first, although another process may rotate meanwhile. The present file is the
 * last.
 */
export async function listFiles(path: string): Promise<JournalFile[]> {
  for (;;) {
    const former = await findFormer(path);
    const files = await Promise.all([...former, path].map(describe));
    // A file that was rotated meanwhile has left its old name, and its new name is not in the list.
    if ((await findFormer(path)).at(-1) === former.at(-1)) return files.filter((file) => file !== undefined);
  }
}

async function findFormer(path: string): Promise<string[]> {
  const prefix = `${basename(path)}.`;
  return (await readNames(dirname(path)))
    .filter((name) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)))
    .map((name) => Number(name.slice(prefix.length)))
    .sort((one, other) => one - other)
    .map((number) => `${path}.${number}`);
}

async function readNames(dir: string): Promise<string[]> {
  try {
    return await readdir(dir);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

async function describe(path: string): Promise<JournalFile | undefined> {
  try {
    const { ino, size, mtimeMs } = await stat(path);
    return { path, inode: ino, size, changedAt: mtimeMs };
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

export async function findPresent(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Rotation would replace a link and lose its target. */
export async function refuseLink(path: string): Promise<void> {
  if (await isLink(path)) {
    throw new Error(
      `The send journal ${path} is a symbolic link. Link its folder instead (SEND_JOURNAL_DIR), or move the file there.`,
    );
  }
}

/**
 * Creates a file with its first lines, all or nothing, also if another process creates it at the same time.
 * @returns false if it already exists
 */
export async function createFile(path: string, lines: string): Promise<boolean> {
  const draft = `${path}.${randomUUID()}.new`;
  const file = await open(draft, 'wx', FILE_MODE);
  try {
    await file.write(lines);
    await file.sync();
    await link(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    await file.close();
    await rm(draft, { force: true });
  }
  await syncFolder(path);
  return true;
}

/** The file must exist. A last line torn by a crash gets a mark. */
export async function openForAppending(path: string): Promise<FileHandle> {
  await refuseLink(path);
  // Reading is needed to recognise a torn line. A missing file must not be created.
  const file = await open(path, constants.O_RDWR | constants.O_APPEND);
  try {
    await endTornLine(file);
    await file.sync();
    await syncFolder(path);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function endTornLine(file: FileHandle): Promise<void> {
  const { size } = await file.stat();
  if (size === 0) return;
  const last = Buffer.alloc(1);
  await file.read(last, 0, 1, size - 1);
  if (last.toString() !== '\n') await file.write(`${TORN_MARK}\n`);
}

export async function setAside(path: string): Promise<void> {
  const former = (await listFiles(path)).filter((file) => file.path !== path);
  const newest = Number(former.at(-1)?.path.slice(path.length + 1) ?? 0);
  await rename(path, `${path}.${newest + 1}`);
  await syncFolder(path);
}

/** A new or removed name survives a crash only once its folder is on disk. @param path - of the file */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(dirname(path), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

export function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}

const CHUNK_BYTES = 64 * 1024;
const LINE_BREAK = 0x0a;

/**
 * Whole lines of a file from an offset, each with the offset behind it. Text after the last line break is left out: it
 * is unfinished, or torn by a crash before its send.
 * @param listed - found also if it was rotated since
 */
export async function* readLines(listed: ListedFile, offset: number): AsyncGenerator<{ text: string; end: number }> {
  const file = await openListed(listed);
  try {
    let rest = Buffer.alloc(0);
    let position = offset;
    for (;;) {
      const chunk = Buffer.alloc(CHUNK_BYTES);
      const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES, position + rest.length);
      if (bytesRead === 0) return;
      rest = Buffer.concat([rest, chunk.subarray(0, bytesRead)]);
      let start = 0;
      for (let end = rest.indexOf(LINE_BREAK); end !== -1; end = rest.indexOf(LINE_BREAK, start)) {
        yield { text: rest.toString('utf8', start, end), end: position + end + 1 };
        start = end + 1;
      }
      position += start;
      rest = rest.subarray(start);
    }
  } finally {
    await file.close();
  }
}

/** @throws Error with code ENOENT if the file was removed or replaced */
async function openListed({ path, inode }: ListedFile): Promise<FileHandle> {
  for (let name: string | undefined = path; name !== undefined; name = await findName(path, inode)) {
    const file = await openIfThere(name);
    if (file === undefined) continue;
    if ((await file.stat()).ino === inode) return file;
    await file.close();
  }
  throw Object.assign(new Error(`${path} was removed or replaced before it could be read`), { code: 'ENOENT' });
}

/** A rotated file keeps its inode. */
async function findName(path: string, inode: number): Promise<string | undefined> {
  return (await listFiles(path)).find((listed) => listed.inode === inode)?.path;
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r');
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

const ID_LENGTH = 12;

/** 48 random bits. */
export function randomId(): string {
  return randomBytes(ID_LENGTH / 2).toString('hex');
}

import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { FileSendJournal } from '../../src/journal/file-send-journal.js';
import {
  createFile,
  journalPath,
  listFiles,
  makeFolder,
  openForAppending,
  readLines,
  refuseLink,
  setAside,
} from '../../src/journal/journal-files.js';

let dir: string;
let path: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'journal-files-'));
  path = journalPath(dir, 1);
});
afterEach(async () => rm(dir, { recursive: true, force: true }));

const modeOf = async (name: string): Promise<string> => ((await stat(name)).mode & 0o777).toString(8);
const names = async (): Promise<string[]> => (await listFiles(path)).map((file) => file.path.slice(dir.length + 1));

async function linesOf(offset = 0): Promise<{ text: string; end: number }[]> {
  const lines: { text: string; end: number }[] = [];
  for await (const line of readLines({ path, inode: (await stat(path)).ino }, offset)) lines.push(line);
  return lines;
}

describe('the folder and its files', () => {
  it('are for the worker alone, whatever its umask lets others do', async () => {
    const umask = process.umask(0);
    try {
      const made = join(dir, 'a', 'b');
      const journal = await FileSendJournal.open({ dir: made, platformId: 1 });
      await journal.close();
      expect(await modeOf(made)).toBe('700');
      expect(await modeOf(journalPath(made, 1))).toBe('600');
    } finally {
      process.umask(umask);
    }
  });

  it.each([
    ['behind a link to nothing', async () => symlink(join(dir, 'nowhere'), join(dir, 'link')), 'link/a/journal'],
    ['that is a link to nothing', async () => symlink(join(dir, 'nowhere'), join(dir, 'link')), 'link'],
  ])('are in no folder %s', async (_, prepare, folder) => {
    await prepare();
    await expect(makeFolder(join(dir, folder))).rejects.toThrow(`${join(dir, 'link')} is a symbolic link to nothing`);
    expect(await readdir(dir)).toEqual(['link']);
  });

  it('are in no folder that the file system does not take', async () => {
    await expect(makeFolder('/proc/none/journal')).rejects.toThrow('ENOENT');
  });

  it('may not be a symbolic link to a file: the link would be replaced, and the file forgotten', async () => {
    const target = join(dir, 'elsewhere');
    await writeFile(target, '');
    await symlink(target, path);
    const message = `The send journal ${path} is a symbolic link. Link its folder instead (SEND_JOURNAL_DIR), or move the file there.`;
    await expect(refuseLink(path)).rejects.toThrow(message);
    await expect(openForAppending(path)).rejects.toThrow(message);
    await expect(FileSendJournal.open({ dir, platformId: 1 })).rejects.toThrow(message);
    await rm(target);
    await expect(FileSendJournal.open({ dir, platformId: 1 })).rejects.toThrow(message);
    expect(await readdir(dir)).toEqual(['1.journal']);
  });

  it('may be in a folder that is a link', async () => {
    const linked = join(dir, 'linked');
    await mkdir(join(dir, 'real'));
    await symlink(join(dir, 'real'), linked);
    await (await FileSendJournal.open({ dir: linked, platformId: 1 })).close();
    expect(await readdir(join(dir, 'real'))).toEqual(['1.journal']);
  });
});

it('listFiles gives the former files by their numbers and the present one last, and no other', async () => {
  for (const suffix of ['', '.2', '.10', '.1', '.1.gz', '.bak', '.abc.new', '.']) await writeFile(path + suffix, '');
  await writeFile(journalPath(dir, 11), '');
  expect(await names()).toEqual(['1.journal.1', '1.journal.2', '1.journal.10', '1.journal']);
});

it('listFiles gives none where there is no folder, and former ones where the present one is missing', async () => {
  expect(await listFiles(journalPath(join(dir, 'missing'), 1))).toEqual([]);
  await writeFile(`${path}.3`, '');
  expect(await names()).toEqual(['1.journal.3']);
});

describe('createFile', () => {
  it('makes the file once, whole, however many try at the same time, and leaves nothing else', async () => {
    const made = await Promise.all(Array.from({ length: 20 }, async (_, index) => createFile(path, `by ${index}\n`)));
    expect(made.filter(Boolean)).toHaveLength(1);
    expect(await readFile(path, 'utf8')).toBe(`by ${made.indexOf(true)}\n`);
    expect(await readdir(dir)).toEqual(['1.journal']);
  });
});

it('openForAppending makes no file where there is none', async () => {
  await expect(openForAppending(path)).rejects.toMatchObject({ code: 'ENOENT' });
  expect(await readdir(dir)).toEqual([]);
});

it.each([
  ['', ''],
  ['whole\n', 'whole\n'],
  ['whole\nhalf', 'whole\nhalf torn\n'],
])('openForAppending ends a line that a crash tore, and changes nothing else: %j', async (before, after) => {
  await writeFile(path, before);
  const file = await openForAppending(path);
  await file.write('next\n');
  await file.close();
  expect(await readFile(path, 'utf8')).toBe(`${after}next\n`);
});

it('setAside gives the present file the next number', async () => {
  await writeFile(`${path}.9`, 'old');
  await writeFile(path, 'full');
  await setAside(path);
  expect(await readFile(`${path}.10`, 'utf8')).toBe('full');
  expect(await names()).toEqual(['1.journal.9', '1.journal.10']);
});

describe('readLines', () => {
  it('reads the file that was listed, also where it was set aside since, and no other of its name', async () => {
    await writeFile(path, 'listed\n');
    const [listed] = await listFiles(path);
    if (listed === undefined) throw new Error('not listed');
    const textsOf = async (): Promise<string[]> => {
      const texts: string[] = [];
      for await (const { text } of readLines(listed, 0)) texts.push(text);
      return texts;
    };
    await setAside(path);
    expect(await textsOf()).toEqual(['listed']);
    await createFile(path, 'next\n');
    expect(await textsOf()).toEqual(['listed']);
    await rm(`${path}.1`);
    await expect(textsOf()).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('gives whole lines with the place behind each, from an offset on', async () => {
    await writeFile(path, 'one\n\nzwei ü\ntorn');
    expect(await linesOf()).toEqual([
      { text: 'one', end: 4 },
      { text: '', end: 5 },
      { text: 'zwei ü', end: 13 },
    ]);
    expect(await linesOf(4)).toEqual([
      { text: '', end: 5 },
      { text: 'zwei ü', end: 13 },
    ]);
    expect(await linesOf(13)).toEqual([]);
    expect(await linesOf(99)).toEqual([]);
  });

  it('gives lines whole that are longer than what is read at a time, or end right there', async () => {
    const lines = [65_535, 65_536, 1, 200_000, 65_534].map((length, index) => String(index).repeat(length));
    await writeFile(path, lines.map((line) => `${line}\n`).join(''));
    expect((await linesOf()).map(({ text }) => text)).toEqual(lines);
  });
});

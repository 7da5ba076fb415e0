import { beforeEach, describe, expect, it } from '@jest/globals';
import { FileSendJournal } from '../../src/journal/file-send-journal.js';
import {
  createFile,
  setAside,
  journalPath,
  listFiles,
  makeFolder,
  openForAppending,
  readLines,
  refuseLink,
} from '../../src/journal/journal-files.js';
import { JournalReader, readJournal } from '../../src/journal/journal-reader.js';
import { toChainedLines } from '../../src/journal/line-chain.js';
import { verifyJournal } from '../../src/control/audit/verify-journal.js';
import {
  age,
  aSend,
  files,
  folder,
  HEADER,
  lastHash,
  LEDGER,
  itemsOf,
  sendsIn,
  useFolder,
} from './support/journal-folder.js';
import { mkdir, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

useFolder();

const names = (file: string) => Array.from({ length: 16 }, (_, index) => `${file}-${index + 1}`);
const ONE_FILE = ['1.journal', '1.journal.1'];
const TWO_FILES = [...ONE_FILE, '1.journal.2'];

const knownIn = (journal: FileSendJournal, payoutIds: readonly string[]) =>
  payoutIds.filter((payoutId) => journal.knows(payoutId, 1));

it('a journal works on where a full file was set aside and no next one made', async () => {
  await folder.writeFull('a', 1);
  const journal = await folder.open();
  expect(await folder.lines()).toEqual([HEADER, { ledgerId: 'ledger', epoch: 3, sends: 16, token: 't-16' }]);
  expect(journal.knows('a-16', 1)).toBe(true);
  await journal.append(aSend('p', 17));
  expect(journal.ledger).toMatchObject({ sends: 17, token: 't-17' });
});

describe('another process', () => {
  const theirs = aSend('x', 17, { token: 'theirs' });
  let one: FileSendJournal;
  let other: FileSendJournal;
  beforeEach(async () => {
    await folder.writeFull('a');
    one = await folder.open();
    other = await folder.open();
  });

  it('that stands by across two new files knows all sends, and writes on in the newest', async () => {
    await one.append(aSend('p', 17));
    expect(await other.changedByOthers()).toBe(true);
    await folder.fillUp();
    await one.reload();
    await one.append(aSend('b', 18));
    await one.append(aSend('q', 19));
    expect(await files()).toEqual(TWO_FILES);

    await other.reload();
    expect(await other.changedByOthers()).toBe(false);
    expect(knownIn(other, ['b', 'q'])).toEqual(['b', 'q']);
    const all = [...names('a'), 'p', 'b', 'q'];
    expect(other.lastSends(99).map(({ payoutId }) => payoutId)).toEqual(all);
    expect(other.ledger).toEqual(one.ledger);
    await other.append(aSend('r', 20));
    expect(await other.changedByOthers()).toBe(false);
    expect((await folder.lines()).at(-1)).toEqual(aSend('r', 20));
    await one.reload();
    expect(one.knows('r', 1)).toBe(true);

    // Every file is kept, and who opens the journal reads the last two.
    expect(await sendsIn(one)).toEqual([...all, 'r']);
    expect(knownIn(await folder.open(), ['a-16', 'p', 'b', 'q'])).toEqual(['b', 'q']);
    const read = await readJournal(folder.dir, 1);
    expect(read?.lastSends(2).map(({ payoutId }) => payoutId)).toEqual(['q', 'r']);
    expect(await sendsIn(read)).toEqual([...all, 'r']);
  });

  it('that has not heard of a new file adds to the old one, is told, and begins no further one', async () => {
    await one.append(aSend('p', 17));
    await other.append(theirs);
    expect(await files()).toEqual(ONE_FILE);
    expect((await folder.lines(1)).slice(-2)).toEqual([aSend('p', 17), theirs]);
    expect(await other.changedByOthers()).toBe(true);
    await other.reload();
    expect(await other.changedByOthers()).toBe(false);
    expect(knownIn(other, ['a-1', 'p', 'x'])).toEqual(['a-1', 'p', 'x']);
  });

  it('is told of what was added to a full file before it began the next itself', async () => {
    await folder.addLines([theirs]);
    await one.append(aSend('p', 17));
    expect(await files()).toEqual(ONE_FILE);
    expect([one.knows('x', 1), await one.changedByOthers()]).toEqual([true, true]);
    await one.reload();
    expect(await one.changedByOthers()).toBe(false);
  });
});

async function writeOld(...days: number[]) {
  for (const [index, each] of days.entries()) {
    await folder.write([HEADER, LEDGER, aSend(`p-${index + 1}`, index + 1)], index + 1);
    await age(index + 1, each);
  }
  await folder.write([HEADER, LEDGER]);
}

it.each([
  ['but for the newest of them', [40, 31, 29], 30, [3]],
  ['but for the newest of them, however short they are kept', [40, 31, 29], 1, [3]],
  ['and none where nothing is said', [4_000, 3_000], undefined, [1, 2]],
  ['from the oldest on: none is missing between two', [40, 1, 40, 1], 30, [2, 3, 4]],
])('full files are removed when they are older than they are to be kept, %s', async (_, days, keepDays, left) => {
  await writeOld(...days);
  await folder.open(keepDays === undefined ? {} : { keepDays });
  expect(await files()).toEqual(['1.journal', ...left.map((number) => `1.journal.${number}`)]);
});

it('full files are removed by a process that runs on, when the next file is full', async () => {
  await writeOld(29, 29);
  await folder.writeFull('a');
  const journal = await folder.open({ keepDays: 30 });
  await age(1, 31);
  await journal.append(aSend('p', 17));
  expect(await files()).toEqual(['1.journal', '1.journal.2', '1.journal.3']);
});

it('full files count on from the highest number, though the lowest are gone', async () => {
  await folder.write([HEADER, LEDGER], 9);
  await folder.write([HEADER, LEDGER], 10);
  await folder.writeFull('a');
  await (await folder.open()).append(aSend('p', 17));
  expect(await files()).toEqual(['1.journal', '1.journal.10', '1.journal.11', '1.journal.9']);
});

describe('while another process begins new files as fast as it can', () => {
  const ROTATIONS = 30;
  let sends: number;
  beforeEach(async () => folder.write([HEADER, LEDGER, aSend('p', (sends = 1))]));

  /** Reads until the last file was begun, and once more. */
  async function readBeside(read: () => Promise<void>) {
    const progress = { isOver: false };
    const rotating = (async () => {
      for (let count = 0; count < ROTATIONS; count += 1) {
        const prev = lastHash(await folder.text());
        await setAside(folder.path());
        await createFile(folder.path(), toChainedLines([HEADER, LEDGER, aSend('p', sends + 1)], prev));
        sends += 1;
      }
    })().finally(() => (progress.isOver = true));
    while (!progress.isOver) await read();
    await rotating;
    await read();
  }

  it('a journal that is opened or read on is never taken for damaged, and no line is left out', async () => {
    const reader = new JournalReader(folder.path());
    await readBeside(async () => {
      const before = sends;
      await reader.catchUp();
      const read = await readJournal(folder.dir, 1);
      for (const last of [reader.view.lastSends(1), read?.lastSends(1)]) {
        expect(last?.[0]?.sends).toBeGreaterThanOrEqual(before - 1);
      }
    });
    const numbers = Array.from({ length: ROTATIONS + 1 }, (_, index) => index + 1);
    expect(reader.view.lastSends(Infinity).map((send) => send.sends)).toEqual(numbers);
  });

  it('an audit finds nothing missing, and every send is read once', async () => {
    await readBeside(async () => {
      expect((await verifyJournal(folder.dir, 1))?.faults).toEqual([]);
      const items = await itemsOf(await readJournal(folder.dir, 1));
      const read = items.flatMap((item) => ('sends' in item && 'payoutId' in item ? [item.sends] : []));
      expect(read).toEqual(read.map((_, index) => index + 1));
    });
  });
});

describe('files', () => {
  const modeOf = async (name: string) => ((await stat(name)).mode & 0o777).toString(8);

  async function linesOf(offset = 0, file?: { path: string; inode: number }): Promise<{ text: string; end: number }[]> {
    const lines: { text: string; end: number }[] = [];
    for await (const line of readLines(file ?? { path, inode: (await stat(path)).ino }, offset)) lines.push(line);
    return lines;
  }

  let dir: string;
  let path: string;
  beforeEach(() => {
    ({ dir } = folder);
    path = folder.path();
  });

  it('and folders are for the worker alone, whatever its umask lets others do', async () => {
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

  it.each(['link', 'link/a/journal'])('are in no folder that is, or is behind, a link to nothing: %s', async (name) => {
    await symlink(join(dir, 'nowhere'), join(dir, 'link'));
    await expect(makeFolder(join(dir, name))).rejects.toThrow(`${join(dir, 'link')} is a symbolic link to nothing`);
    expect(await readdir(dir)).toEqual(['link']);
  });

  it('may be no link to a file: it would be replaced, and the file forgotten', async () => {
    const target = join(dir, 'elsewhere');
    await writeFile(target, '');
    await symlink(target, path);
    const message = `The send journal ${path} is a symbolic link. Link its folder instead`;
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

  it('listFiles gives the former ones by number, the present one last, and no other', async () => {
    for (const suffix of ['', '.2', '.10', '.1', '.1.gz', '.bak', '.abc.new', '.']) await writeFile(path + suffix, '');
    await writeFile(journalPath(dir, 11), '');
    const listed = (await listFiles(path)).map((file) => file.path.slice(dir.length + 1));
    expect(listed).toEqual(['1.journal.1', '1.journal.2', '1.journal.10', '1.journal']);
  });

  it('createFile makes one once, whole, however many try, and leaves nothing else', async () => {
    const made = await Promise.all(Array.from({ length: 20 }, async (_, index) => createFile(path, `by ${index}\n`)));
    expect(made.filter(Boolean)).toHaveLength(1);
    expect(await folder.text()).toBe(`by ${made.indexOf(true)}\n`);
    expect(await readdir(dir)).toEqual(['1.journal']);
  });

  it('readLines reads the file that was listed, also set aside, and no other of its name', async () => {
    await writeFile(path, 'listed\n');
    const [listed] = await listFiles(path);
    if (listed === undefined) throw new Error('not listed');
    const textsOf = async () => (await linesOf(0, listed)).map(({ text }) => text);
    await setAside(path);
    expect(await textsOf()).toEqual(['listed']);
    await createFile(path, 'next\n');
    expect(await textsOf()).toEqual(['listed']);
    await rm(`${path}.1`);
    await expect(textsOf()).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('readLines gives whole lines with the place behind each, from an offset on', async () => {
    await writeFile(path, 'one\n\nzwei ü\ntorn');
    const rest = [
      { text: '', end: 5 },
      { text: 'zwei ü', end: 13 },
    ];
    expect(await linesOf()).toEqual([{ text: 'one', end: 4 }, ...rest]);
    expect([await linesOf(4), await linesOf(13), await linesOf(99)]).toEqual([rest, [], []]);
  });

  it('readLines gives whole lines longer than what is read at a time, or that end there', async () => {
    const lines = [65_535, 65_536, 1, 200_000, 65_534].map((length, index) => String(index).repeat(length));
    await writeFile(path, lines.map((line) => `${line}\n`).join(''));
    expect((await linesOf()).map(({ text }) => text)).toEqual(lines);
  });
});

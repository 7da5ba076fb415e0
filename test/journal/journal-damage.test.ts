import { cp, readdir, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { FileSendJournal } from '../../src/journal/file-send-journal.js';
import { JournalDamagedError } from '../../src/journal/send-journal.js';
import { verifyJournal } from '../../src/control/audit/verify-journal.js';
import { aSend, HEADER, LEDGER, makeJournalFolder, toFileText, type JournalFolder } from './support/journal-folder.js';

let folder: JournalFolder;
let journal: FileSendJournal;
let saved: string;

beforeEach(async () => {
  folder = await makeJournalFolder();
  journal = await folder.open();
  await journal.bind(LEDGER);
  await journal.append(aSend('p', 1));
  await journal.append(aSend('q', 2));
  saved = `${folder.dir}-saved`;
  await cp(folder.dir, saved, { recursive: true });
});
afterEach(async () => {
  await rm(saved, { recursive: true, force: true });
  await folder.close();
});

const DAMAGES: [string, () => Promise<void>, RegExp][] = [
  ['deleted', async () => rm(folder.path()), /was deleted/],
  ['deleted with its folder', async () => rm(folder.dir, { recursive: true }), /was deleted/],
  ['renamed', async () => rename(folder.path(), `${folder.path()}.bak`), /was deleted/],
  ['cut off in its middle', async () => truncate(folder.path(), (await folder.text()).length - 20), /was cut off/],
  ['emptied', async () => truncate(folder.path(), 0), /was cut off/],
  [
    'replaced by an older copy',
    async () => {
      await writeFile(`${folder.path()}.copy`, `${(await folder.texts()).slice(0, -1).join('\n')}\n`);
      await rename(`${folder.path()}.copy`, folder.path());
    },
    /was replaced by another file/,
  ],
  [
    'replaced by a new journal',
    async () => {
      await writeFile(`${folder.path()}.copy`, toFileText([HEADER]));
      await rename(`${folder.path()}.copy`, folder.path());
    },
    /was replaced by another file/,
  ],
];

/** As an operator does it. */
async function putBack(): Promise<void> {
  await rm(folder.dir, { recursive: true, force: true });
  await cp(saved, folder.dir, { recursive: true });
}

describe('a journal that was damaged while a process had it open', () => {
  it.each(DAMAGES)(
    'because it was %s: is noticed before anything is sent, and never made again',
    async (_, damage, what) => {
      await damage();
      const left = await readdir(folder.dir).catch(() => []);
      expect(await journal.changedByOthers()).toBe(true);
      for (const look of [async () => journal.reload(), async () => journal.ensureWritable()]) {
        await expect(look()).rejects.toThrow(JournalDamagedError);
        await expect(look()).rejects.toThrow(what);
      }
      await expect(journal.append(aSend('r', 3))).rejects.toThrow(JournalDamagedError);
      expect(await readdir(folder.dir).catch(() => [])).toEqual(left);
      // What it knows, it still knows.
      expect([journal.knows('p', 1), journal.knows('q', 1)]).toEqual([true, true]);
      expect(journal.ledger).toMatchObject({ sends: 2 });
    },
  );

  it.each(DAMAGES)('because it was %s: is whole again once it was put back', async (_, damage) => {
    await damage();
    await expect(journal.reload()).rejects.toThrow(JournalDamagedError);
    await putBack();
    await journal.reload();
    expect(await journal.changedByOthers()).toBe(false);
    await journal.append(aSend('r', 3));
    expect((await folder.lines()).at(-1)).toEqual(aSend('r', 3));
    expect(journal.ledger).toMatchObject({ sends: 3 });
  });

  it('is noticed after a write, too, where nobody looked before', async () => {
    await truncate(folder.path(), 10);
    await journal.append(aSend('r', 3));
    expect(await journal.changedByOthers()).toBe(true);
    await expect(journal.reload()).rejects.toThrow(JournalDamagedError);
  });

  it('is not one that was replaced by a copy of itself, as a restored disk does it', async () => {
    await putBack();
    expect(await journal.changedByOthers()).toBe(true);
    await journal.reload();
    expect(await journal.changedByOthers()).toBe(false);
    expect(journal.lastSends(9).map(({ payoutId }) => payoutId)).toEqual(['p', 'q']);
  });
});

describe('a full file that was deleted while nobody had the journal open', () => {
  it.each([
    [2, '1.journal.3:1'],
    [4, '1.journal:1'],
  ])('is missed by the next one, unless it was the oldest: number %d', async (number, place) => {
    await journal.close();
    await folder.write([HEADER, LEDGER, aSend('p', 1)], 1);
    for (const next of [2, 3, 4]) await folder.write([HEADER, LEDGER, aSend(`p-${next}`, next)], next);
    await folder.write([HEADER, LEDGER, aSend('q', 5)]);
    await (await folder.open()).close();
    await rm(folder.path(number));
    await expect(folder.open()).rejects.toThrow(JournalDamagedError);
    await expect(folder.open()).rejects.toThrow(`${place}: a line that it follows is not there`);
    const faults = (await verifyJournal(folder.dir, 1))?.faults;
    expect(faults?.map(({ file, line }) => `${file.slice(folder.dir.length + 1)}:${line}`)).toEqual([place]);
  });
});

describe('a journal that was deleted while nobody had it open', () => {
  it('is made again, with another id: the ledger shows that it lacks what it had', async () => {
    const { journalId } = journal;
    await journal.close();
    await rm(folder.path());
    expect((await folder.open()).journalId).not.toBe(journalId);
  });
});

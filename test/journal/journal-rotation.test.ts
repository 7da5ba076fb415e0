import { readdir, utimes } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { FileSendJournal } from '../../src/journal/file-send-journal.js';
import { readJournal } from '../../src/journal/journal-reader.js';
import type { JournalItem } from '../../src/journal/journal-line.js';
import {
  aSend,
  fullFile,
  HEADER,
  LEDGER,
  longSends,
  makeJournalFolder,
  type JournalFolder,
} from './support/journal-folder.js';

const DAY_MS = 24 * 60 * 60 * 1_000;

let folder: JournalFolder;
beforeEach(async () => {
  folder = await makeJournalFolder();
});
afterEach(async () => folder.close());

const files = async (): Promise<string[]> => (await readdir(folder.dir)).sort();
const sendsIn = async (journal: Pick<FileSendJournal, 'items'>): Promise<string[]> => {
  const payoutIds: string[] = [];
  for await (const item of journal.items()) if (isSend(item)) payoutIds.push(item.payoutId);
  return payoutIds;
};
const names = (file: string): string[] => Array.from({ length: 16 }, (_, index) => `${file}-${index + 1}`);
const isSend = (item: JournalItem): item is Extract<JournalItem, { payoutId: string }> => 'payoutId' in item;

/** Appends as many sends as fill a file. */
const fill = async (journal: FileSendJournal, name: string, first: number): Promise<void> => {
  for (const send of longSends(name, first)) await journal.append(send);
};
const knownIn = (journal: FileSendJournal, payoutIds: readonly string[]): string[] =>
  payoutIds.filter((payoutId) => journal.knows(payoutId, 1));

describe('a journal that has grown to 16 MiB', () => {
  it('begins a new file, which names the journal and its ledger, and knows what was sent before', async () => {
    await folder.write(fullFile('a'));
    const journal = await folder.open();
    expect(await files()).toEqual(['1.journal']);
    await journal.append(aSend('p', 17));
    expect(await files()).toEqual(['1.journal', '1.journal.1']);
    const ledger = { ledgerId: 'ledger', epoch: 3, sends: 17, token: 't-17' };
    expect(await folder.lines()).toEqual([HEADER, ledger]);
    expect(journal.ledger).toEqual(ledger);
    expect(knownIn(journal, ['a-1', 'a-16', 'p'])).toEqual(['a-1', 'a-16', 'p']);
    expect(await journal.changedByOthers()).toBe(false);
    await journal.append(aSend('q', 18));
    journal.noteOutcome(aSend('p', 17), { kind: 'not_sent', reason: 'refused' }, 5);
    await journal.close();

    const again = await folder.open();
    expect(again.ledger).toMatchObject({ sends: 18, token: 't-18' });
    expect(knownIn(again, ['a-1', 'a-16', 'p', 'q'])).toEqual(['a-1', 'a-16', 'q']);
    expect(again.lastSends(2).map(({ payoutId, outcome }) => [payoutId, outcome?.kind])).toEqual([
      ['p', 'not_sent'],
      ['q', undefined],
    ]);
  });

  it('keeps every file, the oldest with the lowest number, and reads the last two when it is opened', async () => {
    await folder.write(fullFile('a'));
    const journal = await folder.open();
    await journal.append(aSend('p', 17));
    await fill(journal, 'b', 18);
    await journal.append(aSend('q', 34));
    expect(await files()).toEqual(['1.journal', '1.journal.1', '1.journal.2']);
    const all = [...names('a'), 'p', ...names('b'), 'q'];
    expect(await sendsIn(journal)).toEqual(all);
    const again = await folder.open();
    expect(knownIn(again, ['a-16', 'p', 'b-1', 'b-16', 'q'])).toEqual(['b-1', 'b-16', 'q']);
    const read = await readJournal(folder.dir, 1);
    expect(read?.lastSends(2).map(({ payoutId }) => payoutId)).toEqual(['b-16', 'q']);
    expect(read && (await sendsIn(read))).toEqual(all);
  });

  it('works on where a process ended between setting the full file aside and making the next one', async () => {
    await folder.write(fullFile('a'), 1);
    const journal = await folder.open();
    expect(await folder.lines()).toEqual([HEADER, { ledgerId: 'ledger', epoch: 3, sends: 16, token: 't-16' }]);
    expect(journal.knows('a-16', 1)).toBe(true);
    await journal.append(aSend('p', 17));
    expect(journal.ledger).toMatchObject({ sends: 17, token: 't-17' });
  });
});

describe('another process', () => {
  const theirs = aSend('x', 17, { token: 'theirs' });
  let one: FileSendJournal;
  let other: FileSendJournal;
  beforeEach(async () => {
    await folder.write(fullFile('a'));
    one = await folder.open();
    other = await folder.open();
  });

  it('that stands by across one new file, or two, knows all that was sent and writes on in the newest', async () => {
    await one.append(aSend('p', 17));
    expect(await other.changedByOthers()).toBe(true);
    await fill(one, 'b', 18);
    await one.append(aSend('q', 34));
    expect(await files()).toEqual(['1.journal', '1.journal.1', '1.journal.2']);

    await other.reload();
    expect(await other.changedByOthers()).toBe(false);
    expect(knownIn(other, ['b-1', 'b-16', 'q'])).toEqual(['b-1', 'b-16', 'q']);
    expect(other.lastSends(99).map(({ payoutId }) => payoutId)).toEqual([...names('a'), 'p', ...names('b'), 'q']);
    expect(other.ledger).toEqual(one.ledger);
    await other.append(aSend('r', 35));
    expect(await other.changedByOthers()).toBe(false);
    expect((await folder.lines()).at(-1)).toEqual(aSend('r', 35));
    await one.reload();
    expect(one.knows('r', 1)).toBe(true);
  });

  it('that has not heard of the new file adds to the old one, is told, and begins no further file', async () => {
    await one.append(aSend('p', 17));
    await other.append(theirs);
    expect(await files()).toEqual(['1.journal', '1.journal.1']);
    expect((await folder.lines(1)).slice(-2)).toEqual([aSend('p', 17), theirs]);
    expect(await other.changedByOthers()).toBe(true);
    await other.reload();
    expect(await other.changedByOthers()).toBe(false);
    expect(knownIn(other, ['a-1', 'p', 'x'])).toEqual(['a-1', 'p', 'x']);
  });

  it('is told of what was added to the full file before it began the new one itself', async () => {
    await folder.addLines([theirs]);
    await one.append(aSend('p', 17));
    expect(await files()).toEqual(['1.journal', '1.journal.1']);
    expect(one.knows('x', 1)).toBe(true);
    expect(await one.changedByOthers()).toBe(true);
    await one.reload();
    expect(await one.changedByOthers()).toBe(false);
  });
});

describe('files that were full', () => {
  const ages = async (...days: number[]): Promise<void> => {
    for (const [index, age] of days.entries()) {
      const number = index + 1;
      await folder.write([HEADER, LEDGER, aSend(`p-${number}`, number)], number);
      const at = new Date(Date.now() - age * DAY_MS);
      await utimes(folder.path(number), at, at);
    }
    await folder.write([HEADER, LEDGER]);
  };

  it('are removed when they are older than they are to be kept, but for the newest of them', async () => {
    await ages(40, 31, 29);
    await folder.open({ keepDays: 30 });
    expect(await files()).toEqual(['1.journal', '1.journal.3']);
    await folder.open({ keepDays: 1 });
    expect(await files()).toEqual(['1.journal', '1.journal.3']);
  });

  it('are all kept where nothing is said', async () => {
    await ages(4_000, 3_000);
    await folder.open();
    expect(await files()).toEqual(['1.journal', '1.journal.1', '1.journal.2']);
  });

  it('are removed from the oldest on: none is missing between two', async () => {
    await ages(40, 1, 40, 1);
    await folder.open({ keepDays: 30 });
    expect(await files()).toEqual(['1.journal', '1.journal.2', '1.journal.3', '1.journal.4']);
  });

  it('are removed by a process that runs on, when the next file is full', async () => {
    await ages(29, 29);
    await folder.write(fullFile('a'));
    const journal = await folder.open({ keepDays: 30 });
    const old = new Date(Date.now() - 31 * DAY_MS);
    await utimes(folder.path(1), old, old);
    await journal.append(aSend('p', 17));
    expect(await files()).toEqual(['1.journal', '1.journal.2', '1.journal.3']);
  });

  it('count on from the highest number, though the lowest are gone', async () => {
    await folder.write([HEADER, LEDGER], 9);
    await folder.write([HEADER, LEDGER], 10);
    await folder.write(fullFile('a'));
    await (await folder.open()).append(aSend('p', 17));
    expect(await files()).toEqual(['1.journal', '1.journal.10', '1.journal.11', '1.journal.9']);
  });
});

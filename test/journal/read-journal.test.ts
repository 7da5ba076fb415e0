import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readdir } from 'node:fs/promises';
import type { FileSendJournal } from '../../src/journal/file-send-journal.js';
import type { JournalItem } from '../../src/journal/journal-line.js';
import { readJournal, type StoredJournal } from '../../src/journal/journal-reader.js';
import { aSend, HEADER, LEDGER, makeJournalFolder, outcomeOf, type JournalFolder } from './support/journal-folder.js';

let folder: JournalFolder;
beforeEach(async () => {
  folder = await makeJournalFolder();
});
afterEach(async () => folder.close());

const open = async (): Promise<FileSendJournal> => folder.open();
const read = async () => readJournal(folder.dir, 1);
const PEER = { journalId: 'j-two', host: 'host-2', dir: '/journal' };

async function itemsOf(journal: Pick<StoredJournal, 'items'>): Promise<JournalItem[]> {
  const items: JournalItem[] = [];
  for await (const item of journal.items()) items.push(item);
  return items;
}

describe('reading only', () => {
  it('finds none where there is no journal, and makes nothing', async () => {
    expect(await read()).toBeUndefined();
    expect(await readdir(folder.dir)).toEqual([]);
    expect(await readJournal(`${folder.dir}/missing`, 1)).toBeUndefined();
  });

  it('leaves a torn last line as it is', async () => {
    await folder.write([HEADER, LEDGER, aSend('p', 1)]);
    await folder.add('{"payoutId"');
    const before = await folder.text();
    const journal = await read();
    expect(journal?.lastSends(9)).toEqual([aSend('p', 1)]);
    expect(journal?.journalId).toBe('abcdef012345');
    expect(await folder.text()).toBe(before);
  });

  it('finds sends also where the line with the ledger is missing', async () => {
    await folder.write([HEADER, aSend('p', 1)]);
    const journal = await read();
    expect({ ledger: journal?.ledger, sends: journal?.lastSends(9) }).toEqual({
      ledger: undefined,
      sends: [aSend('p', 1)],
    });
  });
});

describe('the items of a journal', () => {
  it('are what stands in all of its files, the oldest first, each send with its outcome', async () => {
    const [p, q, r] = [aSend('p', 1), aSend('q', 2), aSend('r', 4)];
    const adopted = { ...LEDGER, sends: 3, token: 'adoption', adopted: true };
    await folder.write([HEADER, LEDGER, p, { peers: [PEER] }, outcomeOf(p, 'not_sent'), q], 1);
    await folder.write([HEADER, LEDGER, outcomeOf(q, 'accepted'), adopted, r]);
    const journal = await open();
    expect(await itemsOf(journal)).toEqual([
      LEDGER,
      { ...p, outcome: { kind: 'not_sent', reason: 'the connection ended' }, outcomeAt: 1_900_000_000_500 },
      { peers: [PEER] },
      { ...q, outcome: { kind: 'accepted', txhash: 'h-q' }, outcomeAt: 1_900_000_000_500 },
      LEDGER,
      adopted,
      r,
    ]);
  });

  it('are given a few at a time: an outcome that stands hundreds of sends behind its own is not waited for', async () => {
    const sends = Array.from({ length: 300 }, (_, index) => aSend(`p-${index}`, index + 1));
    const [first, second, ...others] = sends;
    if (first === undefined || second === undefined) throw new Error('there are 300');
    const near = others.slice(0, 150);
    const far = others.slice(150);
    await folder.write([
      HEADER,
      first,
      second,
      ...near,
      outcomeOf(second, 'accepted'),
      ...far,
      outcomeOf(first, 'accepted'),
    ]);
    const items = (await itemsOf(await open())) as readonly { payoutId: string; outcome?: unknown }[];
    expect(items.map(({ payoutId }) => payoutId)).toEqual(sends.map(({ payoutId }) => payoutId));
    expect(items.filter(({ outcome }) => outcome !== undefined).map(({ payoutId }) => payoutId)).toEqual(['p-1']);
  });

  it('say where a line makes no sense, also in a file that nothing else reads', async () => {
    await folder.write([{ v: 2, journalId: 'abcdef012345' }, LEDGER, { payoutId: 'p' }], 1);
    await folder.write([HEADER, LEDGER], 2);
    await folder.write([HEADER, LEDGER]);
    await expect(itemsOf(await open())).rejects.toThrow(/cannot be read at .*1\.journal\.1:3/);
  });
});

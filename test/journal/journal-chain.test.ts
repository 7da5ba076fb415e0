import { cp, readdir, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { FileSendJournal } from '../../src/journal/file-send-journal.js';
import { hashLine, toChainedText } from '../../src/journal/line-chain.js';
import { readJournal } from '../../src/journal/journal-reader.js';
import { JournalDamagedError } from '../../src/journal/send-journal.js';
import { verifyJournal, type JournalReport } from '../../src/control/audit/verify-journal.js';
import {
  aSend,
  folder,
  HEADER,
  itemsOf,
  lastHash,
  LEDGER,
  outcomeOf,
  toFileText,
  toText,
  useFolder,
} from './support/journal-folder.js';

useFolder();

async function verify(head?: string): Promise<JournalReport> {
  const report = await verifyJournal(folder.dir, 1, head);
  if (report === undefined) throw new Error('there is a journal');
  return report;
}
const faultsIn = async () =>
  (await verify()).faults.map(({ file, line, message }) => `${file.slice(folder.dir.length + 1)}:${line} ${message}`);
const put = async (texts: readonly string[], number?: number): Promise<void> =>
  writeFile(folder.path(number), texts.map((text) => `${text}\n`).join(''));
/** What the line at this place names. */
const prevOf = async (index: number, number?: number): Promise<unknown> =>
  (JSON.parse((await folder.texts(number)).at(index) ?? '') as { prev: unknown }).prev;

async function readEverything(): Promise<unknown> {
  const journal = await readJournal(folder.dir, 1);
  return { ...journal, items: await itemsOf(journal), lastSends: journal?.lastSends(99) };
}

/** A journal of seven lines: header, ledger, three sends and two outcomes. */
async function writeSome() {
  const journal = await folder.bound();
  for (const [index, payoutId] of ['p', 'q', 'r'].entries()) {
    await journal.append(aSend(payoutId, index + 1));
    if (payoutId !== 'r') journal.noteOutcome(aSend(payoutId, index + 1), { kind: 'accepted', gatewayId: payoutId }, 5);
  }
  await journal.close();
  return folder.texts();
}

it('each line names the one before it by its SHA-256; the first one names none', async () => {
  const texts = await writeSome();
  const named = await Promise.all(texts.map(async (_, index) => prevOf(index)));
  expect(named).toEqual([[], ...texts.slice(0, -1).map(hashLine)]);
  const head = hashLine(texts.at(-1) ?? '');
  expect(await verify()).toMatchObject({ lines: 7, sends: 3, files: 1, faults: [], head });
  // The last whole line, where a crash tore one.
  await folder.add('{"payoutId":"s"');
  await (await folder.open()).append(aSend('s', 4));
  expect(await prevOf(-1)).toBe(hashLine(texts.at(-1) ?? ''));
  expect(await faultsIn()).toEqual([]);
  expect((await folder.open()).knows('s', 1)).toBe(true);
});

const MISSING = 'a line that it follows is not there: lines before it were changed, removed or moved';
const FORGED = outcomeOf(aSend('p', 1), 'not_sent');

it.each<[string, (texts: string[]) => string[], number]>([
  ['changed', (texts) => texts.with(2, (texts[2] ?? '').replace('wallet-1', 'wallet-2')), 4],
  ['removed', (texts) => texts.toSpliced(3, 1), 4],
  ['moved', (texts) => [...texts.slice(0, 3), texts[4] ?? '', texts[3] ?? '', ...texts.slice(5)], 4],
  ['put in, naming none', (texts) => texts.toSpliced(3, 0, JSON.stringify(FORGED)), 4],
  ['put in, naming a missing one', (texts) => texts.toSpliced(3, 0, toChainedText(FORGED, ['0'.repeat(64)])), 4],
  ['turned into a torn one', (texts) => texts.with(3, `${texts[3] ?? ''} torn`), 5],
  ['removed, which was the header', (texts) => texts.slice(1), 1],
])('a line that was %s is found, and nothing is sent', async (_, alter, line) => {
  await put(alter(await writeSome()));
  expect((await faultsIn())[0]).toMatch(new RegExp(`^1\\.journal:${line} `));
  await expect(folder.open()).rejects.toThrow(JournalDamagedError);
  await expect(folder.open()).rejects.toThrow(`1.journal:${line}: `);
  await expect(readJournal(folder.dir, 1)).rejects.toThrow(/was altered at .*Put the files back as they were/);
});

it('an altered line is found by a process that has the journal open', async () => {
  const journal = await folder.bound();
  await folder.add(toText([aSend('p', 1)]));
  await expect(journal.reload()).rejects.toThrow(/1\.journal:3: it does not name the line before it/);
  await expect(journal.append(aSend('q', 2))).rejects.toThrow(JournalDamagedError);
});

it('a line that is a copy, or that nobody read, is shown by the audit', async () => {
  const texts = await writeSome();
  await put([...texts, texts[2] ?? '']);
  expect(await faultsIn()).toEqual(['1.journal:8 it is a copy of an earlier line']);
  await put(texts);
  await folder.addLines(Array.from({ length: 107 }, (_, index) => aSend(`s-${index}`, index + 4)));
  const all = await folder.texts();
  await put(all.toSpliced(3, 0, toChainedText(FORGED, [hashLine(all[2] ?? '')])));
  expect(await faultsIn()).toEqual(['1.journal:4 no later line follows it: it was put in between']);
});

it('an end that was cut off shows by the head alone; any altered byte is found, or changes nothing', async () => {
  const texts = await writeSome();
  const { head = '' } = await verify();
  expect((await verify(head)).found).toEqual({ file: folder.path(), line: 7 });
  await put(texts.slice(0, -1));
  expect(await verify(head)).toMatchObject({ found: undefined, faults: [] });
  await put(texts);
  const before = Buffer.from(await folder.text());
  const read = await readEverything();
  const property = async (index: number, change: number): Promise<void> => {
    const bytes = Buffer.from(before);
    bytes.writeUInt8((bytes[index] ?? 0) ^ change, index);
    await writeFile(folder.path(), bytes);
    const isFound = await verify(head).then(
      ({ faults, found }) => faults.length > 0 || found === undefined,
      () => true,
    );
    if (!isFound) expect(await readEverything()).toEqual(read);
  };
  const byte = fc.integer({ min: 1, max: 255 });
  await fc.assert(fc.asyncProperty(fc.nat(before.length - 1), byte, property), { numRuns: 400 });
});

describe('processes that write at the same time', () => {
  it('fork the chain, and the next who read both names both', async () => {
    const one = await folder.bound();
    const other = await folder.open();
    await one.append(aSend('p', 1));
    await other.append(aSend('q', 2));
    const texts = await folder.texts();
    expect(await prevOf(-1)).toBe(await prevOf(-2));
    expect(await faultsIn()).toEqual([]);
    await one.reload();
    await one.append(aSend('r', 3));
    expect(await prevOf(-1)).toEqual(texts.slice(-2).map(hashLine));
    await other.reload();
    await other.append(aSend('s', 4));
    expect(await prevOf(-1)).toBe(hashLine((await folder.texts()).at(-2) ?? ''));
    expect(await faultsIn()).toEqual([]);
    expect((await folder.open()).lastSends(9)).toHaveLength(4);
  });

  it('are followed also where one was stopped for thousands of lines', async () => {
    const one = await folder.bound();
    await one.append(aSend('late', 1));
    const stopped = await folder.open();
    await folder.addLines(Array.from({ length: 2_499 }, (_, index) => aSend(`p-${index + 2}`, index + 2)));
    await one.reload();
    stopped.noteOutcome(aSend('late', 1), { kind: 'accepted', gatewayId: 'h' }, 5);
    await stopped.close();
    await one.reload();
    expect(one.knows('p-2500', 1)).toBe(true);
    await one.append(aSend('q', 2_501));
    expect(await prevOf(-1)).toHaveLength(2);
  });

  it('go on in the next file, whose header names the end of the one before; a late line harms nobody', async () => {
    await folder.writeFull('a');
    const [one, late, third] = [await folder.open(), await folder.open(), await folder.open()];
    await one.append(aSend('p', 17));
    expect(await prevOf(0)).toBe(lastHash(await folder.text(1))[0]);
    await late.append(aSend('q', 18, { token: 'late' }));
    await third.reload();
    await third.append(aSend('r', 19));
    await one.reload();
    await one.append(aSend('s', 20));
    expect(await faultsIn()).toEqual([]);
    const again = await folder.open();
    expect(['p', 'q', 'r', 's'].every((payoutId) => again.knows(payoutId, 1))).toBe(true);
  });
});

describe('the chain over several files', () => {
  beforeEach(async () => {
    for (const number of [1, 2, 3, 4]) await folder.write([HEADER, LEDGER, aSend(`p-${number}`, number)], number);
    await folder.write([HEADER, LEDGER, aSend('c', 5)]);
  });

  it('is whole, also without the oldest, and checked in files that nobody needs any more', async () => {
    expect(await faultsIn()).toEqual([]);
    const texts = await folder.texts(1);
    await rm(folder.path(1));
    expect(await faultsIn()).toEqual([]);
    await folder.open();
    await put(texts.toSpliced(1, 1), 1);
    await expect(folder.open()).rejects.toThrow(/1\.journal\.1:2: a line that it follows is not there/);
  });

  it.each([
    [2, '1.journal.3:1'],
    [4, '1.journal:1'],
  ])('is broken where number %d lost its end, or is missing', async (number, place) => {
    await put((await folder.texts(number)).slice(0, -1), number);
    expect(await faultsIn()).toEqual([`${place} ${MISSING}`]);
    await rm(folder.path(number));
    expect(await faultsIn()).toEqual([`${place} ${MISSING}`]);
    await expect(folder.open()).rejects.toThrow(JournalDamagedError);
    await expect(folder.open()).rejects.toThrow(`${place}: a line that it follows is not there`);
  });
});

describe('a journal that was damaged while a process had it open', () => {
  let journal: FileSendJournal;
  let saved: string;
  beforeEach(async () => {
    journal = await folder.bound();
    await journal.append(aSend('p', 1));
    await journal.append(aSend('q', 2));
    saved = `${folder.dir}-saved`;
    await cp(folder.dir, saved, { recursive: true });
  });
  afterEach(async () => rm(saved, { recursive: true, force: true }));

  async function replace(text: string) {
    await writeFile(`${folder.path()}.copy`, text);
    await rename(`${folder.path()}.copy`, folder.path());
  }

  async function putBack() {
    await rm(folder.dir, { recursive: true, force: true });
    await cp(saved, folder.dir, { recursive: true });
  }

  const OTHER = 'was replaced by another file';
  it.each<[string, () => Promise<void>, string]>([
    ['deleted', async () => rm(folder.path()), 'was deleted'],
    ['cut off', async () => truncate(folder.path(), (await folder.text()).length - 20), 'was cut off'],
    ['an older copy', async () => replace(`${(await folder.texts()).slice(0, -1).join('\n')}\n`), OTHER],
    ['a new journal', async () => replace(toFileText([HEADER])), OTHER],
  ])('and is now %s: is noticed before a send, never made again, and whole once put back', async (_, damage, what) => {
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

  it('is none that was replaced by a copy of itself, as a restored disk does it', async () => {
    await putBack();
    expect(await journal.changedByOthers()).toBe(true);
    await journal.reload();
    expect(await journal.changedByOthers()).toBe(false);
    expect(journal.lastSends(9).map(({ payoutId }) => payoutId)).toEqual(['p', 'q']);
  });

  it('and is deleted once nobody has it open, is made again with another id', async () => {
    const { journalId } = journal;
    await journal.close();
    await rm(folder.path());
    // The ledger shows that it lacks what it had.
    expect((await folder.open()).journalId).not.toBe(journalId);
  });
});

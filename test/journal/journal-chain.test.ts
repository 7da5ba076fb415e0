import { cp, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { JournalItem, JournalLine } from '../../src/journal/journal-line.js';
import { hashLine, toChainedText } from '../../src/journal/line-chain.js';
import { readJournal } from '../../src/journal/journal-reader.js';
import { JournalDamagedError } from '../../src/journal/send-journal.js';
import { verifyJournal, type JournalReport } from '../../src/control/audit/verify-journal.js';
import {
  aSend,
  fullFile,
  HEADER,
  lastHash,
  LEDGER,
  makeJournalFolder,
  outcomeOf,
  toText,
  type JournalFolder,
} from './support/journal-folder.js';

const FIXTURES = fileURLToPath(new URL('fixtures/', import.meta.url));

let folder: JournalFolder;
beforeEach(async () => {
  folder = await makeJournalFolder();
});
afterEach(async () => folder.close());

async function verify(head?: string): Promise<JournalReport> {
  const report = await verifyJournal(folder.dir, 1, head);
  if (report === undefined) throw new Error('there is a journal');
  return report;
}
const faultsIn = async (): Promise<string[]> =>
  (await verify()).faults.map(({ file, line, message }) => `${file.slice(folder.dir.length + 1)}:${line} ${message}`);
const put = async (texts: readonly string[], number?: number): Promise<void> =>
  writeFile(folder.path(number), texts.map((text) => `${text}\n`).join(''));

/** A journal of seven lines: header, ledger, three sends and two outcomes. */
async function writeSome(): Promise<string[]> {
  const journal = await folder.open();
  await journal.bind(LEDGER);
  for (const [index, payoutId] of ['p', 'q', 'r'].entries()) {
    await journal.append(aSend(payoutId, index + 1));
    if (payoutId !== 'r') journal.noteOutcome(aSend(payoutId, index + 1), { kind: 'accepted', txhash: payoutId }, 5);
  }
  await journal.close();
  return folder.texts();
}

describe('each line', () => {
  it('names the one before it by the SHA-256 of its bytes; the first one names none', async () => {
    const texts = await writeSome();
    const named = texts.map((text) => (JSON.parse(text) as { prev: unknown }).prev);
    expect(named).toEqual([[], ...texts.slice(0, -1).map(hashLine)]);
    expect(await verify()).toMatchObject({ lines: 7, sends: 3, files: 1, unchained: 0, faults: [] });
    expect((await verify()).head).toBe(hashLine(texts.at(-1) ?? ''));
  });

  it('names the last whole line where a crash tore one', async () => {
    const texts = await writeSome();
    await folder.add('{"payoutId":"s"');
    const journal = await folder.open();
    await journal.append(aSend('s', 4));
    const last = (await folder.texts()).at(-1) ?? '';
    expect((JSON.parse(last) as { prev: unknown }).prev).toBe(hashLine(texts.at(-1) ?? ''));
    expect(await faultsIn()).toEqual([]);
    expect((await folder.open()).knows('s', 1)).toBe(true);
  });
});

const MISSING = 'a line that it follows is not there: lines before it were changed, removed or moved';

const ALTERATIONS: [string, (texts: string[]) => string[], number][] = [
  ['changed', (texts) => texts.with(2, (texts[2] ?? '').replace('wallet-1', 'wallet-2')), 4],
  ['removed', (texts) => texts.toSpliced(3, 1), 4],
  ['moved', (texts) => [...texts.slice(0, 3), texts[4] ?? '', texts[3] ?? '', ...texts.slice(5)], 4],
  ['put in, naming none', (texts) => texts.toSpliced(3, 0, JSON.stringify(outcomeOf(aSend('p', 1), 'not_sent'))), 4],
  [
    'put in, naming one that is not there',
    (texts) => texts.toSpliced(3, 0, toChainedText(outcomeOf(aSend('p', 1), 'not_sent'), [hashLine('x')])),
    4,
  ],
  ['turned into a torn one', (texts) => texts.with(3, `${texts[3] ?? ''} torn`), 5],
  ['removed, which was the header', (texts) => texts.slice(1), 1],
];

describe('a line that was altered', () => {
  it.each(ALTERATIONS)('because it was %s: is found, and nothing is sent', async (_, alter, line) => {
    await put(alter(await writeSome()));
    expect((await faultsIn())[0]).toMatch(new RegExp(`^1\\.journal:${line} `));
    const place = `1.journal:${line}: `;
    await expect(folder.open()).rejects.toThrow(JournalDamagedError);
    await expect(folder.open()).rejects.toThrow(place);
    await expect(readJournal(folder.dir, 1)).rejects.toThrow(/was altered at .*Put the files back as they were/);
  });

  it('is found by a process that has the journal open', async () => {
    const journal = await folder.open();
    await journal.bind(LEDGER);
    await folder.add(toText([aSend('p', 1)]));
    await expect(journal.reload()).rejects.toThrow(/1\.journal:3: it does not name the line before it/);
    await expect(journal.append(aSend('q', 2))).rejects.toThrow(JournalDamagedError);
  });

  it('because it is a copy of an earlier one, or one that nobody read: is shown by the audit', async () => {
    const texts = await writeSome();
    await put([...texts, texts[2] ?? '']);
    expect(await faultsIn()).toEqual(['1.journal:8 it is a copy of an earlier line']);
    await put(texts);
    const journal = await folder.open();
    for (let sends = 4; sends <= 110; sends += 1) await journal.append(aSend(`s-${sends}`, sends));
    const all = await folder.texts();
    const forged = toChainedText(outcomeOf(aSend('p', 1), 'not_sent'), [hashLine(all[2] ?? '')]);
    await put(all.toSpliced(3, 0, forged));
    expect(await faultsIn()).toEqual(['1.journal:4 no later line follows it: it was put in between']);
  });

  it('because the end was cut off: shows by the head alone', async () => {
    const texts = await writeSome();
    const { head = '' } = await verify();
    expect((await verify(head)).found).toEqual({ file: folder.path(), line: 7 });
    await put(texts.slice(0, -1));
    expect(await verify(head)).toMatchObject({ found: undefined, faults: [] });
  });

  it('in any single byte: is found, or changes nothing that is read', async () => {
    const texts = await writeSome();
    const { head = '' } = await verify();
    const before = Buffer.from(await folder.text());
    const read = await readEverything();
    expect(texts).toHaveLength(7);
    await fc.assert(
      fc.asyncProperty(fc.nat(before.length - 1), fc.integer({ min: 1, max: 255 }), async (index, change) => {
        const bytes = Buffer.from(before);
        bytes.writeUInt8((bytes[index] ?? 0) ^ change, index);
        await writeFile(folder.path(), bytes);
        const isFound = await verify(head).then(
          ({ faults, found }) => faults.length > 0 || found === undefined,
          () => true,
        );
        if (!isFound) expect(await readEverything()).toEqual(read);
      }),
      { numRuns: 400 },
    );
  });
});

async function readEverything(): Promise<unknown> {
  const journal = await readJournal(folder.dir, 1);
  const items: JournalItem[] = [];
  for await (const item of journal?.items() ?? []) items.push(item);
  return { ...journal, items, lastSends: journal?.lastSends(99) };
}

describe('processes that write at the same time', () => {
  const prevOf = async (index: number): Promise<unknown> =>
    (JSON.parse((await folder.texts()).at(index) ?? '') as { prev: unknown }).prev;

  it('fork the chain, and the next who has read both names both', async () => {
    const one = await folder.open();
    await one.bind(LEDGER);
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
    const one = await folder.open();
    await one.bind(LEDGER);
    await one.append(aSend('late', 1));
    const stopped = await folder.open();
    await folder.addLines(Array.from({ length: 2_499 }, (_, index) => aSend(`p-${index + 2}`, index + 2)));
    await one.reload();
    stopped.noteOutcome(aSend('late', 1), { kind: 'accepted', txhash: 'h' }, 5);
    await stopped.close();
    await one.reload();
    expect(one.knows('p-2500', 1)).toBe(true);
    await one.append(aSend('q', 2_501));
    expect(await prevOf(-1)).toHaveLength(2);
  });

  it('go on in the next file: its header names the end of the one before, and a late line there harms nobody', async () => {
    await folder.write(fullFile('a'));
    const one = await folder.open();
    const late = await folder.open();
    const third = await folder.open();
    await one.append(aSend('p', 17));
    expect((JSON.parse((await folder.texts())[0] ?? '') as { prev: unknown }).prev).toBe(
      lastHash(await folder.text(1))[0],
    );
    await late.append(aSend('q', 18, { token: 'late' }));
    await third.reload();
    await third.append(aSend('r', 19));
    await one.reload();
    await one.append(aSend('s', 20));
    expect(await faultsIn()).toEqual([]);
    const again = await folder.open();
    expect(['p', 'q', 'r', 's'].filter((payoutId) => again.knows(payoutId, 1))).toEqual(['p', 'q', 'r', 's']);
  });
});

describe('the chain over several files', () => {
  beforeEach(async () => {
    await folder.write([HEADER, LEDGER, aSend('a', 1)], 1);
    await folder.write([HEADER, LEDGER, aSend('b', 2)], 2);
    await folder.write([HEADER, LEDGER, aSend('c', 3)]);
  });

  it('is whole, also where the oldest was removed', async () => {
    expect(await faultsIn()).toEqual([]);
    await rm(folder.path(1));
    expect(await faultsIn()).toEqual([]);
    await folder.open();
  });

  it('is broken where one in the middle is missing, or lost its end', async () => {
    const texts = await folder.texts(2);
    await put(texts.slice(0, -1), 2);
    expect(await faultsIn()).toEqual([`1.journal:1 ${MISSING}`]);
    await rm(folder.path(2));
    expect(await faultsIn()).toEqual([`1.journal:1 ${MISSING}`]);
    await expect(folder.open()).rejects.toThrow(/1\.journal:1: a line that it follows is not there/);
  });

  it('is checked also in files whose sends nobody needs any more', async () => {
    await put((await folder.texts(1)).toSpliced(1, 1), 1);
    await expect(folder.open()).rejects.toThrow(/1\.journal\.1:2: a line that it follows is not there/);
  });
});

describe('a journal of a former format', () => {
  const LAST: JournalLine[] = [aSend('under-way', 11), outcomeOf(aSend('under-way', 11), 'accepted')];

  it.each([1, 2] as const)('%i is chained from where it is opened, with all that it had', async (format) => {
    await cp(`${FIXTURES}format-${format}`, folder.dir, { recursive: true });
    const before = await readEverything();
    const now = Date.now();
    const journal = await folder.open();
    expect(journal.bornAt).toBeGreaterThanOrEqual(now);
    await journal.close();
    expect(await readEverything()).toEqual(before);
    expect(await faultsIn()).toEqual([]);
    await (await folder.open()).append(aSend('next', 20));
    expect(await faultsIn()).toEqual([]);
    expect((await folder.texts()).filter((text) => text.includes('"v":3'))).toHaveLength(1);
  });

  it('may get the last lines of a process of that version behind the header: they count, and are followed', async () => {
    await cp(`${FIXTURES}format-2`, folder.dir, { recursive: true });
    const journal = await folder.open();
    await folder.add(toText(LAST));
    await journal.reload();
    expect(journal.knows('under-way', 1)).toBe(true);
    await journal.append(aSend('next', 12));
    const again = await folder.open();
    expect(again.knows('under-way', 1)).toBe(true);
    const { unchained, faults, lines } = await verify();
    expect({ faults, unchained }).toEqual({ faults: [], unchained: lines - 2 });
    const texts = await folder.texts();
    for (const index of [-3, -2]) {
      await put(texts.toSpliced(index, 1));
      expect(await faultsIn()).toHaveLength(1);
    }
  });

  it('gets no lines of another kind without a hash, and none at all once it has a new file', async () => {
    await cp(`${FIXTURES}format-2`, folder.dir, { recursive: true });
    const journal = await folder.open();
    const upgraded = await folder.text();
    for (const line of [{ complete: { at: 1, by: 'x', reason: 'y' } }, { paused: { at: 1, reason: 'y' } }]) {
      await folder.add(toText([line]));
      await expect(journal.reload()).rejects.toThrow(/it does not name the line before it/);
      await writeFile(folder.path(), upgraded);
    }
    await folder.write([HEADER, LEDGER]);
    await folder.add(toText(LAST));
    expect((await faultsIn())[0]).toMatch(/it does not name the line before it/);
  });
});

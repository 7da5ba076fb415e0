import { cp, readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { UnsupportedFormatError } from '../../src/base/errors.js';
import type { FileSendJournal } from '../../src/journal/file-send-journal.js';
import { readJournal } from '../../src/journal/journal-reader.js';
import { findMismatch } from '../../src/journal/find-mismatch.js';
import type { JournalItem } from '../../src/journal/journal-line.js';
import { aSend, headerOf, lastHash, makeJournalFolder, type JournalFolder } from './support/journal-folder.js';

const FIXTURES = fileURLToPath(new URL('fixtures/', import.meta.url));

let folder: JournalFolder;
beforeEach(async () => {
  folder = await makeJournalFolder();
});
afterEach(async () => {
  await folder.close();
});

const put = async (format: 1 | 2 | 4): Promise<void> =>
  cp(`${FIXTURES}format-${format}`, folder.dir, { recursive: true });
const read = async () => readJournal(folder.dir, 1);

async function sendsOf(journal: Pick<FileSendJournal, 'items'>): Promise<Exclude<JournalItem, { peers: unknown }>[]> {
  const items: JournalItem[] = [];
  for await (const item of journal.items()) items.push(item);
  return items.filter((item) => 'payoutId' in item);
}

/** What the fixture of format 1 holds, as payoutId, attempt and token, the oldest first. */
const FORMER_SENDS = ['P-1 1 e:1', 'P-2 1 e:1', 'P-3 1 e:2', 'P-4 1 e:2', 'P-2 2 e:3', 'P-5 1 e:3'];

describe('a journal of format 1', () => {
  const describeSends = (items: readonly object[]): string[] =>
    (items as readonly { payoutId: string; attempt: number; token: string }[]).map(
      ({ payoutId, attempt, token }) => `${payoutId} ${attempt} ${token}`,
    );

  it('is read with every send, and nothing of it is changed by who only looks', async () => {
    await put(1);
    const before = await folder.text();
    const journal = await read();
    expect(journal?.ledger).toEqual({ ledgerId: 'L-1', epoch: 3, sends: 7, token: 'e:3' });
    expect(describeSends(journal?.lastSends(99) ?? [])).toEqual(FORMER_SENDS);
    expect(journal?.journalId).toMatch(/^[0-9a-f]{12}$/);
    expect(await folder.text()).toBe(before);
  });

  it('is given an id and a header where it stands, and no send is forgotten', async () => {
    await put(1);
    const [before, former, seen] = [await folder.text(), await folder.text(1), await read()];
    const journal = await folder.open();
    expect(journal.journalId).toBe(seen?.journalId);
    expect(await folder.text(1)).toBe(former);
    const after = await folder.text();
    expect(after.startsWith(before)).toBe(true);
    expect(JSON.parse(after.slice(before.length))).toEqual({
      ...headerOf(journal.journalId),
      prev: lastHash(before)[0],
    });
    expect(journal.ledger).toEqual({ ledgerId: 'L-1', epoch: 3, sends: 7, token: 'e:3' });
    for (const [payoutId, attempt] of [
      ['P-1', 1],
      ['P-2', 1],
      ['P-2', 2],
      ['P-3', 1],
      ['P-4', 1],
      ['P-5', 1],
    ] as const) {
      expect(journal.knows(payoutId, attempt)).toBe(true);
    }
    expect(journal.knows('P-5', 2)).toBe(false);
    expect(describeSends(await sendsOf(journal))).toEqual(FORMER_SENDS);
  });

  it('is upgraded once, and written on with attempts that are known by tokens', async () => {
    await put(1);
    const journal = await folder.open();
    await journal.append(aSend('P-6', 8, { after: { sends: 7, token: 'e:3' } }));
    await journal.close();
    const again = await folder.open();
    expect(again.journalId).toBe(journal.journalId);
    expect((await folder.lines()).filter((line) => 'v' in (line as object))).toHaveLength(1);
    expect(describeSends(await sendsOf(again))).toEqual([...FORMER_SENDS, 'P-6 1 t-8']);
    expect(again.ledger).toEqual({ ledgerId: 'L-1', epoch: 3, sends: 8, token: 't-8' });
  });

  it('is made whole where a process ended before it made the next file', async () => {
    await cp(`${FIXTURES}format-1/1.journal.1`, folder.path(1));
    const seen = await read();
    const journal = await folder.open();
    expect(journal.journalId).toBe(seen?.journalId);
    expect(await folder.lines()).toEqual([
      headerOf(journal.journalId),
      { ledgerId: 'L-1', epoch: 2, sends: 3, token: 'e:2' },
    ]);
  });

  it('is not told from a ledger by the name of its last send, which it did not have', async () => {
    await put(1);
    const journal = await folder.open();
    const ledger = { findForgottenSends: async () => Promise.resolve([]) };
    const lease = { owner: 'one', epoch: 3, heartbeat: 0, released: true };
    const journals = { objections: [], journals: [] };
    const view = { ledgerId: 'L-1', lease, sendCount: 7, last: '', lastJournalId: undefined, ...journals };
    const rest = { awaitingAnswer: false, inFlightMs: 0, pausedReason: undefined };
    expect(await findMismatch(journal, { ...view, ...rest }, ledger)).toBeUndefined();
    expect(await findMismatch(journal, { ...view, ...rest, sendCount: 6 }, ledger)).toMatchObject({ kind: 'ledger' });
  });
});

describe('a journal of format 2', () => {
  it('is read with all that it has, by who opens it and by who only looks', async () => {
    await put(2);
    const before = await folder.text();
    const seen = await read();
    expect(await folder.text()).toBe(before);
    const journal = await folder.open();
    expect(seen).toMatchObject({ journalId: journal.journalId, ledger: journal.ledger, peers: journal.peers });
    expect(seen?.lastSends(9)).toEqual(journal.lastSends(9));
    expect(journal.journalId).toBe('5f3a1c9be207');
    expect(journal.peers).toEqual([{ journalId: '0123456789ab', host: 'host-b', dir: '/var/lib/payouts/journal' }]);
    expect(journal.ledger).toEqual({ ledgerId: 'L-1', epoch: 4, sends: 10, token: 'YmF6YmF6' });
    expect(journal.lastSends(9).map(({ payoutId, outcome }) => [payoutId, outcome?.kind])).toEqual([
      ['P-6', 'accepted'],
      ['P-7', 'not_sent'],
      ['P-8', undefined],
    ]);
    expect(['P-6', 'P-7', 'P-8'].filter((payoutId) => journal.knows(payoutId, 1))).toEqual(['P-6', 'P-8']);
    expect((await folder.text()).startsWith(before)).toBe(true);
    expect((await folder.lines()).at(-1)).toEqual(headerOf('5f3a1c9be207'));
  });
});

describe('a journal of a newer format', () => {
  it('is refused by who opens it and by who only looks, and is left as it is', async () => {
    await put(4);
    const before = await readFile(`${FIXTURES}format-4/1.journal`, 'utf8');
    await expect(folder.open()).rejects.toThrow(UnsupportedFormatError);
    await expect(read()).rejects.toThrow(
      /send journal has format 4 at .*1\.journal:1; this version of payout-queue reads formats 1 to 3\. Run the version/,
    );
    expect(await folder.text()).toBe(before);
    expect(await readdir(folder.dir)).toEqual(['1.journal']);
  });

  it('is refused also where the file before it is of this format', async () => {
    await put(4);
    await cp(`${FIXTURES}format-2/1.journal`, folder.path(1));
    await expect(folder.open()).rejects.toThrow(UnsupportedFormatError);
  });
});

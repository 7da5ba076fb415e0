import { cp, readdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { UnsupportedFormatError } from '../../src/base/errors.js';
import { readJournal } from '../../src/journal/journal-reader.js';
import { parseLine, TORN_MARK } from '../../src/journal/parse-line.js';
import { verifyJournal } from '../../src/control/audit/verify-journal.js';
import { journaled } from '../worker/support/send-rig.js';
import {
  aSend,
  files,
  folder,
  HEADER,
  headerOf,
  itemsOf,
  lastHash,
  LEDGER,
  outcomeOf,
  toText,
  useFolder,
} from './support/journal-folder.js';

const PLACE = '/journal/1.journal:7';
const parse = (line: unknown) => parseLine(typeof line === 'string' ? line : JSON.stringify(line), PLACE)?.line;
const HASH = 'a1'.repeat(32);
const MINE = { payoutId: 'p', attempt: 1, token: 'mine' };
const REQUEST = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };
const STATEMENT = { at: 6, by: 'alice', reason: 'new' };
const resultOf = (outcome: object): object => ({ ...MINE, at: 5, outcome });

describe('a line', () => {
  it.each<[string, object]>([
    ['a header of format 2', { v: 2, journalId: 'j' }],
    ['a header with its marks', { v: 3, journalId: 'j', bornAt: 5, complete: STATEMENT, prunedUpTo: 7 }],
    ['a statement that nothing is missing', { complete: STATEMENT }],
    ['a pause', { paused: { at: 6, reason: 'blocked' } }],
    ['the end of a pause', { resumed: { at: 6, act: HASH } }],
    [
      'a signed send',
      journaled(MINE, { signed: { intent: HASH, key: 'shop', issuedAt: 1, expiresAt: 2, act: HASH, clears: [1] } }),
    ],
    ['a ledger', { ledgerId: 'L', epoch: 1, sends: 2, token: 'second' }],
    ['an adopted ledger', { ledgerId: 'L', epoch: 1, sends: 2, token: 'second', adopted: true }],
    ['peers', { peers: [{ journalId: 'j', host: 'h', dir: '/d' }] }],
    ['a send with its currency', journaled(MINE, { request: { ...REQUEST, symbol: 'USD' } })],
    ['a send after one of format 1', journaled(MINE, { after: { sends: 3, token: 'e:2' } })],
    ['an acceptance', resultOf({ kind: 'accepted', txhash: 'h' })],
    ['a rejection', resultOf({ kind: 'rejected', message: 'no' })],
    ['an unknown outcome', resultOf({ kind: 'unknown', reason: 'silence' })],
    ['a send that was none', resultOf({ kind: 'not_sent', reason: 'refused' })],
  ])('that is %s is read as it was written', (_, line) => {
    expect(parse(line)).toEqual(line);
  });

  it.each(['', 'anything torn', `{"payoutId":"p"${TORN_MARK}`])('that says nothing is none: "%s"', (line) => {
    expect(parse(line)).toBeUndefined();
  });

  it.each([
    'nonsense',
    '{"payoutId":"p"',
    'null',
    '{}',
    { ...journaled(MINE), sends: '3' },
    { ...journaled(MINE), request: { ...REQUEST, symbol: null } },
    resultOf({ kind: 'accepted' }),
    resultOf({ kind: 'paid', txhash: 'h' }),
    { ...resultOf({ kind: 'accepted', txhash: 'h' }), token: undefined },
    { ledgerId: 'L', epoch: 1 },
    { ledgerId: 'L', epoch: 1.5, sends: 2 },
    { v: 2 },
    { v: 3, journalId: 'j' },
    { v: 3, journalId: 'j', bornAt: 5, prev: [HASH.toUpperCase()] },
    { resumed: { at: 6, act: 'none' } },
    { ...journaled(MINE), signed: { intent: HASH, key: 'shop', issuedAt: 1 } },
    { peers: [{ journalId: 'j' }] },
  ])('that makes no sense is an error that names the place only: %j', (line) => {
    expect(() => parse(line)).toThrow(
      `The send journal cannot be read at ${PLACE}. Nothing may be sent without it; see docs/runbooks/journal.md.`,
    );
  });

  it('of format 1 has a send known by its epoch, the one before by its number, and a nameless ledger', () => {
    const line = { payoutId: 'p', attempt: 2, epoch: 3, sends: 9, at: 5, request: REQUEST };
    expect(parse(line)).toEqual({ ...line, token: 'e:3', after: { sends: 8 } });
    expect(parse({ ledgerId: 'L', epoch: 3, sends: 9 })).toEqual({ ledgerId: 'L', epoch: 3, sends: 9, token: '' });
  });
});

describe('a journal', () => {
  useFolder();

  const FIXTURES = fileURLToPath(new URL('fixtures/', import.meta.url));
  const put = async (format: 1 | 2 | 4): Promise<void> =>
    cp(`${FIXTURES}format-${format}`, folder.dir, { recursive: true });
  const read = async () => readJournal(folder.dir, 1);
  const faults = async () => (await verifyJournal(folder.dir, 1))?.faults.map(({ message }) => message);
  /** What the fixture of format 1 holds, as payoutId, attempt and token, the oldest first. */
  const FORMER_SENDS = ['P-1 1 e:1', 'P-2 1 e:1', 'P-3 1 e:2', 'P-4 1 e:2', 'P-2 2 e:3', 'P-5 1 e:3'];

  it('of format 1 is given one id and header, once, and no send is forgotten', async () => {
    await put(1);
    const [before, former, seen] = [await folder.text(), await folder.text(1), await read()];
    const opened = await Promise.all(Array.from({ length: 4 }, async () => folder.open()));
    const [journal = await folder.open()] = opened;
    expect(new Set(opened.map(({ journalId }) => journalId))).toEqual(new Set([seen?.journalId]));
    expect([await folder.text(1), await files()]).toEqual([former, ['1.journal', '1.journal.1']]);
    const after = await folder.text();
    expect(after.startsWith(before)).toBe(true);
    const header = { ...headerOf(journal.journalId), prev: lastHash(before)[0] };
    expect(JSON.parse(after.slice(before.length).split('\n')[0] ?? '')).toEqual(header);
    const forgotten = FORMER_SENDS.map((send) => send.split(' ')).filter(
      ([id = '', n]) => !journal.knows(id, Number(n)),
    );
    expect(forgotten).toEqual([]);
    expect(journal.knows('P-5', 2)).toBe(false);
    await journal.reload();
    await journal.append(aSend('P-6', 8, { after: { sends: 7, token: 'e:3' } }));
    await journal.close();
    const again = await folder.open();
    expect(again.journalId).toBe(journal.journalId);
    const items = await itemsOf(await read());
    const sends = items.flatMap((item) =>
      'payoutId' in item ? [`${item.payoutId} ${item.attempt} ${item.token}`] : [],
    );
    expect(sends).toEqual([...FORMER_SENDS, 'P-6 1 t-8']);
    expect(again.ledger).toEqual({ ledgerId: 'L-1', epoch: 3, sends: 8, token: 't-8' });
  });

  it('of format 2 is read with all that it has', async () => {
    await put(2);
    const seen = await read();
    const journal = await folder.open();
    for (const each of [seen, journal]) {
      expect(each).toMatchObject({
        journalId: '5f3a1c9be207',
        peers: [{ journalId: '0123456789ab', host: 'host-b', dir: '/var/lib/payouts/journal' }],
        ledger: { ledgerId: 'L-1', epoch: 4, sends: 10, token: 'YmF6YmF6' },
      });
      const last = each?.lastSends(9).map(({ payoutId, outcome }) => `${payoutId} ${outcome?.kind}`);
      expect(last).toEqual(['P-6 accepted', 'P-7 not_sent', 'P-8 undefined']);
    }
    expect(['P-6', 'P-7', 'P-8'].map((payoutId) => journal.knows(payoutId, 1))).toEqual([true, false, true]);
    expect((await folder.lines()).at(-1)).toEqual(headerOf('5f3a1c9be207'));
  });

  it.each([1, 2] as const)('of format %i is chained from where it is opened, with all that it had', async (format) => {
    await put(format);
    const everything = async () => ({ items: await itemsOf(await read()), ends: (await read())?.lastSends(99) });
    const before = await everything();
    const now = Date.now();
    const journal = await folder.open();
    expect(journal.bornAt).toBeGreaterThanOrEqual(now);
    await journal.close();
    expect(await everything()).toEqual(before);
    expect(await faults()).toEqual([]);
    await (await folder.open()).append(aSend('next', 20));
    expect(await faults()).toEqual([]);
    expect((await folder.texts()).filter((text) => text.includes('"v":3'))).toHaveLength(1);
  });

  const LATE = [aSend('under-way', 11), outcomeOf(aSend('under-way', 11), 'accepted')];

  it('of a former format may get the last lines of its process behind the header: they count', async () => {
    await put(2);
    const journal = await folder.open();
    await folder.add(toText(LATE));
    await journal.reload();
    expect(journal.knows('under-way', 1)).toBe(true);
    await journal.append(aSend('next', 12));
    expect((await folder.open()).knows('under-way', 1)).toBe(true);
    const report = await verifyJournal(folder.dir, 1);
    expect(report).toMatchObject({ faults: [], unchained: (report?.lines ?? 0) - 2 });
    const texts = await folder.texts();
    for (const index of [-3, -2]) {
      await writeFile(folder.path(), `${texts.toSpliced(index, 1).join('\n')}\n`);
      expect(await faults()).toHaveLength(1);
    }
  });

  it('of a former format gets no other lines without a hash, and none at all once it has a new file', async () => {
    await put(2);
    const journal = await folder.open();
    const upgraded = await folder.text();
    for (const line of [{ complete: { at: 1, by: 'x', reason: 'y' } }, { paused: { at: 1, reason: 'y' } }]) {
      await folder.add(toText([line]));
      await expect(journal.reload()).rejects.toThrow(/it does not name the line before it/);
      await writeFile(folder.path(), upgraded);
    }
    await folder.write([HEADER, LEDGER]);
    await folder.add(toText(LATE));
    expect((await faults())?.[0]).toMatch(/it does not name the line before it/);
  });

  it('of a newer format is refused, also behind a file of this one, and left as it is', async () => {
    await put(4);
    const before = await folder.text();
    const message = expect.stringMatching(/format 4 at .*1\.journal:1; this version .* reads formats 1 to 3\. Run the/);
    for (const look of [async () => folder.open(), read]) {
      const refused = await look().catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(UnsupportedFormatError);
      expect(refused).toMatchObject({ message });
    }
    expect(await folder.text()).toBe(before);
    expect(await readdir(folder.dir)).toEqual(['1.journal']);
    await cp(`${FIXTURES}format-2/1.journal`, folder.path(1));
    await expect(folder.open()).rejects.toThrow(UnsupportedFormatError);
  });
});

import { cp, readdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { UnsupportedFormatError } from '../../src/base/errors.js';
import { verifyJournal } from '../../src/control/audit/verify-journal.js';
import { findMismatch, type LedgerMismatch } from '../../src/journal/find-mismatch.js';
import { identify, type JournaledOutcome, type JournalLine } from '../../src/journal/journal-line.js';
import { readJournal } from '../../src/journal/journal-reader.js';
import { JournalView, wasSent } from '../../src/journal/journal-view.js';
import { parseLine, TORN_MARK } from '../../src/journal/parse-line.js';
import type { SendAttempt, SenderView } from '../../src/ledger/sender-ledger.js';
import { MemoryJournal } from '../doubles/memory-journal.js';
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
const MINE: SendAttempt = { payoutId: 'p', attempt: 1, token: 'mine' };
const REQUEST = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };
const STATEMENT = { at: 6, by: 'alice', reason: 'new' };
const resultOf = (outcome: object): object => ({ ...MINE, at: 5, outcome });

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
  [
    'acts of people',
    {
      acts: {
        at: 6,
        count: 3,
        ended: [{ payoutId: 'p', state: 'cancelled', at: 5, by: 'ann', reason: 'fraud', request: REQUEST }],
      },
    },
  ],
  ['peers', { peers: [{ journalId: 'j', host: 'h', dir: '/d' }] }],
  ['a send with its currency', journaled(MINE, { request: { ...REQUEST, symbol: 'USD' } })],
  ['a send after one of format 1', journaled(MINE, { after: { sends: 3, token: 'e:2' } })],
  ['an acceptance', resultOf({ kind: 'accepted', txhash: 'h' })],
  ['a rejection', resultOf({ kind: 'rejected', message: 'no' })],
  ['an unknown outcome', resultOf({ kind: 'unknown', reason: 'silence', inFlightUntil: 5 })],
  ['a send that was none', resultOf({ kind: 'not_sent', reason: 'refused' })],
])('a line that is %s is read as it was written', (_, line) => {
  expect(parse(line)).toEqual(line);
});

it.each([
  ...['nonsense', '{"payoutId":"p"', 'null', '{}'],
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
])('a line that makes no sense is an error that names the place only: %j', (line) => {
  expect(() => parse(line)).toThrow(
    `The send journal cannot be read at ${PLACE}. Nothing may be sent without it; see docs/runbooks/journal.md.`,
  );
});

it('a torn or empty line is none; format 1 has sends known by their epochs, and a nameless ledger', () => {
  for (const line of ['', 'anything torn', `{"payoutId":"p"${TORN_MARK}`]) expect(parse(line)).toBeUndefined();
  const line = { payoutId: 'p', attempt: 2, epoch: 3, sends: 9, at: 5, request: REQUEST };
  expect(parse(line)).toMatchObject({ ...line, token: 'e:3', after: { sends: 8 } });
  expect(parse({ ledgerId: 'L', epoch: 3, sends: 9 })).toEqual({ ledgerId: 'L', epoch: 3, sends: 9, token: '' });
});

describe('a journal', () => {
  useFolder();

  const FIXTURES = fileURLToPath(new URL('fixtures/', import.meta.url));
  const put = async (format: 1 | 2 | 4): Promise<void> =>
    cp(`${FIXTURES}format-${format}`, folder.dir, { recursive: true });
  const read = async () => readJournal(folder.dir, 1);
  const faults = async () => (await verifyJournal(folder.dir, 1))?.faults.map(({ message }) => message);

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
    for (const payoutId of ['P-1', 'P-2', 'P-3', 'P-4', 'P-5']) expect(journal.knows(payoutId, 1)).toBe(true);
    expect([journal.knows('P-2', 2), journal.knows('P-5', 2)]).toEqual([true, false]);
    await journal.reload();
    await journal.append(aSend('P-6', 8, { after: { sends: 7, token: 'e:3' } }));
    await journal.close();
    const again = await folder.open();
    expect(again.journalId).toBe(journal.journalId);
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

  it('of a former format gets no other lines without a hash, none once it has a new file', async () => {
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

const THEIRS: SendAttempt = { ...MINE, token: 'theirs' };
const NOT_SENT: JournaledOutcome = { kind: 'not_sent', reason: 'the connection ended' };
const BOUND = { ledgerId: 'L', epoch: 2, sends: 4, token: 'fourth' };

let view: JournalView;
beforeEach(() => {
  view = new JournalView();
});

const noteSend = (attempt: SendAttempt, given: Parameters<typeof journaled>[1] = {}) => {
  view.note(journaled(attempt, given));
};
const noteOutcome = (attempt: SendAttempt, outcome: JournaledOutcome) => {
  view.note({ ...attempt, outcome, at: 0 });
};

it('what a journal comes to knows its id and others, each as it was noted last', () => {
  view.note({ v: 2, journalId: 'j' });
  const a = { journalId: 'a', host: 'h', dir: '/a' };
  const b = { ...a, journalId: 'b' };
  view.note({ peers: [a] });
  view.note({ peers: [b, { ...a, dir: '/moved' }] });
  expect(view.journalId).toBe('j');
  expect(view.peers).toEqual([{ ...a, dir: '/moved' }, b]);
});

it('where its ledger stands follows sends, but late ones, and any adoption', () => {
  noteSend(MINE);
  expect(view.ledger).toBeUndefined();
  view.note(BOUND);
  noteSend(MINE, { epoch: 1, sends: 4 });
  noteSend(THEIRS, { epoch: 1, sends: 3 });
  expect(view.ledger).toEqual(BOUND);
  noteSend(MINE, { epoch: 3, sends: 5 });
  expect(view.ledger).toEqual({ ledgerId: 'L', epoch: 3, sends: 5, token: 'mine' });
  const adopted = { ...BOUND, sends: 2, token: 'adoption', adopted: true as const };
  view.note(adopted);
  expect(view.ledger).toEqual(adopted);
  noteSend(MINE, { epoch: 2, sends: 3 });
  expect(view.ledger).toEqual({ ledgerId: 'L', epoch: 2, sends: 3, token: 'mine' });
});

it('a send is known by its payout and number, and as another one by its token', () => {
  noteSend(MINE);
  expect([view.knows('p', 1), view.knows('p', 2), view.knows('q', 1)]).toEqual([true, false, false]);
  expect([view.has(MINE), view.has(THEIRS)]).toEqual([true, false]);
  const others = [MINE, THEIRS, { ...THEIRS, attempt: 2 }, { ...THEIRS, payoutId: 'q' }];
  expect(others.map((send) => view.knowsFromAnother(send))).toEqual([false, true, false, false]);
});

it('a send has its own outcome, whichever sends stand between the two', () => {
  noteOutcome(MINE, NOT_SENT);
  noteSend(MINE);
  noteSend({ ...MINE, payoutId: 'q' });
  noteOutcome(THEIRS, NOT_SENT);
  expect(view.lastSends(9)[0]).toEqual(journaled(MINE));
  noteOutcome(MINE, { kind: 'accepted', txhash: 'h' });
  expect(view.lastSends(9).map(({ outcome }) => outcome?.kind)).toEqual(['accepted', undefined]);
});

it.each(['not_sent', 'accepted', 'rejected', 'unknown'] as const)(
  'a send that ended as %s stays known, or not',
  (kind) => {
    const isKnown = kind !== 'not_sent';
    noteSend(MINE);
    noteOutcome(MINE, { kind, txhash: 'h', message: 'm', reason: 'r', inFlightUntil: 0 });
    expect([view.knows('p', 1), view.knowsFromAnother(THEIRS), view.has(MINE)]).toEqual([isKnown, isKnown, true]);
    expect(view.lastSends(1).map(wasSent)).toEqual([isKnown]);
  },
);

it('what was not sent stays known where another may have sent the same number', () => {
  noteSend(MINE);
  noteSend(THEIRS);
  noteOutcome(MINE, NOT_SENT);
  expect(view.knows('p', 1)).toBe(true);
  view.startFile();
  noteOutcome(THEIRS, NOT_SENT);
  expect(view.knows('p', 1)).toBe(false);
});

it('a send of format 1 is told from others by payout and number too: its token is an epoch', () => {
  const former = { payoutId: 'p', attempt: 1, token: 'e:3' };
  const all = [former, { ...former, payoutId: 'q' }, { ...former, attempt: 2 }].map(identify);
  expect(new Set(all).size).toBe(3);
});

it('what is held is the keys of the last two files, and the newest 200 sends whole', () => {
  noteSend(MINE);
  view.startFile();
  noteSend({ ...MINE, payoutId: 'q' });
  expect([view.knows('p', 1), view.knows('q', 1)]).toEqual([true, true]);
  view.startFile();
  expect([view.knows('p', 1), view.knows('q', 1)]).toEqual([false, true]);
  const ids = Array.from({ length: 250 }, (_, index) => `p-${index + 1}`);
  for (const payoutId of ids) noteSend({ payoutId, attempt: 1, token: `t-${payoutId}` });
  const held = (count: number) => view.lastSends(count).map(({ payoutId }) => payoutId);
  expect([held(Infinity), held(2)]).toEqual([ids.slice(50), ids.slice(248)]);
  expect(view.knows('p-1', 1)).toBe(true);
});

const leaseOf = (epoch: number) => ({ owner: 'one', epoch, heartbeat: 0, released: false });
const VIEW: SenderView = {
  ...{ ledgerId: 'L', lease: leaseOf(4), sendCount: 9, last: 'ninth' },
  ...{
    lastJournalId: 'j-mine',
    awaitingAnswer: false,
    inFlightMs: 0,
    acts: 0,
    keptActs: 0,
    pauses: [],
    pausedReason: undefined,
  },
  ...{ objections: [], journals: [] },
};
const STANDS = { ledgerId: 'L', epoch: 4, sends: 9, token: 'ninth' };
const OTHER = { ledgerId: 'M', lease: undefined };

const sent = (payoutId: string, token = `t-${payoutId}`): JournalLine =>
  journaled({ payoutId, attempt: 2, token }, { epoch: 4, sends: 9 });
const ended = { payoutId: 'p', attempt: 2, token: 't-p', at: 0 };
const others = (count: number) => Array.from({ length: count }, (_, index) => sent(`other-${index}`));

interface Case {
  readonly view?: Partial<SenderView>;
  readonly lines?: readonly JournalLine[];
  readonly knows?: (token: string) => boolean;
  readonly stands?: object;
}

const find = async (journal: MemoryJournal, given: Partial<SenderView>, knows: (token: string) => boolean) => {
  const findForgottenSends = async <Send extends SendAttempt>(sends: readonly Send[]) =>
    Promise.resolve(sends.filter(({ token }) => !knows(token)).map((send) => ({ send, state: 'queued' as const })));
  return findMismatch(journal, { ...VIEW, ...given }, { findForgottenSends });
};

async function compare({ view: given = {}, lines = [], knows = () => false, stands = STANDS }: Case) {
  const journal = new MemoryJournal();
  journal.given(...lines, stands as JournalLine);
  return find(journal, given, knows);
}

const all = () => true;
const butP = (token: string) => token !== 't-p';
const NOTED = { journalId: 'j-mine', host: 'h', dir: '/d', sends: 10, token: 'tenth', at: 0 };
const AHEAD = { sendCount: 11, last: 'eleventh' };

const older = (detail: string) => `This Redis holds an older copy of the ledger: ${detail}.`;
const another = 'This Redis holds another ledger (M) than the send journal knows (L): it was flushed or exchanged.';
const forgot = older('it does not know that payout p was sent (attempt 2)');

/** With what is told of one that does not fit. */
it.each<[string, Case, string?, LedgerMismatch['kind']?]>([
  ['knows all', { lines: [sent('p')], knows: all }],
  ['knows more sends', { view: { sendCount: 10, last: 'another' } }],
  ['has a newer epoch', { view: { lease: leaseOf(5) } }],
  [
    'is another that knows all its sends: it was adopted',
    { view: { ...OTHER, sendCount: 10 }, lines: [sent('p')], knows: all },
  ],
  ['is another with more sends, where the journal has none', { view: { ...OTHER, sendCount: 10 } }],
  ['has no name for the last send, as under format 1', { view: { last: '' } }],
  ['has another last send where the journal has no name for it', { stands: { ...STANDS, token: '' } }],
  ['does not know the 101st send from the end', { lines: [sent('p'), ...others(100)], knows: butP }],
  ['does not know what was journaled and not sent', { lines: [sent('p'), { ...ended, outcome: NOT_SENT }] }],
  ['knows as many of this journal', { view: { ...AHEAD, journals: [{ ...NOTED, sends: 9 }] } }],
  ['is another that does not know its sends', { view: { ledgerId: 'M' }, lines: [sent('p')] }, another],
  [
    'is another with fewer sends, though the journal has none that are missing',
    { view: { ...OTHER, sendCount: 8, last: 'eighth' }, lines: [sent('p')], knows: all },
    another,
  ],
  ['is another with fewer sends than the journal stands at', { view: { ...OTHER, sendCount: 8 } }, another],
  ['has an older epoch', { view: { lease: leaseOf(3) } }, older('its lease epoch is 3, the journal has seen 4')],
  ['has no lease any more', { view: { lease: undefined } }, older('its lease epoch is 0, the journal has seen 4')],
  ['has fewer sends', { view: { sendCount: 8 } }, older('it knows 8 sends, the journal 9')],
  ['has another last send', { view: { last: 'another' } }, older("its send 9 differs from the journal's")],
  [
    'knows the payout and number of another sender only',
    { lines: [sent('p', 'mine')], knows: (token) => token === 'theirs' },
    forgot,
  ],
  ['does not know the 100th from the end', { lines: [sent('p'), ...others(99)], knows: butP }, forgot],
  ['does not know the last', { lines: [...others(99), sent('p')], knows: butP }, forgot],
  [
    'does not know one whose outcome is unknown',
    { lines: [sent('p'), { ...ended, outcome: { kind: 'unknown', reason: 'silence', inFlightUntil: 0 } }] },
    forgot,
  ],
  [
    'knows entries of the journal which that lacks',
    { view: { ...AHEAD, journals: [{ ...NOTED, journalId: 'j-other', sends: 11 }, NOTED] } },
    'The send journal lacks its last entries: it ends with send number 9, the ledger knows that it had number 10.',
    'journal',
  ],
])('a ledger that %s fits or not', async (_, given, ...[reason, kind = 'ledger']) => {
  expect(await compare(given)).toEqual(reason === undefined ? undefined : { kind, reason });
});

it('a ledger fits a journal that is new, whatever it is', async () => {
  expect(await find(new MemoryJournal(), { ...OTHER, sendCount: 0 }, all)).toBeUndefined();
});

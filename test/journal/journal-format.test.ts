import { writeFile } from 'node:fs/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { UnsupportedFormatError } from '../../src/base/errors.js';
import { verifyJournal } from '../../src/control/audit/verify-journal.js';
import { findMismatch, type LedgerMismatch } from '../../src/journal/find-mismatch.js';
import { type JournaledOutcome, type JournalLine } from '../../src/journal/journal-line.js';
import { readJournal } from '../../src/journal/journal-reader.js';
import { JournalView, wasSent } from '../../src/journal/journal-view.js';
import { parseLine, TORN_MARK } from '../../src/journal/parse-line.js';
import type { SendAttempt, SenderView } from '../../src/ledger/sender-ledger.js';
import { MemoryJournal } from '../doubles/memory-journal.js';
import { journaled } from '../worker/support/send-rig.js';
import {
  files,
  folder,
  HEADER,
  headerOf,
  LEDGER,
  makeJournalFolder,
  toText,
  useFolder,
} from './support/journal-folder.js';

const PLACE = '/journal/1.journal:7';
const parse = (line: unknown) => parseLine(typeof line === 'string' ? line : JSON.stringify(line), PLACE)?.line;
const HASH = 'a1'.repeat(32);
const MINE: SendAttempt = { payoutId: 'p', attempt: 1, token: 'mine' };
const REQUEST = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };
const SIGNED = { intent: HASH, key: 'shop', issuedAt: 1, expiresAt: 2, proof: { signature: 'S', audience: 'a' } };
const STATEMENT = { at: 6, by: 'alice', reason: 'new' };
const resultOf = (outcome: object): object => ({ ...MINE, at: 5, outcome });

it.each<[string, object]>([
  ['a header with its marks', { v: 1, journalId: 'j', bornAt: 5, complete: STATEMENT, prunedUpTo: 7 }],
  ['a statement that nothing is missing', { complete: STATEMENT }],
  ['a pause', { paused: { at: 6, reason: 'blocked' } }],
  ['the end of a pause', { resumed: { at: 6, act: HASH } }],
  ['a signed send', journaled(MINE, { signed: { ...SIGNED, act: HASH, clears: [1] } })],
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
  ['an acceptance', resultOf({ kind: 'accepted', gatewayId: 'h' })],
  ['a payment that was found', resultOf({ kind: 'accepted', gatewayId: 'h', found: true })],
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
  resultOf({ kind: 'paid', gatewayId: 'h' }),
  { ...resultOf({ kind: 'accepted', gatewayId: 'h' }), token: undefined },
  { ledgerId: 'L', epoch: 1 },
  { ledgerId: 'L', epoch: 1, sends: 2 },
  { ledgerId: 'L', epoch: 1.5, sends: 2, token: '' },
  ...['token', 'after', 'inFlightMs', 'request'].map((field) => ({ ...journaled(MINE), [field]: undefined })),
  journaled(MINE, { signed: { ...SIGNED, proof: undefined as never } }),
  { v: 1 },
  { v: '2' },
  { v: 1, journalId: 'j' },
  { v: 1, journalId: 'j', bornAt: 5, prev: [HASH.toUpperCase()] },
  { resumed: { at: 6, act: 'none' } },
  { ...journaled(MINE), signed: { intent: HASH, key: 'shop', issuedAt: 1 } },
  { peers: [{ journalId: 'j' }] },
])('a line that makes no sense is an error that names the place only: %j', (line) => {
  expect(() => parse(line)).toThrow(
    `The send journal cannot be read at ${PLACE}. Nothing may be sent without it; see docs/runbooks/journal.md.`,
  );
});

it('a torn or empty line is none', () => {
  for (const line of ['', 'anything torn', `{"payoutId":"p"${TORN_MARK}`]) expect(parse(line)).toBeUndefined();
});

describe('a journal of format 2', () => {
  useFolder();

  const read = async () => readJournal(folder.dir, 1);
  const audit = async () => verifyJournal(folder.dir, 1);
  const OTHER = toText([{ v: 2, journalId: 'abcdef012345' }, { payoutId: 'p' }]);

  it.each([
    ['alone', async () => Promise.resolve()],
    ['behind a file of this format', async () => folder.write([HEADER, LEDGER], 1)],
  ])('is refused, and left as it is: %s', async (_, prepare) => {
    await prepare();
    await writeFile(folder.path(), OTHER);
    const before = await files();
    const refusal = new UnsupportedFormatError(
      `The send journal at ${folder.path()}:1 has format 2; this version of payout-queue reads format 1. Run the version that wrote it.`,
    );
    for (const look of [async () => folder.open(), read, audit]) await expect(look()).rejects.toThrow(refusal);
    expect([await folder.text(), await files()]).toEqual([OTHER, before]);
  });
});

it('a file without a whole line is given a header', async () => {
  const dir = await makeJournalFolder();
  await writeFile(dir.path(), '');
  const journal = await dir.open();
  expect(await dir.lines()).toEqual([headerOf(journal.journalId)]);
  await dir.close();
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
  view.note({ v: 1, journalId: 'j', bornAt: 0 });
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
  noteOutcome(MINE, { kind: 'accepted', gatewayId: 'h' });
  expect(view.lastSends(9).map(({ outcome }) => outcome?.kind)).toEqual(['accepted', undefined]);
});

it.each(['not_sent', 'accepted', 'rejected', 'unknown'] as const)(
  'a send that ended as %s stays known, or not',
  (kind) => {
    const isKnown = kind !== 'not_sent';
    noteSend(MINE);
    noteOutcome(MINE, { kind, gatewayId: 'h', message: 'm', reason: 'r', inFlightUntil: 0 });
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
  ['has no name for the last send', { view: { last: '' } }],
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

import { beforeEach, describe, expect, it } from '@jest/globals';
import { findMismatch, type LedgerMismatch } from '../../src/journal/find-mismatch.js';
import { identify, type JournaledOutcome, type JournalLine } from '../../src/journal/journal-line.js';
import { JournalView, wasSent } from '../../src/journal/journal-view.js';
import type { SendAttempt, SenderView } from '../../src/ledger/sender-ledger.js';
import { MemoryJournal } from '../doubles/memory-journal.js';
import { journaled } from '../worker/support/send-rig.js';

const MINE: SendAttempt = { payoutId: 'p', attempt: 1, token: 'mine' };
const THEIRS: SendAttempt = { ...MINE, token: 'theirs' };
const NOT_SENT: JournaledOutcome = { kind: 'not_sent', reason: 'the connection ended' };
const BOUND = { ledgerId: 'L', epoch: 2, sends: 4, token: 'fourth' };

let view: JournalView;
beforeEach(() => {
  view = new JournalView();
});

const noteSend = (attempt: SendAttempt, given: Parameters<typeof journaled>[1] = {}): void => {
  view.note(journaled(attempt, given));
};
const noteOutcome = (attempt: SendAttempt, outcome: JournaledOutcome): void => {
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

it('where its ledger stands follows the sends, and is not set back by one that was written late', () => {
  noteSend(MINE);
  expect(view.ledger).toBeUndefined();
  view.note(BOUND);
  noteSend(MINE, { epoch: 1, sends: 4 });
  noteSend(THEIRS, { epoch: 1, sends: 3 });
  expect(view.ledger).toEqual(BOUND);
  noteSend(MINE, { epoch: 3, sends: 5 });
  expect(view.ledger).toEqual({ ledgerId: 'L', epoch: 3, sends: 5, token: 'mine' });
});

it('where its ledger stands is where an adoption puts it, also when that is lower', () => {
  view.note(BOUND);
  const adopted = { ...BOUND, sends: 2, token: 'adoption', adopted: true as const };
  view.note(adopted);
  expect(view.ledger).toEqual(adopted);
  noteSend(MINE, { epoch: 2, sends: 3 });
  expect(view.ledger).toEqual({ ledgerId: 'L', epoch: 2, sends: 3, token: 'mine' });
});

describe('a send', () => {
  it('is known by its payout and number, and as another one by its token', () => {
    noteSend(MINE);
    expect([view.knows('p', 1), view.knows('p', 2), view.knows('q', 1)]).toEqual([true, false, false]);
    expect([view.has(MINE), view.has(THEIRS)]).toEqual([true, false]);
    const others = [MINE, THEIRS, { ...THEIRS, attempt: 2 }, { ...THEIRS, payoutId: 'q' }];
    expect(others.map((send) => view.knowsFromAnother(send))).toEqual([false, true, false, false]);
  });

  it('has its own outcome, whichever sends stand between the two', () => {
    noteOutcome(MINE, NOT_SENT);
    noteSend(MINE);
    noteSend({ ...MINE, payoutId: 'q' });
    noteOutcome(THEIRS, NOT_SENT);
    expect(view.lastSends(9)[0]).toEqual(journaled(MINE));
    noteOutcome(MINE, { kind: 'accepted', txhash: 'h' });
    expect(view.lastSends(9).map(({ payoutId, outcome }) => `${payoutId} ${outcome?.kind}`)).toEqual([
      'p accepted',
      'q undefined',
    ]);
  });

  it.each([
    ['not_sent', false],
    ['accepted', true],
    ['rejected', true],
    ['unknown', true],
  ] as const)('that ended as %s stays known: %s', (kind, isKnown) => {
    noteSend(MINE);
    noteOutcome(MINE, { kind, txhash: 'h', message: 'm', reason: 'r' });
    expect([view.knows('p', 1), view.knowsFromAnother(THEIRS), view.has(MINE)]).toEqual([isKnown, isKnown, true]);
    expect(view.lastSends(1).map(wasSent)).toEqual([isKnown]);
  });

  it('that was not sent stays known where another sender may have sent the same number', () => {
    noteSend(MINE);
    noteSend(THEIRS);
    noteOutcome(MINE, NOT_SENT);
    expect(view.knows('p', 1)).toBe(true);
    noteOutcome(THEIRS, NOT_SENT);
    expect(view.knows('p', 1)).toBe(false);
  });

  it('that was not sent is not known when its outcome stands in the next file', () => {
    noteSend(MINE);
    view.startFile();
    noteOutcome(MINE, NOT_SENT);
    expect(view.knows('p', 1)).toBe(false);
  });

  it('of format 1 is told from others by payout and number too: its token is an epoch', () => {
    const former = { payoutId: 'p', attempt: 1, token: 'e:3' };
    const all = [former, { ...former, payoutId: 'q' }, { ...former, attempt: 2 }].map(identify);
    expect(new Set(all).size).toBe(3);
  });
});

it('what is held is the keys of the last two files', () => {
  noteSend(MINE);
  view.startFile();
  noteSend({ ...MINE, payoutId: 'q' });
  expect([view.knows('p', 1), view.knows('q', 1)]).toEqual([true, true]);
  view.startFile();
  expect([view.knows('p', 1), view.knows('q', 1)]).toEqual([false, true]);
});

it('what is held is the newest 200 sends whole', () => {
  const ids = Array.from({ length: 250 }, (_, index) => `p-${index + 1}`);
  for (const payoutId of ids) noteSend({ payoutId, attempt: 1, token: `t-${payoutId}` });
  const held = (count: number) => view.lastSends(count).map(({ payoutId }) => payoutId);
  expect([held(Infinity), held(2)]).toEqual([ids.slice(50), ids.slice(248)]);
  expect(view.knows('p-1', 1)).toBe(true);
});

describe('a ledger that is compared with the journal', () => {
  const VIEW: SenderView = {
    ...{ ledgerId: 'L', lease: { owner: 'one', epoch: 4, heartbeat: 0, released: false }, sendCount: 9, last: 'ninth' },
    ...{ lastJournalId: 'j-mine', awaitingAnswer: false, inFlightMs: 0, pausedReason: undefined },
    ...{ objections: [], journals: [] },
  };
  const STANDS = { ledgerId: 'L', epoch: 4, sends: 9, token: 'ninth' };
  const OTHER = { ledgerId: 'M', lease: undefined };

  const aSend = (payoutId: string, token = `t-${payoutId}`): JournalLine =>
    journaled({ payoutId, attempt: 2, token }, { epoch: 4, sends: 9 });
  const resultOf = (outcome: JournaledOutcome): JournalLine => {
    return { payoutId: 'p', attempt: 2, token: 't-p', at: 0, outcome };
  };
  const others = (count: number) => Array.from({ length: count }, (_, index) => aSend(`other-${index}`));

  interface Case {
    readonly view?: Partial<SenderView>;
    readonly lines?: readonly JournalLine[];
    /** What the ledger knows of the sends. */
    readonly knows?: (token: string) => boolean;
    /** Where the journal stands after its lines. */
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

  const all = (): boolean => true;
  const butP = (token: string): boolean => token !== 't-p';
  const NOTED = { journalId: 'j-mine', host: 'h', dir: '/d', sends: 10, token: 'tenth', at: 0 };
  const AHEAD = { sendCount: 11, last: 'eleventh' };

  it.each<[string, Case]>([
    ['knows all', { lines: [aSend('p')], knows: all }],
    ['knows more sends', { view: { sendCount: 10, last: 'another' } }],
    ['has a newer epoch', { view: { lease: { owner: 'one', epoch: 5, heartbeat: 0, released: false } } }],
    [
      'is another that knows all its sends: it was adopted',
      { view: { ...OTHER, sendCount: 10 }, lines: [aSend('p')], knows: all },
    ],
    ['is another with more sends, where the journal has none', { view: { ...OTHER, sendCount: 10 } }],
    ['has no name for the last send, as under format 1', { view: { last: '' } }],
    ['has another last send where the journal has no name for it', { stands: { ...STANDS, token: '' } }],
    ['does not know the 101st send from the end', { lines: [aSend('p'), ...others(100)], knows: butP }],
    ['does not know what was journaled and not sent', { lines: [aSend('p'), resultOf(NOT_SENT)] }],
    ['knows as many of this journal', { view: { ...AHEAD, journals: [{ ...NOTED, sends: 9 }] } }],
  ])('fits where it %s', async (_, given) => {
    expect(await compare(given)).toBeUndefined();
  });

  const older = (detail: string): string => `This Redis holds an older copy of the ledger: ${detail}.`;
  const another = 'This Redis holds another ledger (M) than the send journal knows (L): it was flushed or exchanged.';
  const forgot = older('it does not know that payout p was sent (attempt 2)');

  it.each<[string, Case, string, LedgerMismatch['kind']?]>([
    ['is another that does not know its sends', { view: { ledgerId: 'M' }, lines: [aSend('p')] }, another],
    [
      'is another with fewer sends, though the journal has none that are missing',
      { view: { ...OTHER, sendCount: 8, last: 'eighth' }, lines: [aSend('p')], knows: all },
      another,
    ],
    ['is another with fewer sends than the journal stands at', { view: { ...OTHER, sendCount: 8 } }, another],
    [
      'has an older epoch',
      { view: { lease: { owner: 'one', epoch: 3, heartbeat: 0, released: false } } },
      older('its lease epoch is 3, the journal has seen 4'),
    ],
    ['has no lease any more', { view: { lease: undefined } }, older('its lease epoch is 0, the journal has seen 4')],
    ['has fewer sends', { view: { sendCount: 8 } }, older('it knows 8 sends, the journal 9')],
    ['has another last send', { view: { last: 'another' } }, older("its send 9 differs from the journal's")],
    [
      'knows the payout and number of another sender only',
      { lines: [aSend('p', 'mine')], knows: (token) => token === 'theirs' },
      forgot,
    ],
    ['does not know the 100th from the end', { lines: [aSend('p'), ...others(99)], knows: butP }, forgot],
    ['does not know the last', { lines: [...others(99), aSend('p')], knows: butP }, forgot],
    [
      'does not know one whose outcome is unknown',
      { lines: [aSend('p'), resultOf({ kind: 'unknown', reason: 'silence' })] },
      forgot,
    ],
    [
      'knows entries of the journal which that lacks',
      { view: { ...AHEAD, journals: [{ ...NOTED, journalId: 'j-other', sends: 11 }, NOTED] } },
      'The send journal lacks its last entries: it ends with send number 9, the ledger knows that it had number 10.',
      'journal',
    ],
  ])('does not fit where it %s', async (_, given, reason, kind = 'ledger') => {
    expect(await compare(given)).toEqual({ kind, reason });
  });

  it('fits a journal that is new, whatever it is', async () => {
    expect(await find(new MemoryJournal(), { ...OTHER, sendCount: 0 }, all)).toBeUndefined();
  });
});

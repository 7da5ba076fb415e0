import { beforeEach, describe, expect, it } from '@jest/globals';
import { identify, type JournaledOutcome } from '../../src/journal/journal-line.js';
import { JournalView, wasSent } from '../../src/journal/journal-view.js';
import type { SendAttempt } from '../../src/ledger/sender-ledger.js';
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

describe('what a journal comes to', () => {
  it('is nothing at first', () => {
    expect({ id: view.journalId, ledger: view.ledger, peers: view.peers, sends: view.lastSends(9) }).toEqual({
      id: undefined,
      ledger: undefined,
      peers: [],
      sends: [],
    });
    expect(view.knows('p', 1)).toBe(false);
  });

  it('knows which journal it is', () => {
    view.note({ v: 2, journalId: 'j' });
    expect(view.journalId).toBe('j');
  });

  it('knows other journals, each as it was noted last', () => {
    view.note({ peers: [{ journalId: 'a', host: 'h', dir: '/a' }] });
    view.note({
      peers: [
        { journalId: 'b', host: 'h', dir: '/b' },
        { journalId: 'a', host: 'h', dir: '/moved' },
      ],
    });
    expect(view.peers).toEqual([
      { journalId: 'a', host: 'h', dir: '/moved' },
      { journalId: 'b', host: 'h', dir: '/b' },
    ]);
  });
});

describe('where its ledger stands', () => {
  it('follows the sends', () => {
    view.note(BOUND);
    noteSend(MINE, { epoch: 3, sends: 5 });
    expect(view.ledger).toEqual({ ledgerId: 'L', epoch: 3, sends: 5, token: 'mine' });
  });

  it('is not set back by a send that was written late', () => {
    view.note(BOUND);
    noteSend(MINE, { epoch: 1, sends: 4 });
    noteSend(THEIRS, { epoch: 1, sends: 3 });
    expect(view.ledger).toEqual(BOUND);
  });

  it('is where an adoption puts it, also when that is lower', () => {
    view.note(BOUND);
    view.note({ ...BOUND, sends: 2, token: 'adoption', adopted: true });
    expect(view.ledger).toEqual({ ...BOUND, sends: 2, token: 'adoption', adopted: true });
    noteSend(MINE, { epoch: 2, sends: 3 });
    expect(view.ledger).toEqual({ ledgerId: 'L', epoch: 2, sends: 3, token: 'mine' });
  });

  it('is not known from sends alone', () => {
    noteSend(MINE);
    expect(view.ledger).toBeUndefined();
  });
});

describe('a send', () => {
  it('is known by its payout and number, and as another one by its token', () => {
    noteSend(MINE);
    expect([view.knows('p', 1), view.knows('p', 2), view.knows('q', 1)]).toEqual([true, false, false]);
    expect([view.has(MINE), view.has(THEIRS)]).toEqual([true, false]);
    expect(view.knowsFromAnother(MINE)).toBe(false);
    expect(view.knowsFromAnother(THEIRS)).toBe(true);
    expect(view.knowsFromAnother({ ...THEIRS, attempt: 2 })).toBe(false);
    expect(view.knowsFromAnother({ ...THEIRS, payoutId: 'q' })).toBe(false);
  });

  it('has its outcome, whichever sends stand between the two', () => {
    noteSend(MINE);
    noteSend({ ...MINE, payoutId: 'q' });
    noteOutcome(MINE, { kind: 'accepted', txhash: 'h' });
    expect(view.lastSends(9).map(({ payoutId, outcome }) => [payoutId, outcome?.kind])).toEqual([
      ['p', 'accepted'],
      ['q', undefined],
    ]);
  });

  it('is not changed by an outcome of another, or of one that was never noted', () => {
    noteOutcome(MINE, NOT_SENT);
    noteSend(MINE);
    noteOutcome(THEIRS, NOT_SENT);
    expect(view.lastSends(9)).toEqual([journaled(MINE)]);
    expect(view.knows('p', 1)).toBe(true);
  });

  it('that was not sent is not known any more, by anyone', () => {
    noteSend(MINE);
    noteOutcome(MINE, NOT_SENT);
    expect(view.knows('p', 1)).toBe(false);
    expect(view.knowsFromAnother(THEIRS)).toBe(false);
    expect(view.has(MINE)).toBe(true);
    expect(view.lastSends(1).map(wasSent)).toEqual([false]);
  });

  it.each(['accepted', 'rejected', 'unknown'] as const)('that ended as %s stays known', (kind) => {
    noteSend(MINE);
    noteOutcome(MINE, { kind, txhash: 'h', message: 'm', reason: 'r' });
    expect(view.knows('p', 1)).toBe(true);
    expect(view.knowsFromAnother(THEIRS)).toBe(true);
    expect(view.lastSends(1).map(wasSent)).toEqual([true]);
  });

  it('that was not sent stays known where another sender may have sent the same number', () => {
    noteSend(MINE);
    noteSend(THEIRS);
    noteOutcome(MINE, NOT_SENT);
    expect(view.knows('p', 1)).toBe(true);
    noteOutcome(THEIRS, NOT_SENT);
    expect(view.knows('p', 1)).toBe(false);
  });

  it('that was not sent is not known either when its outcome stands in the next file', () => {
    noteSend(MINE);
    view.startFile();
    noteOutcome(MINE, NOT_SENT);
    expect(view.knows('p', 1)).toBe(false);
  });

  it('of format 1 is told from others by payout and number too, since its token is only an epoch', () => {
    const former = { payoutId: 'p', attempt: 1, token: 'e:3' };
    expect(identify(former)).not.toBe(identify({ ...former, payoutId: 'q' }));
    expect(identify(former)).not.toBe(identify({ ...former, attempt: 2 }));
  });
});

describe('what is held', () => {
  it('is the keys of two files, the present one and the one before', () => {
    noteSend(MINE);
    view.startFile();
    noteSend({ ...MINE, payoutId: 'q' });
    expect([view.knows('p', 1), view.knows('q', 1)]).toEqual([true, true]);
    view.startFile();
    expect([view.knows('p', 1), view.knows('q', 1)]).toEqual([false, true]);
  });

  it('is the newest 200 sends whole', () => {
    for (let number = 1; number <= 250; number += 1)
      noteSend({ payoutId: `p-${number}`, attempt: 1, token: `t-${number}` });
    const held = view.lastSends(Infinity);
    expect(held).toHaveLength(200);
    expect([held[0]?.payoutId, held.at(-1)?.payoutId]).toEqual(['p-51', 'p-250']);
    expect(view.lastSends(2).map(({ payoutId }) => payoutId)).toEqual(['p-249', 'p-250']);
    expect(view.knows('p-1', 1)).toBe(true);
  });
});

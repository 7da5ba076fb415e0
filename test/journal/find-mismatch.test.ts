import { describe, expect, it } from '@jest/globals';
import { findMismatch, type LedgerMismatch } from '../../src/journal/find-mismatch.js';
import type { JournalLine } from '../../src/journal/journal-line.js';
import type { SenderLedger, SenderView } from '../../src/ledger/sender-ledger.js';
import { MemoryJournal } from '../doubles/memory-journal.js';
import { journaled } from '../worker/support/send-rig.js';

const VIEW: SenderView = {
  ledgerId: 'L',
  lease: { owner: 'one', epoch: 4, heartbeat: 0, released: false },
  sendCount: 9,
  last: 'ninth',
  lastJournalId: 'j-mine',
  awaitingAnswer: false,
  inFlightMs: 0,
  pausedReason: undefined,
  objections: [],
  journals: [],
};
const BOUND = { ledgerId: 'L', epoch: 4, sends: 9, token: 'ninth' };

const aSend = (payoutId: string, token = `t-${payoutId}`): JournalLine =>
  journaled({ payoutId, attempt: 2, token }, { epoch: 4, sends: 9 });

interface Case {
  readonly view?: Partial<SenderView>;
  readonly lines?: readonly JournalLine[];
  /** The tokens that the ledger knows. */
  readonly known?: readonly string[];
}

function ledgerThatKnows(tokens: readonly string[]): Pick<SenderLedger, 'findForgottenSends'> {
  return {
    findForgottenSends: async (sends) =>
      Promise.resolve(
        sends.filter(({ token }) => !tokens.includes(token)).map((send) => ({ send, state: 'queued' as const })),
      ),
  };
}

/** A journal that has these lines, and then is bound as {@link BOUND} says. */
async function mismatch({ view = {}, lines = [], known = [] }: Case): Promise<LedgerMismatch | undefined> {
  const journal = new MemoryJournal();
  journal.given(...lines, BOUND);
  return findMismatch(journal, { ...VIEW, ...view }, ledgerThatKnows(known));
}

const older = (detail: string): LedgerMismatch => ({
  kind: 'ledger',
  reason: `This Redis holds an older copy of the ledger: ${detail}.`,
});

describe('findMismatch', () => {
  it('finds none where the ledger knows as much as the journal, or more', async () => {
    expect(await mismatch({ lines: [aSend('p')], known: ['t-p'] })).toBeUndefined();
    const ahead = { lease: { owner: 'two', epoch: 5, heartbeat: 0, released: true }, sendCount: 10, last: 'tenth' };
    expect(await mismatch({ view: ahead, lines: [aSend('p')], known: ['t-p'] })).toBeUndefined();
  });

  it('finds none for a journal that is new, whatever the ledger is', async () => {
    const view = { ...VIEW, ledgerId: 'other', lease: undefined, sendCount: 0 };
    expect(await findMismatch(new MemoryJournal(), view, ledgerThatKnows([]))).toBeUndefined();
  });

  it('refuses another ledger that does not know its sends', async () => {
    expect(await mismatch({ view: { ledgerId: 'M' }, lines: [aSend('p')] })).toEqual({
      kind: 'ledger',
      reason: 'This Redis holds another ledger (M) than the send journal knows (L): it was flushed or exchanged.',
    });
  });

  it('finds none with another ledger that knows all its sends: it was adopted with a copy of this journal', async () => {
    const view = { ledgerId: 'M', lease: undefined, sendCount: 10, last: 'adopted' };
    expect(await mismatch({ view, lines: [aSend('p')], known: ['t-p'] })).toBeUndefined();
    expect(await mismatch({ view })).toBeUndefined();
  });

  it('refuses another ledger with fewer sends, though the journal has none of those that are missing', async () => {
    const view = { ledgerId: 'M', lease: undefined, sendCount: 8, last: 'eighth' };
    expect((await mismatch({ view, lines: [aSend('p')], known: ['t-p'] }))?.kind).toBe('ledger');
    expect((await mismatch({ view }))?.reason).toMatch(/another ledger \(M\)/);
  });

  it('refuses an older epoch, also where there is no lease any more', async () => {
    const view = { lease: { owner: 'one', epoch: 3, heartbeat: 0, released: false } };
    expect(await mismatch({ view })).toEqual(older('its lease epoch is 3, the journal has seen 4'));
    expect(await mismatch({ view: { lease: undefined } })).toEqual(
      older('its lease epoch is 0, the journal has seen 4'),
    );
  });

  it('refuses fewer sends', async () => {
    expect(await mismatch({ view: { sendCount: 8 } })).toEqual(older('it knows 8 sends, the journal 9'));
  });

  it('refuses as many sends of which the last is another', async () => {
    expect(await mismatch({ view: { last: 'another' } })).toEqual(older("its send 9 differs from the journal's"));
    expect(await mismatch({ view: { sendCount: 10, last: 'another' } })).toBeUndefined();
  });

  it('does not compare the last sends where a format 1 left one of them without a name', async () => {
    expect(await mismatch({ view: { last: '' } })).toBeUndefined();
    const journal = new MemoryJournal();
    journal.given({ ...BOUND, token: '' });
    expect(await findMismatch(journal, VIEW, ledgerThatKnows([]))).toBeUndefined();
  });

  it('knows a send by its token: the same payout and number of another sender is another send', async () => {
    const reason = older('it does not know that payout p was sent (attempt 2)');
    expect(await mismatch({ lines: [aSend('p', 'mine')], known: ['theirs'] })).toEqual(reason);
  });

  it('refuses a ledger that does not know any of the last 100 sends', async () => {
    const others = Array.from({ length: 99 }, (_, index) => aSend(`other-${index}`));
    const known = Array.from({ length: 99 }, (_, index) => `t-other-${index}`);
    const reason = older('it does not know that payout p was sent (attempt 2)');
    expect(await mismatch({ lines: [aSend('p'), ...others], known })).toEqual(reason);
    expect(await mismatch({ lines: [...others, aSend('p')], known })).toEqual(reason);
  });

  it('looks no further back than that', async () => {
    const others = Array.from({ length: 100 }, (_, index) => aSend(`other-${index}`));
    const known = Array.from({ length: 100 }, (_, index) => `t-other-${index}`);
    expect(await mismatch({ lines: [aSend('p'), ...others], known })).toBeUndefined();
  });

  it('misses no attempt that was journaled and then not sent', async () => {
    const notSent = { payoutId: 'p', attempt: 2, token: 't-p', at: 0 };
    const outcome = { kind: 'not_sent', reason: 'the connection ended' } as const;
    expect(await mismatch({ lines: [aSend('p'), { ...notSent, outcome }] })).toBeUndefined();
    const unknown = { kind: 'unknown', reason: 'silence' } as const;
    expect(await mismatch({ lines: [aSend('p'), { ...notSent, outcome: unknown }] })).toBeDefined();
  });

  it('says that the journal lacks entries which the ledger knows it had', async () => {
    const noted = { journalId: 'j-mine', host: 'h', dir: '/d', sends: 10, token: 'tenth', at: 0 };
    const view = { sendCount: 11, last: 'eleventh', journals: [{ ...noted, journalId: 'j-other', sends: 11 }, noted] };
    expect(await mismatch({ view })).toEqual({
      kind: 'journal',
      reason:
        'The send journal lacks its last entries: it ends with send number 9, the ledger knows that it had number 10.',
    });
    expect(await mismatch({ view: { ...view, journals: [{ ...noted, sends: 9 }] } })).toBeUndefined();
  });
});

import { describe, expect, it } from '@jest/globals';
import type { SenderLedger, SenderView } from '../../src/ledger/sender-ledger.js';
import { findDisagreement, type JournaledSend } from '../../src/worker/send-journal.js';
import { MemoryJournal } from './support/memory-journal.js';

const NOW = Date.UTC(2030, 0, 10);
const DAY_MS = 24 * 60 * 60 * 1000;

const VIEW: SenderView = {
  ledgerId: 'L',
  lease: { owner: 'one', epoch: 4, beat: 0, released: false },
  sends: 9,
  unanswered: false,
  pausedReason: undefined,
};

function aSend(payoutId: string, attempt = 2, at = NOW - 1_000): JournaledSend {
  return { payoutId, attempt, epoch: 4, sends: 9, at, request: { paymentId: 7, amount: '1', addressTo: 'w' } };
}

interface Case {
  readonly view?: Partial<SenderView>;
  readonly sends?: readonly JournaledSend[];
  /** By payout, the attempt that the ledger has. */
  readonly attempts?: Readonly<Record<string, number>>;
}

/** A ledger that has these attempts, all under the journal's epoch. */
function ledgerWith(attempts: Readonly<Record<string, number>>): Pick<SenderLedger, 'findForgottenSends'> {
  return {
    findForgottenSends: async (sends) =>
      Promise.resolve(
        sends
          .filter(({ payoutId, attempt }) => (attempts[payoutId] ?? 0) < attempt)
          .map((send) => ({ send, state: attempts[send.payoutId] === undefined ? undefined : 'queued' })),
      ),
  };
}

async function disagreement({ view = {}, sends = [], attempts = {} }: Case): Promise<string | undefined> {
  const journal = new MemoryJournal();
  journal.ledger = { ledgerId: 'L', epoch: 4, sends: 9 };
  journal.sends.push(...sends);
  return findDisagreement(journal, { ...VIEW, ...view }, ledgerWith(attempts), NOW);
}

describe('findDisagreement', () => {
  it('finds none where the ledger knows as much as the journal, or more', async () => {
    expect(await disagreement({ sends: [aSend('p')], attempts: { p: 2 } })).toBeUndefined();
    const ahead = { lease: { owner: 'two', epoch: 5, beat: 0, released: true }, sends: 10 };
    expect(await disagreement({ view: ahead, sends: [aSend('p')], attempts: { p: 3 } })).toBeUndefined();
  });

  it('finds none for a journal that is new, whatever the ledger is', async () => {
    const view = { ...VIEW, ledgerId: 'other', lease: undefined, sends: 0 };
    expect(await findDisagreement(new MemoryJournal(), view, ledgerWith({}), NOW)).toBeUndefined();
  });

  it('refuses another ledger', async () => {
    expect(await disagreement({ view: { ledgerId: 'M' } })).toBe(
      'This Redis holds another ledger (M) than the send journal knows (L): it was flushed or exchanged.',
    );
  });

  it('refuses an older epoch, also where there is no lease any more', async () => {
    expect(await disagreement({ view: { lease: { owner: 'one', epoch: 3, beat: 0, released: false } } })).toBe(
      'This Redis holds an older copy of the ledger: its lease epoch is 3, the journal has seen 4.',
    );
    expect(await disagreement({ view: { lease: undefined } })).toContain('its lease epoch is 0');
  });

  it('refuses fewer sends', async () => {
    expect(await disagreement({ view: { sends: 8 } })).toBe(
      'This Redis holds an older copy of the ledger: it knows 8 sends, the journal 9.',
    );
  });

  it('refuses a ledger that has an earlier attempt of any of the last 100 sends', async () => {
    const others = Array.from({ length: 99 }, (_, index) => aSend(`other-${index}`));
    const attempts = Object.fromEntries(others.map(({ payoutId }) => [payoutId, 2]));
    const reason = 'This Redis holds an older copy of the ledger: it does not know that payout p was sent (attempt 2).';
    expect(await disagreement({ sends: [aSend('p'), ...others], attempts: { ...attempts, p: 1 } })).toBe(reason);
    expect(await disagreement({ sends: [...others, aSend('p')], attempts: { ...attempts, p: 1 } })).toBe(reason);
  });

  it('looks no further back than that', async () => {
    const others = Array.from({ length: 100 }, (_, index) => aSend(`other-${index}`));
    const attempts = Object.fromEntries(others.map(({ payoutId }) => [payoutId, 2]));
    expect(await disagreement({ sends: [aSend('p'), ...others], attempts: { ...attempts, p: 1 } })).toBeUndefined();
  });

  it('misses a payout that was sent within a day; one that is older may have been removed', async () => {
    expect(await disagreement({ sends: [aSend('p', 2, NOW - DAY_MS + 1)] })).toContain('payout p was sent');
    expect(await disagreement({ sends: [aSend('p', 2, NOW - DAY_MS)] })).toBeUndefined();
  });
});

import { expect, it } from '@jest/globals';
import { compareSend, type Removal } from '../../../src/cli/audit/compare-send.js';
import type { JournaledOutcome } from '../../../src/journal/journal-line.js';
import { type AuditedRecord, KnownAttempts } from '../../../src/ledger/reads/read-audited.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { PAYOUT_STATES, type PayoutState } from '../../../src/ledger/states.js';
import { aSend } from '../../journal/support/journal-folder.js';

const ACCEPTED: JournaledOutcome = { kind: 'accepted', txhash: 'h' };
const REJECTED: JournaledOutcome = { kind: 'rejected', message: 'no' };
const UNKNOWN: JournaledOutcome = { kind: 'unknown', reason: 'silence' };
const NOT_SENT: JournaledOutcome = { kind: 'not_sent', reason: 'the connection ended' };

function payout(state: PayoutState, given: Partial<Payout> = {}): Payout {
  const about = { payoutId: 'p', paymentId: 7, amount: '12.5', addressTo: 'wallet-1', attempt: 1, requeueCount: 0 };
  return { ...about, state, createdAt: '', updatedAt: '', history: [], ...given };
}

function found(of: Payout, tokens = 't-1'): AuditedRecord {
  return { kind: 'payout', payout: of, attempts: new KnownAttempts({ attempt: String(of.attempt), tokens }) };
}

const removed = (state: string): AuditedRecord => ({ kind: 'removed', state });

const DAY_MS = 86_400_000;
const REMOVAL: Removal = {
  ...{ hasLater: false, retentionDays: 30, isArchived: false, now: aSend('p', 1).at + 30 * DAY_MS },
};

/** The words of what is found: `right`, `on word` or kinds. */
function compare(outcome: JournaledOutcome | undefined, record: AuditedRecord, removal: Partial<Removal> = {}): string {
  const send = aSend('p', 1, { attempt: 1, ...(outcome && { outcome }) });
  const { findings, isOnWord } = compareSend(send, record, { ...REMOVAL, ...removal });
  return isOnWord ? 'on word' : findings.length === 0 ? 'right' : findings.map(({ kind }) => kind).join();
}

it.each<[string, JournaledOutcome | undefined, ofRecord: PayoutState[], ofRemoved: PayoutState[]]>([
  [
    ...(['accepted', ACCEPTED] as const),
    ['sending', 'in_progress', 'completed', 'failed', 'unknown'],
    ['completed', 'failed'],
  ],
  ['rejected', REJECTED, ['queued', 'held', 'sending', 'rejected', 'unknown', 'cancelled'], ['rejected', 'cancelled']],
  ['unknown', UNKNOWN, ['sending', 'unknown', 'cancelled'], ['completed', 'failed', 'cancelled']],
  ['no outcome', undefined, ['sending', 'unknown', 'cancelled'], ['completed', 'failed', 'cancelled']],
  ['not sent', NOT_SENT, ['queued', 'held', 'sending', 'unknown', 'cancelled'], ['cancelled']],
])(
  'a state that follows from a journal that says %s is right, every other is found',
  (_, outcome, ofRecord, ofRemoved) => {
    const txhash = outcome?.kind === 'accepted' ? { txhash: 'h' } : {};
    for (const state of PAYOUT_STATES) {
      const inRecord = compare(outcome, found(payout(state, txhash)));
      expect([state, inRecord]).toEqual([state, ofRecord.includes(state) ? 'right' : 'state']);
      const wasRemoved = compare(outcome, removed(state));
      expect([state, wasRemoved]).toEqual([state, ofRemoved.includes(state) ? 'right' : 'state']);
    }
  },
);

it('another transaction than the accepted one is found', () => {
  expect(compare(ACCEPTED, found(payout('completed', { txhash: 'other' })))).toBe('txhash');
  expect(compare(ACCEPTED, found(payout('completed')))).toBe('txhash');
  const accepted: JournaledOutcome = { kind: 'accepted', txhash: 'ab'.repeat(32) };
  const again = { attempt: 2, txhash: `0x${'AB'.repeat(32)}` };
  expect(compare(accepted, found(payout('completed', { txhash: again.txhash })))).toBe('right');
  expect(compare(accepted, found(payout('completed', again), 't-1 t-2'))).toBe('right');
});

it('what an operator stated rests on his word', () => {
  const vouched = { txhash: 'given', vouchedTxhash: 'given' };
  for (const outcome of [ACCEPTED, REJECTED, UNKNOWN, undefined]) {
    expect(compare(outcome, found(payout('completed', vouched)))).toBe('on word');
  }
  expect(compare(UNKNOWN, found(payout('completed', { ...vouched, txhash: 'another' })))).toBe('state');
  expect(compare(UNKNOWN, found(payout('queued', { requeueCount: 1 })))).toBe('on word');
  // Of what was accepted, nobody can state that it was not sent.
  expect(compare(ACCEPTED, found(payout('queued', { requeueCount: 1 })))).toBe('state');
});

it('a payout, or an attempt, that the ledger does not know is found', () => {
  expect(compare(ACCEPTED, { kind: 'missing' })).toBe('not_in_ledger');
  expect(compare(undefined, { kind: 'missing' })).toBe('not_in_ledger');
  expect(compare(NOT_SENT, { kind: 'missing' })).toBe('right');
  expect(compare(ACCEPTED, found(payout('queued', { attempt: 0 }), ''))).toBe('not_in_ledger');
  expect(compare(ACCEPTED, found(payout('completed', { txhash: 'h' }), 'other'))).toBe('not_in_ledger');
  expect(compare(NOT_SENT, found(payout('queued', { attempt: 0 }), ''))).toBe('right');
});

it('a payout that retention removed is found where it cannot have come into its state', () => {
  for (const [outcome, state, removal, expected] of [
    [REJECTED, 'completed', { hasLater: true }, 'right'],
    [ACCEPTED, 'rejected', { hasLater: true }, 'state'],
    [ACCEPTED, 'completed', { retentionDays: undefined }, 'removed'],
    [ACCEPTED, 'completed', { now: REMOVAL.now - 1 }, 'removed'],
    [ACCEPTED, 'completed', { retentionDays: 31 }, 'removed'],
    [ACCEPTED, 'completed', { retentionDays: undefined, isArchived: true }, 'right'],
    [ACCEPTED, 'rejected', { retentionDays: undefined, isArchived: true }, 'state'],
  ] as const)
    expect(compare(outcome, removed(state), removal)).toBe(expected);
});

it('a later attempt after an accepted one is found, not after another', () => {
  const again = found(payout('completed', { attempt: 2, txhash: 'second' }), 't-1 t-2');
  expect(compare(ACCEPTED, again)).toBe('sent_again');
  for (const outcome of [REJECTED, UNKNOWN, NOT_SENT, undefined]) expect(compare(outcome, again)).toBe('right');
  expect(compare(ACCEPTED, found(payout('completed', { attempt: 2, txhash: 'h' }), 't-1 t-2'))).toBe('right');
});

it('of two attempts of one number, from before and after Redis came back older, the newest has the state', () => {
  const both = found(payout('completed', { txhash: 'second' }), 't-1/t-2');
  expect(compare(REJECTED, both)).toBe('right');
  expect(compare(ACCEPTED, both)).toBe('sent_again');
});

it('another payment than the one that was sent is found', () => {
  const others = { paymentId: 8, amount: '12.50', addressTo: 'wallet-2', symbol: 'USD' };
  for (const [field, value] of Object.entries(others)) {
    const { findings } = compareSend(aSend('p', 1), found(payout('unknown', { [field]: value })), REMOVAL);
    const message = expect.stringContaining(`and is ${value} in the ledger`);
    expect(findings).toMatchObject([{ payoutId: 'p', attempt: 1, kind: 'altered', message }]);
  }
});

it('the attempts that a record names are known by number and token', () => {
  const knows = (record: Record<string, string>, ...attempts: [attempt: number, token: string][]): boolean[] =>
    attempts.map(([attempt, token]) => new KnownAttempts(record).knows({ attempt, token }));
  const record = { attempt: '3', tokens: 'a b/c ?' };
  expect(knows(record, [1, 'a'], [2, 'b'], [2, 'c'], [3, 'd'])).toEqual([true, true, true, false]);
  expect(knows(record, [1, 'b'], [0, ''], [4, 'd'])).toEqual([false, false, false]);
  expect(new KnownAttempts(record).isNewest({ attempt: 2, token: 'c' })).toBe(false);
  const former = { attempt: '2', epoch: '5' };
  expect(knows(former, [2, 'e:5'], [1, 'e:4'], [2, 'e:4'], [1, 'abc'])).toEqual([true, true, false, false]);
  // What no version writes takes no time.
  for (const attempt of ['1e300', 'many']) expect(knows({ attempt }, [5, 'x'])).toEqual([false]);
});

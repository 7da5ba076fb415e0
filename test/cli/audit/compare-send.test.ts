import { describe, expect, it } from '@jest/globals';
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

describe('a state that follows from what the journal says is right, every other is found', () => {
  it.each<[string, JournaledOutcome | undefined, PayoutState[]]>([
    ['accepted', ACCEPTED, ['sending', 'in_progress', 'completed', 'failed', 'unknown']],
    ['rejected', REJECTED, ['queued', 'held', 'sending', 'rejected', 'unknown', 'cancelled']],
    ['unknown', UNKNOWN, ['sending', 'unknown', 'cancelled']],
    ['no outcome', undefined, ['sending', 'unknown', 'cancelled']],
    ['not sent', NOT_SENT, ['queued', 'held', 'sending', 'unknown', 'cancelled']],
  ])('%s', (_name, outcome, right) => {
    const txhash = outcome?.kind === 'accepted' ? { txhash: 'h' } : {};
    const results = PAYOUT_STATES.map((state) => [state, compare(outcome, found(payout(state, txhash)))]);
    expect(results).toEqual(PAYOUT_STATES.map((state) => [state, right.includes(state) ? 'right' : 'state']));
  });
});

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

it('a payout, or an attempt, that the ledger does not know is found, unless it was not sent after all', () => {
  expect(compare(ACCEPTED, { kind: 'missing' })).toBe('not_in_ledger');
  expect(compare(undefined, { kind: 'missing' })).toBe('not_in_ledger');
  expect(compare(NOT_SENT, { kind: 'missing' })).toBe('right');
  expect(compare(ACCEPTED, found(payout('queued', { attempt: 0 }), ''))).toBe('not_in_ledger');
  expect(compare(ACCEPTED, found(payout('completed', { txhash: 'h' }), 'other'))).toBe('not_in_ledger');
  expect(compare(NOT_SENT, found(payout('queued', { attempt: 0 }), ''))).toBe('right');
});

describe('a payout of which Redis says that retention removed it', () => {
  const removed = (state: string): AuditedRecord => ({ kind: 'removed', state });

  it.each<[string, JournaledOutcome | undefined, string[]]>([
    ['accepted', ACCEPTED, ['completed', 'failed']],
    ['rejected', REJECTED, ['rejected', 'cancelled']],
    ['unknown', UNKNOWN, ['completed', 'failed', 'cancelled']],
    ['no outcome', undefined, ['completed', 'failed', 'cancelled']],
    ['not sent', NOT_SENT, ['cancelled']],
  ])('was in a state that follows from the journal: %s', (_name, outcome, right) => {
    const results = PAYOUT_STATES.map((state) => [state, compare(outcome, removed(state))]);
    expect(results).toEqual(PAYOUT_STATES.map((state) => [state, right.includes(state) ? 'right' : 'state']));
  });

  it('is found where it cannot have come into it, or retention cannot have come to it', () => {
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

it.each([
  ['paymentId', 8],
  ['amount', '12.50'],
  ['addressTo', 'wallet-2'],
  ['symbol', 'USD'],
] as const)('another %s than the one that was sent is found', (field, value) => {
  const { findings } = compareSend(aSend('p', 1), found(payout('unknown', { [field]: value })), REMOVAL);
  expect(findings).toMatchObject([
    { payoutId: 'p', attempt: 1, kind: 'altered', message: expect.stringContaining(`and is ${value} in the ledger`) },
  ]);
});

it('the attempts that a record names are known by number and token, of format 1 by the last epoch', () => {
  const attempts = (record: Record<string, string>): KnownAttempts => new KnownAttempts(record);
  const known = attempts({ attempt: '3', tokens: 'a b/c ?' });
  const knows = (of: KnownAttempts, attempt: number, token: string): boolean => of.knows({ attempt, token });
  expect([knows(known, 1, 'a'), knows(known, 2, 'b'), knows(known, 2, 'c'), knows(known, 3, 'd')]).toEqual([
    ...[true, true, true, false],
  ]);
  expect([knows(known, 1, 'b'), knows(known, 0, ''), knows(known, 4, 'd')]).toEqual([false, false, false]);
  expect(known.isNewest({ attempt: 2, token: 'c' })).toBe(false);
  const former = attempts({ attempt: '2', epoch: '5' });
  expect([knows(former, 2, 'e:5'), knows(former, 1, 'e:4')]).toEqual([true, true]);
  expect([knows(former, 2, 'e:4'), knows(former, 1, 'abc')]).toEqual([false, false]);
  // What no version writes takes no time.
  for (const attempt of ['1e300', 'many']) expect(knows(attempts({ attempt }), 5, 'x')).toBe(false);
});

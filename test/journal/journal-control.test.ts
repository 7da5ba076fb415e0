import { beforeEach, describe, expect, it } from '@jest/globals';
import { rm } from 'node:fs/promises';
import type { JournaledOutcome, SendLine, SignedSend } from '../../src/journal/journal-line.js';
import { SentAttempts } from '../../src/journal/journal-retention.js';
import { verifyJournal } from '../../src/control/audit/verify-journal.js';
import { MemoryJournal } from '../doubles/memory-journal.js';
import {
  age,
  aSend,
  files,
  folder,
  HEADER,
  LEDGER,
  longSends,
  useFolder,
  type JournalFolder,
} from './support/journal-folder.js';

const DAY_MS = 24 * 60 * 60 * 1_000;
const TOLERATED_MS = 5 * 60 * 1_000;
const ACT = 'ac'.repeat(32);
const OTHER_ACT = 'ad'.repeat(32);
const PAUSE = { at: 5, reason: 'the gateway blocked the account' };
const STATEMENT = { at: 6, by: 'alice', reason: 'new account' };
const REJECTION = { payoutId: 'p', rejection: '1a'.repeat(32), by: 'bob', person: 'bob' };
/** Where the ledger stands at the beginning of a new file. */
const MOVED = { ledgerId: 'ledger', epoch: 3, sends: 17, token: 't-17' };
const NOT_SENT: JournaledOutcome = { kind: 'not_sent', reason: 'refused' };

useFolder();

function signed(given: Partial<SignedSend> = {}): SignedSend {
  const proof = { signature: 'S', audience: 'shop' };
  const times = { issuedAt: Date.now(), expiresAt: Date.now() + 7 * DAY_MS };
  return { intent: '1a'.repeat(32), key: 'shop', ...times, proof, ...given };
}
const send = (payoutId: string, attempt: number, given: Partial<SendLine> = {}): SendLine =>
  aSend(payoutId, attempt, { attempt, token: `${payoutId}-${attempt}`, signed: signed(), ...given });
const intact = async (): Promise<unknown> => (await verifyJournal(folder.dir, 1))?.faults;

describe.each<[string, () => Promise<MemoryJournal | Awaited<ReturnType<JournalFolder['open']>>>]>([
  ['on disk', async () => folder.open()],
  ['of the tests', async () => Promise.resolve(new MemoryJournal())],
])('a journal %s', (_, open) => {
  it('counts an attempt until it is proved not to be sent, or an act clears it', async () => {
    const journal = await open();
    await journal.bind(LEDGER);
    const kinds: JournaledOutcome[] = [
      { kind: 'rejected', message: 'no' },
      NOT_SENT,
      { kind: 'unknown', reason: 'silence', inFlightUntil: 0 },
      { kind: 'accepted', gatewayId: 'h' },
    ];
    for (const [index, outcome] of kinds.entries()) {
      await journal.append(send('p', index + 1));
      journal.noteOutcome(send('p', index + 1), outcome, 5);
    }
    await journal.append(send('q', 1));
    expect(journal.unclearedAttempts('p', 5)).toEqual([1, 3, 4]);
    expect(journal.unclearedAttempts('p', 3)).toEqual([1]);
    expect(journal.unclearedAttempts('q', 9)).toEqual([1]);
    expect(journal.unclearedAttempts('r', 9)).toEqual([]);
    // Below a number that is none, too.
    expect(journal.unclearedAttempts('p', NaN)).toEqual([1, 3, 4]);
    expect(journal.hasAct(ACT)).toBe(false);
    await journal.append(send('p', 5, { signed: signed({ act: ACT, clears: [3, 4] }) }));
    expect(journal.unclearedAttempts('p', 9)).toEqual([1, 5]);
    expect([journal.hasAct(ACT), journal.hasAct(OTHER_ACT)]).toEqual([true, false]);
    // What an act cleared was sent all the same: its number is not used again.
    expect(journal.knows('p', 3)).toBe(true);
  });

  it('counts an attempt by another sender, and one without a signature', async () => {
    const journal = await open();
    await journal.bind(LEDGER);
    await journal.append(send('p', 1));
    await journal.append(send('p', 1, { token: 'theirs' }));
    journal.noteOutcome(send('p', 1), NOT_SENT, 5);
    await journal.append(aSend('q', 3));
    expect(journal.unclearedAttempts('p', 2)).toEqual([1]);
    expect(journal.unclearedAttempts('q', Number.MAX_SAFE_INTEGER)).toEqual([1]);
    journal.noteOutcome({ payoutId: 'p', attempt: 1, token: 'theirs' }, NOT_SENT, 5);
    await journal.notePeers([]);
    expect(journal.unclearedAttempts('p', 2)).toEqual([]);
  });

  it('is paused until an act resumes it, and knows the acts that were used', async () => {
    const journal = await open();
    expect([journal.pausedAt, journal.pausedReason]).toEqual([undefined, undefined]);
    await journal.notePaused(PAUSE);
    expect([journal.pausedAt, journal.pausedReason]).toEqual([5, PAUSE.reason]);
    await journal.noteResumed({ at: 7, act: ACT });
    expect(journal.pausedAt).toBeUndefined();
    expect([journal.hasAct(ACT), journal.hasAct(OTHER_ACT)]).toEqual([true, false]);
  });

  it('has each verified rejection until it was taken back', async () => {
    const journal = await open();
    const second = { ...REJECTION, rejection: '2b'.repeat(32), by: 'ann' };
    await journal.noteRejected(REJECTION);
    await journal.noteRejected(REJECTION);
    await journal.noteRejected(second);
    expect(journal.rejectionsOf(REJECTION.payoutId)).toEqual([REJECTION, second]);
    expect(journal.rejectionsOf('q')).toEqual([]);
    const { payoutId, rejection } = REJECTION;
    await journal.noteUnrejected({ payoutId, rejection });
    expect(journal.rejectionsOf(payoutId)).toEqual([second]);
    // A stopped process writes late.
    await journal.noteRejected(REJECTION);
    expect(journal.rejectionsOf(payoutId)).toEqual([second]);
  });

  it('counts as complete from the beginning once an operator stated it', async () => {
    const journal = await open();
    await journal.noteComplete(STATEMENT);
    expect([journal.bornAt, journal.prunedUpTo]).toEqual([0, 0]);
  });
});

describe('a journal that begins a new file', () => {
  it('keeps birth, statement, pause and attempts, also over many files and restarts', async () => {
    await folder.write([HEADER, LEDGER, send('old', 1), { complete: STATEMENT }, { paused: PAUSE }], 1);
    await folder.write([HEADER, LEDGER, send('old', 2)], 2);
    await folder.writeFull('a');
    const journal = await folder.open();
    expect(journal.bornAt).toBe(0);
    await journal.append(aSend('p', 17));
    expect(await files()).toEqual(['1.journal', '1.journal.1', '1.journal.2', '1.journal.3']);
    expect((await folder.lines()).slice(0, 3)).toEqual([{ ...HEADER, complete: STATEMENT }, MOVED, { paused: PAUSE }]);
    const again = await folder.open();
    expect(again).toMatchObject({ bornAt: 0, pausedAt: 5, pausedReason: PAUSE.reason });
    expect(again.unclearedAttempts('old', 9)).toEqual([1, 2]);
    expect([again.knows('old', 1), again.knows('old', 2)]).toEqual([true, true]);
    expect(await intact()).toEqual([]);
  });

  it('takes along the rejections that still count, and the newest rates in dollars', async () => {
    const over = { ...REJECTION, rejection: '2b'.repeat(32) };
    const unrejected = { payoutId: over.payoutId, rejection: over.rejection };
    const rates = (at: number, usd: object) => ({ rates: { at, usd } });
    const noted = [rates(1, { 6: '1', 10: '60000' }), rates(2, { 10: '61000.5' })];
    await folder.write([HEADER, LEDGER, { rejected: over }, { unrejected }, { rejected: REJECTION }, ...noted], 1);
    await folder.writeFull('a');
    const journal = await folder.open();
    await journal.noteRates({ at: 3, usd: { 7: '2' } });
    await journal.append(aSend('p', 17));
    const first = (await folder.lines()).filter((line) => !('rates' in (line as object))).slice(0, 3);
    expect(first).toEqual([HEADER, MOVED, { rejected: REJECTION }]);
    await Promise.all([1, 2].map(async (number) => rm(folder.path(number))));
    const again = await folder.open();
    expect(again.rejectionsOf(REJECTION.payoutId)).toEqual([REJECTION]);
    expect(again.rateAnchors).toEqual(
      new Map([
        [6, { rate: '1', at: 1 }],
        [7, { rate: '2', at: 3 }],
        [10, { rate: '61000.5', at: 2 }],
      ]),
    );
    expect(await intact()).toEqual([]);
  });
});

describe('how many replicas of Redis are known', () => {
  const NAMES = ['10.0.0.2:6379'];
  const seen = (count: number) => ({ at: 7, count, names: NAMES });
  const lowered = (count: number) => ({ ...seen(count), lowered: { by: 'ann', reason: 'node-3 was removed' } });

  it('rises by itself, falls by an operator’s act alone, and is read again', async () => {
    const journal = await folder.open();
    expect(journal.knownReplicas).toBe(0);
    const found: number[] = [];
    for (const note of [seen(3), seen(1), lowered(1), seen(0), seen(2)]) {
      await journal.noteReplicas(note);
      found.push(journal.knownReplicas, (await folder.open()).knownReplicas);
    }
    expect(found).toEqual([3, 3, 3, 3, 1, 1, 1, 1, 2, 2]);
    expect(await intact()).toEqual([]);
  });

  it('is taken along by a new file', async () => {
    await folder.write([HEADER, LEDGER, { replicas: seen(3) }, { replicas: lowered(2) }], 1);
    await folder.writeFull('a');
    const journal = await folder.open();
    await journal.append(aSend('p', 17));
    await Promise.all([1, 2].map(async (number) => rm(folder.path(number))));
    expect((await folder.open()).knownReplicas).toBe(2);
    expect(await intact()).toEqual([]);
  });
});

describe('files with signed sends', () => {
  const expiresAt = Date.now() - 2 * DAY_MS;
  const valid = Date.now() - DAY_MS / 2;

  it('are removed a day after the last of them expired, and their reach stays known', async () => {
    await folder.write([HEADER, LEDGER, send('p', 1, { signed: signed({ expiresAt }) })], 1);
    await folder.write([HEADER, LEDGER, send('q', 2, { signed: signed({ expiresAt: valid }) })], 2);
    await folder.write([HEADER, LEDGER], 3);
    await folder.write([HEADER, LEDGER]);
    for (const [index, days] of [40, 7, 40].entries()) await age(index + 1, days);
    const journal = await folder.open({ keepDays: 1 });
    expect(await files()).toEqual(['1.journal', '1.journal.2', '1.journal.3']);
    expect(journal.prunedUpTo).toBe(expiresAt);
    expect((await folder.lines()).at(-1)).toEqual({ ...HEADER, prunedUpTo: expiresAt });
    expect(journal.unclearedAttempts('q', 9)).toEqual([2]);
    const before = await folder.text();
    expect((await folder.open({ keepDays: 1 })).prunedUpTo).toBe(expiresAt);
    expect(await folder.text()).toBe(before);
    expect(await intact()).toEqual([]);
  });

  it.each([
    [7.5, ['1.journal', '1.journal.1', '1.journal.2']],
    [8.5, ['1.journal', '1.journal.2']],
  ])('are kept while an act in them could be used again: %d days after it', async (days, left) => {
    const at = Math.round(Date.now() - days * DAY_MS);
    await folder.write([HEADER, LEDGER, { resumed: { at, act: ACT } }], 1);
    await folder.write([HEADER, LEDGER], 2);
    await folder.write([HEADER, LEDGER]);
    await age(1, days);
    const journal = await folder.open({ keepDays: 1 });
    expect(await files()).toEqual(left);
    const expiresAt = left.length === 3 ? 0 : at + 7 * DAY_MS + TOLERATED_MS;
    expect(Math.abs(journal.prunedUpTo - expiresAt)).toBeLessThan(5_000);
    expect(journal.hasAct(ACT)).toBe(left.length === 3);
  });
});

describe('sends of processes without keys', () => {
  const accepted: JournaledOutcome = { kind: 'accepted', gatewayId: 'h' };
  const result = (payoutId: string, outcome: JournaledOutcome): object => ({
    ...{ payoutId, attempt: 1, token: 't-1', outcome },
    at: 5,
  });
  const unsigned = (payoutId: string): SendLine => aSend(payoutId, 1, { at: Date.now() });
  const known = (journal: Awaited<ReturnType<JournalFolder['open']>>) =>
    ['lost', 'paid', 'unsent'].filter((id) => journal.unclearedAttempts(id, Infinity).length > 0);

  beforeEach(async () => {
    await folder.write([HEADER, LEDGER, unsigned('lost')], 1);
    await folder.write([HEADER, LEDGER, unsigned('paid'), result('paid', accepted)], 2);
    await folder.write([HEADER, LEDGER, unsigned('unsent'), result('unsent', NOT_SENT)], 3);
    await folder.write([HEADER, LEDGER], 4);
    await folder.write([HEADER, LEDGER, { complete: STATEMENT }]);
  });

  it('are known where payouts have to be signed', async () => {
    for (const number of [1, 2, 3]) await age(number, 8);
    const journal = await folder.open({ holdsUnsigned: true, keepDays: 1 });
    expect(known(journal)).toEqual(['lost', 'paid']);
    expect(journal.wasAccepted('paid', 1)).toBe(true);
    expect(journal.knows('lost', 1)).toBe(true);
    expect(journal.prunedUpTo).toBe(0);
    expect(known(await folder.open())).toEqual([]);
  });

  it('are not read, or removed, once older, and until when their intents held is known', async () => {
    for (const number of [1, 2, 3]) await age(number, 8.1);
    const journal = await folder.open({ holdsUnsigned: true });
    expect(known(journal)).toEqual([]);
    const expiresAt = Date.now() - 1.1 * DAY_MS + TOLERATED_MS;
    expect(Math.abs(journal.prunedUpTo - expiresAt)).toBeLessThan(5_000);
    expect((await folder.lines()).at(-1)).toEqual({ complete: STATEMENT });
    // A process without keys removes them, and says so to those that have some.
    const other = await folder.open({ keepDays: 1 });
    expect(await files()).toEqual(['1.journal', '1.journal.4']);
    expect((await folder.lines()).at(-1)).toMatchObject({ v: 1, prunedUpTo: other.prunedUpTo });
    expect((await folder.open({ holdsUnsigned: true })).prunedUpTo).toBe(other.prunedUpTo);
    expect(await intact()).toEqual([]);
  });

  it('are known to a process that runs on, however many files are begun', async () => {
    const journal = await folder.open({ holdsUnsigned: true });
    const other = await folder.open();
    await other.append(aSend('new', 1, { at: Date.now() }));
    await journal.reload();
    for (const name of ['a', 'b', 'c']) {
      for (const line of longSends(name, 2)) await other.append(line);
      await other.append(aSend(name, 18));
    }
    await journal.reload();
    expect(journal.unclearedAttempts('new', 9)).toEqual([1]);
    expect(other.unclearedAttempts('new', 9)).toEqual([]);
  });
});

describe('the attempts that are held', () => {
  it('are forgotten with the intents that expired, and no others', () => {
    const attempts = new SentAttempts();
    attempts.noteSend(send('p', 1, { signed: signed({ expiresAt: 3 * DAY_MS - 1 }) }));
    attempts.noteSend(send('q', 1, { signed: signed({ expiresAt: 3 * DAY_MS }) }));
    attempts.forget(3 * DAY_MS - 1);
    expect(attempts.numbersOf('p')).toEqual([1]);
    attempts.forget(3 * DAY_MS);
    expect([attempts.numbersOf('p'), attempts.numbersOf('q')]).toEqual([[], [1]]);
  });

  it('are the same when lines are read twice', () => {
    const attempts = new SentAttempts();
    const lines = [send('p', 1), send('p', 2, { signed: signed({ clears: [1] }) })];
    for (const line of [...lines, ...lines]) attempts.noteSend(line);
    for (let times = 0; times < 2; times += 1) {
      attempts.noteOutcome({ payoutId: 'p', attempt: 2, token: 'p-2', outcome: NOT_SENT, at: 5 });
    }
    expect([attempts.numbersOf('p'), attempts.isCleared('p', 1)]).toEqual([[1], true]);
  });
});

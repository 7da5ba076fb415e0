import { beforeEach, describe, expect, it } from '@jest/globals';
import { RedisUnavailableError } from '../../../src/errors.js';
import type { JournaledOutcome } from '../../../src/journal/journal-line.js';
import type { SendAttempt } from '../../../src/ledger/sender-ledger.js';
import { AttemptRecorder, type AttemptRecorderOptions } from '../../../src/worker/sender/attempt-recorder.js';
import { JOURNAL } from '../../ledger/contract/ledger-rig.js';
import { DOUBT_MS, GRACE_MS, journaled, listeningLogger, makeSendRig, type SendRig } from '../support/send-rig.js';

let rig: SendRig;
let book: AttemptRecorder;
beforeEach(async () => {
  rig = await makeSendRig();
  book = makeBook();
});

function makeBook(given: Partial<AttemptRecorderOptions> = {}): AttemptRecorder {
  const { clock, port, journal, held, stopGrace, unrecordable, said } = rig;
  return new AttemptRecorder({
    clock,
    ledger: port,
    journal,
    held,
    stopGrace,
    catchUpWithJournal: async () => journal.reload(),
    doubtMs: DOUBT_MS,
    maxRejectionsInARow: 2,
    maxUnknownsInARow: 2,
    onUnrecordable: (reason) => void unrecordable.push(reason),
    logger: listeningLogger(said),
    ...given,
  });
}

const accepted = { kind: 'accepted', txhash: 'h', durationMs: 1 } as const;
const rejected = (message: string) => ({ kind: 'rejected', message, durationMs: 1 }) as const;
const silence = { kind: 'unknown', reason: 'silence', durationMs: 1 } as const;
const UNAVAILABLE = new RedisUnavailableError('Redis unavailable');

const begin = async (payoutId: string): Promise<SendAttempt> => rig.begin(payoutId);
const stateOf = async (payoutId: string) => (await rig.ledger.readPayout(payoutId))?.state;
const lastChangeOf = async (payoutId: string) => (await rig.ledger.readPayout(payoutId))?.history.at(-1);

/** The lease goes to another process, whose book knows nothing of what was begun before. */
async function bookOfTheNext(): Promise<AttemptRecorder> {
  const epoch = (await rig.ledger.acquireLease('two', await rig.ledger.readSender(), JOURNAL, 0)) ?? 0;
  return makeBook({ held: { ...rig.held, lease: { owner: 'two', epoch } } });
}

describe('finish', () => {
  it('records the outcome, and says nothing of it', async () => {
    await book.finish(await begin('p'), accepted);
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'in_progress', txhash: 'h' });
    expect(rig.said).toEqual([]);
    expect(rig.unrecordable).toEqual([]);
  });

  it('notes the outcome in the journal before it asks the ledger', async () => {
    const attempt = await begin('p');
    let inJournal: readonly string[] = [];
    rig.before.finishSend = () => void (inJournal = rig.journal.outcomes);
    await book.finish(attempt, accepted);
    expect(inJournal).toEqual(['p 1 accepted']);
    expect(rig.journal.lines.at(-1)).toEqual({
      ...attempt,
      outcome: { kind: 'accepted', txhash: 'h' },
      at: rig.clock.wallNow(),
    });
  });

  it('asks until Redis answers, less and less often, but every two seconds at least', async () => {
    const attempt = await begin('p');
    const asked: number[] = [];
    rig.before.finishSend = () => {
      asked.push(rig.clock.now());
      if (asked.length < 9) throw UNAVAILABLE;
    };
    await rig.clock.until(book.finish(attempt, accepted));
    const gaps = asked.slice(1).map((at, index) => at - (asked[index] ?? 0));
    expect(gaps).toEqual([50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
    expect(await stateOf('p')).toBe('in_progress');
    expect(rig.said).toHaveLength(8);
    expect(rig.said[0]).toBe('warn cannot record the outcome: Redis unavailable');
    expect(rig.unrecordable).toEqual([]);
  });

  it('says, as an error, why Redis refuses to record it, tries on, and says when it could be recorded', async () => {
    const attempt = await begin('p');
    let asked = 0;
    rig.before.finishSend = () => {
      asked += 1;
      if (asked < 3) throw new Error("OOM command not allowed when used memory > 'maxmemory'");
    };
    await rig.clock.until(book.finish(attempt, accepted));
    const reason = "cannot record the outcome, payout p: OOM command not allowed when used memory > 'maxmemory'";
    expect(rig.unrecordable).toEqual([reason, reason, undefined]);
    expect(rig.said).toEqual(Array(2).fill('error cannot record the outcome: Redis refuses it'));
    expect(await stateOf('p')).toBe('in_progress');
  });

  it('ends once the grace of a process that must end is over, after one more try', async () => {
    const attempt = await begin('p');
    let asked = 0;
    rig.before.finishSend = () => {
      asked += 1;
      throw UNAVAILABLE;
    };
    const finishing = book.finish(attempt, accepted);
    await rig.clock.advance(60);
    expect(asked).toBe(2);
    rig.ending.abort();
    const endedAt = rig.clock.now();
    await rig.clock.until(finishing);
    expect(rig.clock.now()).toBeGreaterThanOrEqual(endedAt + GRACE_MS);
    expect(rig.clock.now()).toBeLessThan(endedAt + GRACE_MS + 3_000);
    expect(asked).toBeGreaterThan(5);
    expect(await stateOf('p')).toBe('sending');
    expect(rig.journal.outcomes).toEqual(['p 1 accepted']);
  });

  it('has the whole grace for an outcome that comes long after the stop', async () => {
    const attempt = await begin('p');
    rig.ending.abort();
    await rig.clock.advance(5 * GRACE_MS);
    const cameAt = rig.clock.now();
    rig.before.finishSend = () => {
      if (rig.clock.now() < cameAt + GRACE_MS / 2) throw UNAVAILABLE;
    };
    await rig.clock.until(book.finish(attempt, accepted));
    expect(await stateOf('p')).toBe('in_progress');
  });

  it('tells when somebody else has decided before', async () => {
    const attempt = await begin('p');
    await rig.ledger.finishSend(attempt, accepted, { maxRejectionsInARow: 9, maxUnknownsInARow: 9 }, 0);
    await book.finish(attempt, silence);
    expect(rig.said).toEqual(['warn the outcome had been recorded or decided before']);
    expect(await stateOf('p')).toBe('in_progress');
  });

  it('says loudly that a payout which was written off was paid', async () => {
    const attempt = await begin('p');
    await rig.ledger.finishSend(attempt, silence, { maxRejectionsInARow: 9, maxUnknownsInARow: 9 }, 0);
    rig.ledger.change({ payoutId: 'p', from: 'unknown', to: 'cancelled', by: 'ann', reason: 'settled' });
    await book.finish(attempt, accepted);
    expect(rig.said).toEqual(['error payout was paid after it was written off or put back: it may be paid twice']);
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'cancelled', lateTxhash: 'h' });
  });

  it('pauses at once when the answer looks like a block, and says so', async () => {
    await book.finish(await begin('p'), rejected('account blocked'));
    expect((await rig.ledger.readSender()).pausedReason).toBe(
      "the gateway's answer looks like a block: account blocked",
    );
    expect(rig.said).toEqual(['error the account is paused; `payouts resume` lets it send again']);
  });

  it.each([
    [rejected('wrong address'), '2 rejections in a row, the last: wrong address'],
    [silence, '2 sends in a row without a trustworthy answer, the last: silence'],
  ])('pauses after so many in a row as it was told: %j', async (outcome, reason) => {
    await book.finish(await begin('p'), outcome);
    expect((await rig.ledger.readSender()).pausedReason).toBeUndefined();
    await book.finish(await begin('q'), outcome);
    expect((await rig.ledger.readSender()).pausedReason).toBe(reason);
  });

  it('takes the words of a block for one only when the gateway said them', async () => {
    await book.finish(await begin('p'), { kind: 'unknown', reason: 'blocked by a proxy', durationMs: 1 });
    expect((await rig.ledger.readSender()).pausedReason).toBeUndefined();
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'unknown', message: 'blocked by a proxy' });
  });

  it('notes with an unknown outcome until when its request may be on its way', async () => {
    await book.finish(await begin('p'), silence);
    const resolve = { payoutId: 'p', from: 'unknown', to: 'queued', by: 'ann', reason: 'not there' } as const;
    expect(rig.ledger.change(resolve)).toEqual({ kind: 'in_doubt', forMs: DOUBT_MS });
    await rig.clock.advance(DOUBT_MS);
    expect(rig.ledger.change(resolve)).toBeUndefined();
  });
});

describe('confirmLast', () => {
  it('does nothing before the first outcome', async () => {
    rig.before.finishSend = () => {
      throw new Error('it should not be called');
    };
    await book.confirmLast();
  });

  it('changes nothing, and says nothing, where the outcome is known', async () => {
    await book.finish(await begin('p'), accepted);
    await book.confirmLast();
    expect(rig.said).toEqual([]);
  });

  it('records the outcome again where it was forgotten, with the pause that belongs to it', async () => {
    const attempt = await begin('p');
    const older = rig.ledger.snapshot();
    await book.finish(attempt, rejected('account blocked'));
    rig.ledger.restore(older);
    rig.said.length = 0;
    await book.confirmLast();
    expect(await stateOf('p')).toBe('rejected');
    expect(rig.said).toEqual(['error the account is paused; `payouts resume` lets it send again']);
  });

  it('does not tell an acceptance again whose txhash turned out to be of another payment', async () => {
    await book.finish(await begin('p'), accepted);
    rig.ledger.change({ payoutId: 'p', from: 'in_progress', to: 'unknown', reason: 'about another payment' });
    await book.confirmLast();
    expect(await stateOf('p')).toBe('unknown');
  });

  it('fails when Redis is unavailable, and does not wait for it', async () => {
    await book.finish(await begin('p'), rejected('no'));
    rig.before.finishSend = () => {
      throw UNAVAILABLE;
    };
    await expect(book.confirmLast()).rejects.toThrow('Redis unavailable');
  });
});

describe('revert', () => {
  it('puts the payout back, as soon as Redis answers, and notes in the journal that it was not sent', async () => {
    const attempt = await begin('p');
    await rig.journal.append(journaled(attempt));
    let asked = 0;
    rig.before.revertSend = () => {
      asked += 1;
      if (asked < 3) throw UNAVAILABLE;
    };
    await rig.clock.until(book.revert(attempt, 'the connection ended'));
    expect(await lastChangeOf('p')).toMatchObject({ to: 'queued', reason: 'the connection ended' });
    expect(rig.said[0]).toBe('warn cannot put back: Redis unavailable');
    expect(rig.journal.outcomes).toEqual(['p 1 not_sent']);
    expect(rig.journal.knows('p', 1)).toBe(false);
  });

  it('stays in the book: a begin that takes effect later is put back as well', async () => {
    rig.ending.abort();
    rig.before.revertSend = () => {
      throw UNAVAILABLE;
    };
    const attempt = { payoutId: 'p', attempt: 1, token: 'lost' };
    book.mayBegin(attempt);
    await rig.clock.until(book.revert(attempt, 'no reply'));
    book.ended();
    delete rig.before.revertSend;
    await rig.begin('p', attempt);
    await book.resolveLeftovers();
    expect(await lastChangeOf('p')).toMatchObject({
      to: 'queued',
      reason: 'its begin was noted late; it was not sent',
    });
  });

  it('uses up the number of an attempt that never began', async () => {
    await book.revert({ payoutId: 'p', attempt: 1, token: 'lost' }, 'no reply');
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'queued', attempt: 1 });
  });

  it.each<[string, () => void]>([
    [
      'another sender journaled the same number: it may have sent it',
      () => {
        rig.journal.othersWrite(journaled({ payoutId: 'p', attempt: 1, token: 'theirs' }));
      },
    ],
    [
      'the journal cannot be read',
      () => {
        rig.journal.onReload = () => {
          throw new Error('EACCES');
        };
      },
    ],
  ])('leaves the payout as it is where %s', async (_, spoil) => {
    const attempt = await begin('p');
    await rig.journal.append(journaled(attempt));
    spoil();
    await book.revert(attempt, 'the connection ended');
    expect(await stateOf('p')).toBe('sending');
    await book.resolveLeftovers();
    // It is not this process that may say that it was not sent.
    expect(await stateOf('p')).not.toBe('queued');
  });

  it('puts it back where the other sender noted that it did not send', async () => {
    const theirs = { payoutId: 'p', attempt: 1, token: 'theirs' };
    rig.journal.othersWrite(journaled(theirs), { ...theirs, outcome: { kind: 'not_sent', reason: 'r' }, at: 0 });
    await book.revert(await begin('p'), 'the connection ended');
    expect(await stateOf('p')).toBe('queued');
  });
});

describe('resolveLeftovers', () => {
  it('puts back what has begun and was not written', async () => {
    book.mayBegin(await begin('p'));
    book.ended();
    await book.resolveLeftovers();
    expect(await stateOf('p')).toBe('queued');
  });

  it('leaves the attempt alone that is under way, begun or already written', async () => {
    const attempt = await begin('p');
    book.mayBegin(attempt);
    await book.resolveLeftovers();
    expect(await stateOf('p')).toBe('sending');
    book.noteBegun(attempt);
    await book.resolveLeftovers();
    book.noteWritten(attempt);
    await book.resolveLeftovers();
    expect(await stateOf('p')).toBe('sending');
  });

  it('never puts back what may have been written', async () => {
    const attempt = await begin('p');
    book.mayBegin(attempt);
    book.noteWritten(attempt);
    book.ended();
    await book.resolveLeftovers();
    expect(await stateOf('p')).toBe('unknown');
  });

  it('puts back no attempt that another sender journaled under the same number', async () => {
    const attempt = await begin('p');
    book.mayBegin(attempt);
    book.ended();
    rig.journal.othersWrite(journaled({ ...attempt, token: 'theirs' }));
    await book.resolveLeftovers();
    expect(await stateOf('p')).toBe('sending');
    await book.resolveLeftovers();
    expect(await stateOf('p')).toBe('unknown');
  });

  it('knows its own attempts by their tokens, not by their numbers', async () => {
    book.mayBegin({ payoutId: 'p', attempt: 1, token: 'mine' });
    book.ended();
    await begin('p');
    await book.resolveLeftovers();
    expect(await stateOf('p')).toBe('unknown');
  });

  it('forgets its unwritten attempts once another has begun: they can take effect no more', async () => {
    const late = { payoutId: 'q', attempt: 1, token: 'late' };
    book.mayBegin(late);
    expect(book.isUnwritten('late')).toBe(true);
    const attempt = await begin('p');
    book.mayBegin(attempt);
    book.noteBegun(attempt);
    expect({ late: book.isUnwritten('late'), now: book.isUnwritten(attempt.token) }).toEqual({
      late: false,
      now: true,
    });
    book.noteWritten(attempt);
    expect(book.isUnwritten(attempt.token)).toBe(false);
  });

  it('records the last outcome again rather than calling the payout unknown', async () => {
    const attempt = await begin('p');
    const older = rig.ledger.snapshot();
    await book.finish(attempt, accepted);
    rig.ledger.restore(older);
    rig.journal.lines.length = 0;
    await rig.journal.reload();
    await book.resolveLeftovers();
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'in_progress', txhash: 'h' });
  });

  describe('of an earlier sender', () => {
    const leave = async (outcome?: JournaledOutcome): Promise<void> => {
      const attempt = await begin('p');
      await rig.journal.append(journaled(attempt));
      if (outcome !== undefined) rig.journal.noteOutcome(attempt, outcome, 0);
      book = await bookOfTheNext();
      await book.resolveLeftovers();
    };

    it.each<[JournaledOutcome, object]>([
      [
        { kind: 'accepted', txhash: 'h' },
        { state: 'in_progress', txhash: 'h' },
      ],
      [
        { kind: 'rejected', message: 'no funds' },
        { state: 'rejected', message: 'no funds' },
      ],
      [{ kind: 'not_sent', reason: 'connection refused' }, { state: 'queued' }],
    ])('come to what the journal says: %j', async (outcome, payout) => {
      await leave(outcome);
      expect(await rig.ledger.readPayout('p')).toMatchObject(payout);
      expect((await lastChangeOf('p'))?.reason ?? '').not.toMatch(/its sender ended/);
    });

    it.each<[string, JournaledOutcome | undefined]>([
      ['that no trustworthy response came', { kind: 'unknown', reason: 'silence' }],
      ['nothing of their outcome', undefined],
    ])('become unknown where the journal says %s', async (_, outcome) => {
      await leave(outcome);
      expect(await rig.ledger.readPayout('p')).toMatchObject({
        state: 'unknown',
        message: 'its sender ended before the response came; it may have been sent',
      });
      expect(rig.said).toEqual([
        'error payout is unknown: its sender ended before the response came; `payouts resolve` decides',
      ]);
    });

    it('become unknown where the journal knows another attempt of the same number only', async () => {
      const attempt = await begin('p');
      const theirs = { ...attempt, token: 'theirs' };
      await rig.journal.append(journaled(theirs));
      rig.journal.noteOutcome(theirs, { kind: 'accepted', txhash: 'h' }, 0);
      await (await bookOfTheNext()).resolveLeftovers();
      expect(await stateOf('p')).toBe('unknown');
    });

    it('count for the breaker when the journal says that they were rejected', async () => {
      await leave({ kind: 'rejected', message: 'account blocked' });
      expect((await rig.ledger.readSender()).pausedReason).toMatch(/looks like a block/);
      expect(rig.said).toEqual([
        'info recorded the outcome from the journal',
        'error the account is paused; `payouts resume` lets it send again',
      ]);
    });

    it('stay where they are when the lease is lost meanwhile', async () => {
      await begin('p');
      await bookOfTheNext();
      await book.resolveLeftovers();
      expect(await stateOf('p')).toBe('sending');
    });
  });
});

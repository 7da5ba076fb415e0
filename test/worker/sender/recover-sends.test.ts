import { beforeEach, describe, expect, it } from '@jest/globals';
import type { JournaledOutcome } from '../../../src/journal/journal-line.js';
import { makeRecorderRig, recordersOfTheNext, type RecorderRig } from '../support/recorders.js';
import { journaled } from '../support/send-rig.js';

let rig: RecorderRig;
beforeEach(async () => {
  rig = await makeRecorderRig();
});

const accepted = { kind: 'accepted', txhash: 'h', durationMs: 1 } as const;

describe('resolveLeftovers', () => {
  it('puts back what has begun and was not written', async () => {
    rig.ownAttempts.trackBegin(await rig.begin('p'));
    rig.ownAttempts.clearCurrent();
    await rig.recovery.resolveLeftovers();
    expect(await rig.stateOf('p')).toBe('queued');
  });

  it('leaves the attempt alone that is under way, begun or already written', async () => {
    const attempt = await rig.begin('p');
    rig.ownAttempts.trackBegin(attempt);
    await rig.recovery.resolveLeftovers();
    expect(await rig.stateOf('p')).toBe('sending');
    rig.ownAttempts.confirmBegin(attempt);
    await rig.recovery.resolveLeftovers();
    rig.ownAttempts.release(attempt);
    await rig.recovery.resolveLeftovers();
    expect(await rig.stateOf('p')).toBe('sending');
  });

  it('never puts back what may have been written', async () => {
    const attempt = await rig.begin('p');
    rig.ownAttempts.trackBegin(attempt);
    rig.ownAttempts.release(attempt);
    rig.ownAttempts.clearCurrent();
    await rig.recovery.resolveLeftovers();
    expect(await rig.stateOf('p')).toBe('unknown');
  });

  it('puts back no attempt that another sender journaled under the same number', async () => {
    const attempt = await rig.begin('p');
    rig.ownAttempts.trackBegin(attempt);
    rig.ownAttempts.clearCurrent();
    rig.journal.othersWrite(journaled({ ...attempt, token: 'theirs' }));
    await rig.recovery.resolveLeftovers();
    expect(await rig.stateOf('p')).toBe('sending');
    await rig.recovery.resolveLeftovers();
    expect(await rig.stateOf('p')).toBe('unknown');
  });

  it('knows its own attempts by their tokens, not by their numbers', async () => {
    rig.ownAttempts.trackBegin({ payoutId: 'p', attempt: 1, token: 'mine' });
    rig.ownAttempts.clearCurrent();
    await rig.begin('p');
    await rig.recovery.resolveLeftovers();
    expect(await rig.stateOf('p')).toBe('unknown');
  });

  it('forgets its unwritten attempts once another has begun: they can take effect no more', async () => {
    const late = { payoutId: 'q', attempt: 1, token: 'late' };
    rig.ownAttempts.trackBegin(late);
    expect(rig.ownAttempts.hasUnwrittenToken('late')).toBe(true);
    const attempt = await rig.begin('p');
    rig.ownAttempts.trackBegin(attempt);
    rig.ownAttempts.confirmBegin(attempt);
    expect({
      late: rig.ownAttempts.hasUnwrittenToken('late'),
      now: rig.ownAttempts.hasUnwrittenToken(attempt.token),
    }).toEqual({
      late: false,
      now: true,
    });
    rig.ownAttempts.release(attempt);
    expect(rig.ownAttempts.hasUnwrittenToken(attempt.token)).toBe(false);
  });

  it('records the last outcome again rather than calling the payout unknown', async () => {
    const attempt = await rig.begin('p');
    const older = rig.ledger.snapshot();
    await rig.attempts.finish(attempt, accepted);
    rig.ledger.restore(older);
    rig.journal.lines.length = 0;
    await rig.journal.reload();
    await rig.recovery.resolveLeftovers();
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'in_progress', txhash: 'h' });
  });

  describe('of an earlier sender', () => {
    const leave = async (outcome?: JournaledOutcome): Promise<void> => {
      const attempt = await rig.begin('p');
      await rig.journal.append(journaled(attempt));
      if (outcome !== undefined) rig.journal.noteOutcome(attempt, outcome, 0);
      rig = { ...rig, ...(await recordersOfTheNext(rig)) };
      await rig.recovery.resolveLeftovers();
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
      expect((await rig.lastChangeOf('p'))?.reason ?? '').not.toMatch(/its sender ended/);
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
      const attempt = await rig.begin('p');
      const theirs = { ...attempt, token: 'theirs' };
      await rig.journal.append(journaled(theirs));
      rig.journal.noteOutcome(theirs, { kind: 'accepted', txhash: 'h' }, 0);
      await (await recordersOfTheNext(rig)).recovery.resolveLeftovers();
      expect(await rig.stateOf('p')).toBe('unknown');
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
      await rig.begin('p');
      await recordersOfTheNext(rig);
      await rig.recovery.resolveLeftovers();
      expect(await rig.stateOf('p')).toBe('sending');
    });
  });
});

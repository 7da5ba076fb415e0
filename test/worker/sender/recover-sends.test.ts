import { beforeEach, describe, expect, it } from '@jest/globals';
import type { JournaledOutcome } from '../../../src/journal/journal-line.js';
import type { SendAttempt } from '../../../src/ledger/sender-ledger.js';
import { makeRecorders, recordersOfTheNext, type Recorders } from '../support/recorders.js';
import { journaled, makeSendRig, type SendRig } from '../support/send-rig.js';

let rig: SendRig;
let ownAttempts: Recorders['ownAttempts'];
let attempts: Recorders['attempts'];
let recovery: Recorders['recovery'];
beforeEach(async () => {
  rig = await makeSendRig();
  ({ ownAttempts, attempts, recovery } = makeRecorders(rig));
});

const accepted = { kind: 'accepted', txhash: 'h', durationMs: 1 } as const;

const begin = async (payoutId: string): Promise<SendAttempt> => rig.begin(payoutId);
const stateOf = async (payoutId: string) => (await rig.ledger.readPayout(payoutId))?.state;
const lastChangeOf = async (payoutId: string) => (await rig.ledger.readPayout(payoutId))?.history.at(-1);

describe('resolveLeftovers', () => {
  it('puts back what has begun and was not written', async () => {
    ownAttempts.trackBegin(await begin('p'));
    ownAttempts.clearCurrent();
    await recovery.resolveLeftovers();
    expect(await stateOf('p')).toBe('queued');
  });

  it('leaves the attempt alone that is under way, begun or already written', async () => {
    const attempt = await begin('p');
    ownAttempts.trackBegin(attempt);
    await recovery.resolveLeftovers();
    expect(await stateOf('p')).toBe('sending');
    ownAttempts.confirmBegin(attempt);
    await recovery.resolveLeftovers();
    ownAttempts.release(attempt);
    await recovery.resolveLeftovers();
    expect(await stateOf('p')).toBe('sending');
  });

  it('never puts back what may have been written', async () => {
    const attempt = await begin('p');
    ownAttempts.trackBegin(attempt);
    ownAttempts.release(attempt);
    ownAttempts.clearCurrent();
    await recovery.resolveLeftovers();
    expect(await stateOf('p')).toBe('unknown');
  });

  it('puts back no attempt that another sender journaled under the same number', async () => {
    const attempt = await begin('p');
    ownAttempts.trackBegin(attempt);
    ownAttempts.clearCurrent();
    rig.journal.othersWrite(journaled({ ...attempt, token: 'theirs' }));
    await recovery.resolveLeftovers();
    expect(await stateOf('p')).toBe('sending');
    await recovery.resolveLeftovers();
    expect(await stateOf('p')).toBe('unknown');
  });

  it('knows its own attempts by their tokens, not by their numbers', async () => {
    ownAttempts.trackBegin({ payoutId: 'p', attempt: 1, token: 'mine' });
    ownAttempts.clearCurrent();
    await begin('p');
    await recovery.resolveLeftovers();
    expect(await stateOf('p')).toBe('unknown');
  });

  it('forgets its unwritten attempts once another has begun: they can take effect no more', async () => {
    const late = { payoutId: 'q', attempt: 1, token: 'late' };
    ownAttempts.trackBegin(late);
    expect(ownAttempts.hasUnwrittenToken('late')).toBe(true);
    const attempt = await begin('p');
    ownAttempts.trackBegin(attempt);
    ownAttempts.confirmBegin(attempt);
    expect({ late: ownAttempts.hasUnwrittenToken('late'), now: ownAttempts.hasUnwrittenToken(attempt.token) }).toEqual({
      late: false,
      now: true,
    });
    ownAttempts.release(attempt);
    expect(ownAttempts.hasUnwrittenToken(attempt.token)).toBe(false);
  });

  it('records the last outcome again rather than calling the payout unknown', async () => {
    const attempt = await begin('p');
    const older = rig.ledger.snapshot();
    await attempts.finish(attempt, accepted);
    rig.ledger.restore(older);
    rig.journal.lines.length = 0;
    await rig.journal.reload();
    await recovery.resolveLeftovers();
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'in_progress', txhash: 'h' });
  });

  describe('of an earlier sender', () => {
    const leave = async (outcome?: JournaledOutcome): Promise<void> => {
      const attempt = await begin('p');
      await rig.journal.append(journaled(attempt));
      if (outcome !== undefined) rig.journal.noteOutcome(attempt, outcome, 0);
      ({ recovery } = await recordersOfTheNext(rig));
      await recovery.resolveLeftovers();
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
      await (await recordersOfTheNext(rig)).recovery.resolveLeftovers();
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
      await recordersOfTheNext(rig);
      await recovery.resolveLeftovers();
      expect(await stateOf('p')).toBe('sending');
    });
  });
});

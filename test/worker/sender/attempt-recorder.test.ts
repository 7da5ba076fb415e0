import { beforeEach, describe, expect, it } from '@jest/globals';
import { RedisUnavailableError } from '../../../src/base/errors.js';
import { makeRecorderRig, type RecorderRig } from '../support/recorders.js';
import { DOUBT_MS, GRACE_MS, journaled } from '../support/send-rig.js';

let rig: RecorderRig;
beforeEach(async () => {
  rig = await makeRecorderRig();
});

const accepted = { kind: 'accepted', txhash: 'h', durationMs: 1 } as const;
const rejected = (message: string) => ({ kind: 'rejected', message, durationMs: 1 }) as const;
const silence = { kind: 'unknown', reason: 'silence', durationMs: 1 } as const;
const UNAVAILABLE = new RedisUnavailableError('Redis unavailable');

describe('finish', () => {
  it('records the outcome, and says nothing of it', async () => {
    await rig.attempts.finish(await rig.begin('p'), accepted);
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'in_progress', txhash: 'h' });
    expect(rig.said).toEqual([]);
    expect(rig.unrecordable).toEqual([]);
  });

  it('notes the outcome in the journal before it asks the ledger', async () => {
    const attempt = await rig.begin('p');
    let inJournal: readonly string[] = [];
    rig.before.finishSend = () => void (inJournal = rig.journal.outcomes);
    await rig.attempts.finish(attempt, accepted);
    expect(inJournal).toEqual(['p 1 accepted']);
    expect(rig.journal.lines.at(-1)).toEqual({
      ...attempt,
      outcome: { kind: 'accepted', txhash: 'h' },
      at: rig.clock.wallNow(),
    });
  });

  it('asks until Redis replies, less and less often, but every two seconds at least', async () => {
    const attempt = await rig.begin('p');
    const asked: number[] = [];
    rig.before.finishSend = () => {
      asked.push(rig.clock.now());
      if (asked.length < 9) throw UNAVAILABLE;
    };
    await rig.clock.until(rig.attempts.finish(attempt, accepted));
    const gaps = asked.slice(1).map((at, index) => at - (asked[index] ?? 0));
    expect(gaps).toEqual([50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
    expect(await rig.stateOf('p')).toBe('in_progress');
    expect(rig.said).toHaveLength(8);
    expect(rig.said[0]).toBe('warn cannot record the outcome: Redis unavailable');
    expect(rig.unrecordable).toEqual([]);
  });

  it('says, as an error, why Redis refuses to record it, tries on, and says when it could be recorded', async () => {
    const attempt = await rig.begin('p');
    let asked = 0;
    rig.before.finishSend = () => {
      asked += 1;
      if (asked < 3) throw new Error("OOM command not allowed when used memory > 'maxmemory'");
    };
    await rig.clock.until(rig.attempts.finish(attempt, accepted));
    const reason = "cannot record the outcome, payout p: OOM command not allowed when used memory > 'maxmemory'";
    expect(rig.unrecordable).toEqual([reason, reason, undefined]);
    expect(rig.said).toEqual(Array(2).fill('error cannot record the outcome: Redis refuses it'));
    expect(await rig.stateOf('p')).toBe('in_progress');
  });

  it('ends once the grace of a process that must end is over, after one more try', async () => {
    const attempt = await rig.begin('p');
    let asked = 0;
    rig.before.finishSend = () => {
      asked += 1;
      throw UNAVAILABLE;
    };
    const finishing = rig.attempts.finish(attempt, accepted);
    await rig.clock.advance(60);
    expect(asked).toBe(2);
    rig.ending.abort();
    const endedAt = rig.clock.now();
    await rig.clock.until(finishing);
    expect(rig.clock.now()).toBeGreaterThanOrEqual(endedAt + GRACE_MS);
    expect(rig.clock.now()).toBeLessThan(endedAt + GRACE_MS + 3_000);
    expect(asked).toBeGreaterThan(5);
    expect(await rig.stateOf('p')).toBe('sending');
    expect(rig.journal.outcomes).toEqual(['p 1 accepted']);
  });

  it('has the whole grace for an outcome that comes long after the stop', async () => {
    const attempt = await rig.begin('p');
    rig.ending.abort();
    await rig.clock.advance(5 * GRACE_MS);
    const cameAt = rig.clock.now();
    rig.before.finishSend = () => {
      if (rig.clock.now() < cameAt + GRACE_MS / 2) throw UNAVAILABLE;
    };
    await rig.clock.until(rig.attempts.finish(attempt, accepted));
    expect(await rig.stateOf('p')).toBe('in_progress');
  });

  it('reports when someone else has decided before', async () => {
    const attempt = await rig.begin('p');
    await rig.ledger.finishSend(attempt, accepted, { maxRejectionsInARow: 9, maxUnknownsInARow: 9 }, 0);
    await rig.attempts.finish(attempt, silence);
    expect(rig.said).toEqual(['warn the outcome had been recorded or decided before']);
    expect(await rig.stateOf('p')).toBe('in_progress');
  });

  it('says loudly that a payout which was written off was paid', async () => {
    const attempt = await rig.begin('p');
    await rig.ledger.finishSend(attempt, silence, { maxRejectionsInARow: 9, maxUnknownsInARow: 9 }, 0);
    rig.ledger.change({ payoutId: 'p', from: 'unknown', to: 'cancelled', by: 'ann', reason: 'settled' });
    await rig.attempts.finish(attempt, accepted);
    expect(rig.said).toEqual(['error payout was paid after it was written off or put back: it may be paid twice']);
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'cancelled', lateTxhash: 'h' });
  });

  it('pauses at once when the response looks like a block, and says so', async () => {
    await rig.attempts.finish(await rig.begin('p'), rejected('account blocked'));
    expect((await rig.ledger.readSender()).pausedReason).toBe(
      "the gateway's response looks like a block: account blocked",
    );
    expect(rig.said).toEqual(['error the account is paused; `payouts resume` lets it send again']);
  });

  it.each([
    [rejected('not today'), '2 rejections in a row, the last: not today'],
    [silence, '2 sends in a row without a trustworthy response, the last: silence'],
  ])('pauses after the configured number in a row: %j', async (outcome, reason) => {
    await rig.attempts.finish(await rig.begin('p'), outcome);
    expect((await rig.ledger.readSender()).pausedReason).toBeUndefined();
    await rig.attempts.finish(await rig.begin('q'), outcome);
    expect((await rig.ledger.readSender()).pausedReason).toBe(reason);
  });

  it('takes the words of a block for one only when the gateway said them', async () => {
    await rig.attempts.finish(await rig.begin('p'), { kind: 'unknown', reason: 'blocked by a proxy', durationMs: 1 });
    expect((await rig.ledger.readSender()).pausedReason).toBeUndefined();
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'unknown', message: 'blocked by a proxy' });
  });

  it('notes with an unknown outcome until when its request may be on its way', async () => {
    await rig.attempts.finish(await rig.begin('p'), silence);
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
    await rig.attempts.confirmLast();
  });

  it('changes nothing, and says nothing, where the outcome is known', async () => {
    await rig.attempts.finish(await rig.begin('p'), accepted);
    await rig.attempts.confirmLast();
    expect(rig.said).toEqual([]);
  });

  it('records the outcome again where it was forgotten, with the pause that belongs to it', async () => {
    const attempt = await rig.begin('p');
    const older = rig.ledger.snapshot();
    await rig.attempts.finish(attempt, rejected('account blocked'));
    rig.ledger.restore(older);
    rig.said.length = 0;
    await rig.attempts.confirmLast();
    expect(await rig.stateOf('p')).toBe('rejected');
    expect(rig.said).toEqual(['error the account is paused; `payouts resume` lets it send again']);
  });

  it('does not report an acceptance again whose txhash turned out to be of another payment', async () => {
    await rig.attempts.finish(await rig.begin('p'), accepted);
    rig.ledger.change({ payoutId: 'p', from: 'in_progress', to: 'unknown', reason: 'about another payment' });
    await rig.attempts.confirmLast();
    expect(await rig.stateOf('p')).toBe('unknown');
  });

  it('fails when Redis is unavailable, and does not wait for it', async () => {
    await rig.attempts.finish(await rig.begin('p'), rejected('no'));
    rig.before.finishSend = () => {
      throw UNAVAILABLE;
    };
    await expect(rig.attempts.confirmLast()).rejects.toThrow('Redis unavailable');
  });
});

describe('revert', () => {
  it('puts the payout back, as soon as Redis replies, and notes in the journal that it was not sent', async () => {
    const attempt = await rig.begin('p');
    await rig.journal.append(journaled(attempt));
    let asked = 0;
    rig.before.revertSend = () => {
      asked += 1;
      if (asked < 3) throw UNAVAILABLE;
    };
    await rig.clock.until(rig.attempts.revert(attempt, 'the connection ended'));
    expect(await rig.lastChangeOf('p')).toMatchObject({ to: 'queued', reason: 'the connection ended' });
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
    rig.ownAttempts.trackBegin(attempt);
    await rig.clock.until(rig.attempts.revert(attempt, 'no reply'));
    rig.ownAttempts.clearCurrent();
    delete rig.before.revertSend;
    await rig.begin('p', attempt);
    await rig.recovery.resolveLeftovers();
    expect(await rig.lastChangeOf('p')).toMatchObject({
      to: 'queued',
      reason: 'its begin took effect late; it was not sent',
    });
  });

  it('uses up the number of an attempt that never began', async () => {
    await rig.attempts.revert({ payoutId: 'p', attempt: 1, token: 'lost' }, 'no reply');
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
        rig.journal.othersWrite({ peers: [] });
        rig.journal.onReload = () => {
          throw new Error('EACCES');
        };
      },
    ],
  ])('leaves the payout as it is where %s', async (_, spoil) => {
    const attempt = await rig.begin('p');
    await rig.journal.append(journaled(attempt));
    spoil();
    await rig.attempts.revert(attempt, 'the connection ended');
    expect(await rig.stateOf('p')).toBe('sending');
    await rig.recovery.resolveLeftovers();
    // It is not this process that may say that it was not sent.
    expect(await rig.stateOf('p')).not.toBe('queued');
  });

  it('puts it back where the other sender noted that it did not send', async () => {
    const theirs = { payoutId: 'p', attempt: 1, token: 'theirs' };
    rig.journal.othersWrite(journaled(theirs), { ...theirs, outcome: { kind: 'not_sent', reason: 'r' }, at: 0 });
    await rig.attempts.revert(await rig.begin('p'), 'the connection ended');
    expect(await rig.stateOf('p')).toBe('queued');
  });
});

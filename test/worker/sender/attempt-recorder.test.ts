import { beforeEach, describe, expect, it } from '@jest/globals';
import type { SentOutcome } from '../../../src/gateway/gateway.js';
import { StopGrace } from '../../../src/worker/sender/attempt-recorder.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { NO_BREAKER } from '../../ledger/contract/ledger-rig.js';
import {
  DOUBT_MS,
  GRACE_MS,
  journaled,
  makeSendRig,
  throwing,
  UNAVAILABLE,
  type SendRig,
} from '../support/send-rig.js';

let rig: SendRig;
beforeEach(async () => {
  rig = await makeSendRig();
});

const durationMs = 1;
const accepted = { kind: 'accepted', txhash: 'h', durationMs } as const;
const rejected = (message: string) => ({ kind: 'rejected', message, durationMs }) as const;
const silence = { kind: 'unknown', reason: 'silence', durationMs } as const;
const LOST = { payoutId: 'p', attempt: 1, token: 'lost' };
const PUT_BACK = { payoutId: 'p', from: 'unknown', to: 'queued', by: 'ann', reason: 'not there' } as const;
const PAUSED = 'error the account is paused; `payouts resume` lets it send again';

const finish = async (outcome: SentOutcome & { durationMs: number }, payoutId = 'p'): Promise<void> =>
  rig.attempts.finish(await rig.begin(payoutId), outcome);

describe('finish', () => {
  it('notes the outcome in the journal before it asks the ledger', async () => {
    const attempt = await rig.begin();
    let inJournal: readonly string[] = [];
    rig.before.finishSend = () => void (inJournal = rig.journal.outcomes);
    await rig.attempts.finish(attempt, accepted);
    expect(inJournal).toEqual(['p 1 accepted']);
    const outcome = { kind: 'accepted', txhash: 'h' };
    expect(rig.journal.lines.at(-1)).toEqual({ ...attempt, outcome, at: rig.clock.wallNow() });
  });

  it('asks until Redis replies, less and less often, but every two seconds at least', async () => {
    const asked = rig.fail('finishSend', UNAVAILABLE, 8);
    await rig.clock.until(finish(accepted));
    const gaps = asked.slice(1).map((at, index) => at - (asked[index] ?? 0));
    expect(gaps).toEqual([50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
    expect(await rig.stateOf()).toBe('in_progress');
    expect(rig.said).toEqual(Array(8).fill('warn cannot record the outcome: Redis unavailable'));
    expect(rig.unrecordable).toEqual([]);
  });

  it('says, as an error, why Redis refuses to record it, tries on, and says when it could be recorded', async () => {
    rig.fail('finishSend', new Error('OOM command not allowed'), 2);
    await rig.clock.until(finish(accepted));
    const reason = 'cannot record the outcome, payout p: OOM command not allowed';
    expect(rig.unrecordable).toEqual([reason, reason, undefined]);
    expect(rig.said).toEqual(Array(2).fill('error cannot record the outcome: Redis refuses it'));
    expect(await rig.stateOf()).toBe('in_progress');
  });

  it('ends once the grace of a process that must end is over, after one more try', async () => {
    const asked = rig.fail('finishSend', UNAVAILABLE);
    const finishing = finish(accepted);
    await rig.clock.advance(60);
    expect(asked).toHaveLength(2);
    rig.ending.abort();
    const endedAt = rig.clock.now();
    await rig.clock.until(finishing);
    expect(rig.clock.now()).toBeGreaterThanOrEqual(endedAt + GRACE_MS);
    expect(rig.clock.now()).toBeLessThan(endedAt + GRACE_MS + 3_000);
    expect(asked.length).toBeGreaterThan(5);
    expect([await rig.stateOf(), rig.journal.outcomes]).toEqual(['sending', ['p 1 accepted']]);
  });

  it('reports when someone else has decided before', async () => {
    const attempt = await rig.begin();
    await rig.ledger.finishSend(attempt, accepted, NO_BREAKER, 0);
    await rig.attempts.finish(attempt, silence);
    expect(rig.said).toEqual(['warn the outcome had been recorded or decided before']);
    expect(await rig.stateOf()).toBe('in_progress');
  });

  it('says loudly that a payout which was written off was paid', async () => {
    const attempt = await rig.begin();
    await rig.ledger.finishSend(attempt, silence, NO_BREAKER, 0);
    await rig.ledger.change({ ...PUT_BACK, to: 'cancelled' });
    await rig.attempts.finish(attempt, accepted);
    expect(rig.said).toEqual(['error payout was paid after it was written off or put back: it may be paid twice']);
    await rig.expectPayout({ state: 'cancelled', lateTxhash: 'h' });
  });

  it('pauses at once when the response looks like a block, and says so', async () => {
    await finish(rejected('account blocked'));
    expect(await rig.pausedReason()).toBe("the gateway's response looks like a block: account blocked");
    expect(rig.said).toEqual([PAUSED]);
  });

  it.each([
    [rejected('not today'), '2 rejections in a row, the last: not today'],
    [silence, '2 sends in a row without a trustworthy response, the last: silence'],
  ])('pauses after the configured number in a row: %j', async (outcome, reason) => {
    await finish(outcome);
    expect(await rig.pausedReason()).toBeUndefined();
    await finish(outcome, 'q');
    expect(await rig.pausedReason()).toBe(reason);
  });

  it('notes with an unknown outcome until when its request may be on its way', async () => {
    await finish(silence);
    expect(await rig.ledger.change(PUT_BACK)).toEqual({ kind: 'in_doubt', forMs: DOUBT_MS });
    await rig.clock.advance(DOUBT_MS);
    expect(await rig.ledger.change(PUT_BACK)).toBeUndefined();
  });
});

describe('confirmLast', () => {
  it('records the outcome again only where it was forgotten, with the pause that belongs to it', async () => {
    const attempt = await rig.begin();
    const older = rig.ledger.snapshot();
    await rig.attempts.finish(attempt, rejected('account blocked'));
    await rig.attempts.confirmLast();
    rig.ledger.restore(older);
    await rig.attempts.confirmLast();
    expect([await rig.stateOf(), rig.said]).toEqual(['rejected', [PAUSED, PAUSED]]);
  });

  it('does not report an acceptance again whose txhash turned out to be of another payment', async () => {
    await finish(accepted);
    await rig.ledger.change({ payoutId: 'p', from: 'in_progress', to: 'unknown', reason: 'about another payment' });
    await rig.attempts.confirmLast();
    expect([await rig.stateOf(), rig.said]).toEqual(['unknown', []]);
  });

  it('fails when Redis is unavailable, and does not wait for it', async () => {
    await finish(rejected('no'));
    rig.fail('finishSend', UNAVAILABLE);
    await expect(rig.attempts.confirmLast()).rejects.toThrow('Redis unavailable');
  });
});

describe('revert', () => {
  const REASON = 'the connection ended';

  it('puts the payout back, as soon as Redis replies, and notes in the journal that it was not sent', async () => {
    const attempt = await rig.sending();
    rig.fail('revertSend', UNAVAILABLE, 2);
    await rig.clock.until(rig.attempts.revert(attempt, REASON));
    expect(await rig.lastChangeOf()).toMatchObject({ to: 'queued', reason: REASON });
    expect(rig.said[0]).toBe('warn cannot put back: Redis unavailable');
    expect([rig.journal.outcomes, rig.journal.knows('p', 1)]).toEqual([['p 1 not_sent'], false]);
  });

  it('stays in the book: a begin that takes effect later is put back as well', async () => {
    rig.ending.abort();
    rig.fail('revertSend', UNAVAILABLE);
    rig.ownAttempts.trackBegin(LOST);
    await rig.clock.until(rig.attempts.revert(LOST, 'no reply'));
    rig.ownAttempts.clearCurrent();
    delete rig.before.revertSend;
    await rig.begin('p', LOST);
    await rig.recovery.resolveLeftovers();
    const reason = 'its begin took effect late; it was not sent';
    expect(await rig.lastChangeOf()).toMatchObject({ to: 'queued', reason });
  });

  it.each(['another sender journaled the same number: it may have sent it', 'the journal cannot be read'])(
    'leaves the payout as it is where %s',
    async (why) => {
      const attempt = await rig.sending();
      const isUnreadable = why.endsWith('read');
      rig.journal.othersWrite(isUnreadable ? { peers: [] } : journaled({ ...LOST, token: 'theirs' }));
      if (isUnreadable) rig.journal.onReload = throwing('EACCES');
      await rig.attempts.revert(attempt, REASON);
      expect(await rig.stateOf()).toBe('sending');
      await rig.recovery.resolveLeftovers();
      // It is not this process that may say that it was not sent.
      expect(await rig.stateOf()).not.toBe('queued');
    },
  );

  it('puts it back where the other sender noted that it did not send', async () => {
    const theirs = { ...LOST, token: 'theirs' };
    rig.journal.othersWrite(journaled(theirs), { ...theirs, outcome: { kind: 'not_sent', reason: 'r' }, at: 0 });
    await rig.attempts.revert(await rig.begin(), REASON);
    expect(await rig.stateOf()).toBe('queued');
  });
});

it.each([
  ['is not over while nobody asks it to stop', undefined, 0],
  ['begins at the stop, where that comes later', 5 * GRACE_MS, 0],
  ['begins with the waiting, such as for a response, where that comes later', 0, 5 * GRACE_MS],
  ['is reckoned for each thing that is waited for', 0, GRACE_MS],
])('the grace of a process that is to stop %s', async (_, stopAt, waitAt) => {
  const clock = new ManualClock();
  const stop = new AbortController();
  const grace = new StopGrace(clock, stop.signal, GRACE_MS);
  if (stopAt === 0) {
    stop.abort();
    grace.start()();
  }
  await clock.advance(waitAt);
  const isOver = grace.start();
  const seen = [isOver()];
  await clock.advance(stopAt ?? 100 * GRACE_MS);
  seen.push(isOver());
  if (stopAt !== undefined) stop.abort();
  seen.push(isOver());
  await clock.advance(GRACE_MS - 1);
  expect([...seen, isOver()]).toEqual([false, false, false, false]);
  await clock.advance(1);
  expect(isOver()).toBe(stopAt !== undefined);
});

import { beforeEach, describe, expect, it } from '@jest/globals';
import { onAnyClock } from '../../../src/base/clock.js';
import { UnreadableRecordError } from '../../../src/base/errors.js';
import type { SentOutcome } from '../../../src/gateway/gateway.js';
import type { JournaledOutcome } from '../../../src/journal/journal-line.js';
import { StopGrace } from '../../../src/worker/sender/own-outcome-recorder.js';
import { LedgerOutcomeRecorder } from '../../../src/worker/sender/ledger-outcome-recorder.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { setFields } from '../../world/world-ledger.js';
import { NO_BREAKER } from '../../ledger/contract/ledger-rig.js';
import {
  GRACE_MS,
  IN_FLIGHT_MAX_MS,
  journaled,
  makeSendRig,
  type SendRig,
  throwing,
  UNAVAILABLE,
} from '../support/send-rig.js';

let rig: SendRig;
beforeEach(async () => {
  rig = await makeSendRig();
});

const durationMs = 1;
const accepted = { kind: 'accepted', gatewayId: 'h', durationMs } as const;
const rejected = (message: string) => ({ kind: 'rejected', message, durationMs }) as const;
const silence = { kind: 'unknown', reason: 'silence', durationMs } as const;
const LOST = { payoutId: 'p', attempt: 1, token: 'lost' };
const PUT_BACK = { payoutId: 'p', from: 'unknown', to: 'queued', by: 'ann', reason: 'not there' } as const;
const PAUSED = 'error the account is paused; `payouts resume` lets it send again';

const finish = async (outcome: SentOutcome & { durationMs: number }, payoutId = 'p') =>
  rig.attempts.finish(await rig.begin(payoutId), outcome);

it('finish notes the outcome in the journal before it asks the ledger', async () => {
  const attempt = await rig.begin();
  let inJournal: readonly string[] = [];
  rig.before.finishSend = () => void (inJournal = rig.journal.outcomes);
  await rig.attempts.finish(attempt, accepted);
  expect(inJournal).toEqual(['p 1 accepted']);
});

it('finish asks until Redis replies, ever less often, but every two seconds', async () => {
  const asked = rig.fail('finishSend', UNAVAILABLE, 8);
  await rig.clock.until(finish(accepted));
  const gaps = asked.slice(1).map((at, index) => at - (asked[index] ?? 0));
  expect([gaps, await rig.stateOf()]).toEqual([[50, 100, 200, 400, 800, 1_600, 2_000, 2_000], 'in_progress']);
  expect(rig.said).toEqual(Array(8).fill('warn cannot record the outcome: Redis unavailable'));
  expect(rig.unrecordable).toEqual([]);
});

it('finish says why Redis refuses to record it, tries on, and says when it could', async () => {
  rig.fail('finishSend', new Error('OOM command not allowed'), 2);
  await rig.clock.until(finish(accepted));
  const reason = 'cannot record the outcome, payout p: OOM command not allowed';
  expect(rig.unrecordable).toEqual([reason, reason, undefined]);
  expect(rig.said).toEqual(Array(2).fill('error cannot record the outcome: Redis refuses it'));
  expect(await rig.stateOf()).toBe('in_progress');
});

it('finish ends with the grace of a process that must end, after one more try', async () => {
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

it('finish reports when someone else has decided before', async () => {
  const attempt = await rig.begin();
  await rig.ledger.finishSend(attempt, accepted, NO_BREAKER, 0);
  await rig.attempts.finish(attempt, silence);
  expect(rig.said).toEqual(['warn the outcome had been recorded or decided before']);
  expect(await rig.stateOf()).toBe('in_progress');
});

it('finish says loudly that a payout which was written off was paid', async () => {
  const attempt = await rig.begin();
  await rig.ledger.finishSend(attempt, silence, NO_BREAKER, 0);
  await rig.ledger.change({ ...PUT_BACK, to: 'written_off' });
  await rig.attempts.finish(attempt, accepted);
  expect(rig.said).toEqual(['error payout was paid after it was written off or put back: it may be paid twice']);
  await rig.expectPayout({ state: 'written_off', final: true, lateGatewayId: 'h' });
});

it.each([
  [rejected('not today'), '2 rejections in a row, the last: not today'],
  [silence, '2 sends in a row without a trustworthy response, the last: silence'],
])('finish pauses after the configured number in a row: %j', async (outcome, reason) => {
  await finish(outcome);
  expect(await rig.pausedReason()).toBeUndefined();
  await finish(outcome, 'q');
  expect(await rig.pausedReason()).toBe(reason);
});

it('finish notes with an unknown outcome until when its request may be on its way', async () => {
  await finish(silence);
  expect(await rig.ledger.change(PUT_BACK)).toEqual({
    kind: 'in_flight',
    forMs: Math.ceil(onAnyClock(IN_FLIGHT_MAX_MS)),
  });
  await rig.clock.advance(onAnyClock(IN_FLIGHT_MAX_MS));
  expect(await rig.ledger.change(PUT_BACK)).toBeUndefined();
});

it('confirmLast records a forgotten outcome again, with its pause', async () => {
  const attempt = await rig.begin();
  const older = rig.ledger.snapshot();
  await rig.attempts.finish(attempt, rejected('account blocked'));
  await rig.attempts.confirmLast();
  const blocked = "the gateway's response looks like a block: account blocked";
  expect([await rig.pausedReason(), rig.said]).toEqual([blocked, [PAUSED]]);
  rig.ledger.restore(older);
  await rig.attempts.confirmLast();
  expect([await rig.stateOf(), await rig.pausedReason(), rig.said]).toEqual(['rejected', blocked, [PAUSED, PAUSED]]);
});

it('confirmLast reports no acceptance again whose gatewayId is of another payment', async () => {
  await finish(accepted);
  await rig.ledger.change({ payoutId: 'p', from: 'in_progress', to: 'unknown', reason: 'about another payment' });
  await rig.attempts.confirmLast();
  expect([await rig.stateOf(), rig.said]).toEqual(['unknown', []]);
});

it('confirmLast fails when Redis is unavailable, and does not wait for it', async () => {
  await finish(rejected('no'));
  rig.fail('finishSend', UNAVAILABLE);
  await expect(rig.attempts.confirmLast()).rejects.toThrow('Redis unavailable');
});

const REASON = 'the connection ended';

it('revert puts the payout back once Redis replies, and journals that it was not sent', async () => {
  const attempt = await rig.sending();
  rig.fail('revertSend', UNAVAILABLE, 2);
  await rig.clock.until(rig.attempts.revert(attempt, REASON));
  expect(await rig.lastChangeOf()).toMatchObject({ to: 'queued', reason: REASON });
  expect(rig.said[0]).toBe('warn cannot put back: Redis unavailable');
  expect([rig.journal.outcomes, rig.journal.knows('p', 1)]).toEqual([['p 1 not_sent'], false]);
});

it('revert stays in the book: a begin that takes effect later is put back as well', async () => {
  rig.ending.abort();
  rig.fail('revertSend', UNAVAILABLE);
  rig.sends.begin(LOST);
  await rig.clock.until(rig.attempts.revert(LOST, 'no reply'));
  rig.sends.clearCurrent();
  delete rig.before.revertSend;
  await rig.begin('p', LOST);
  await rig.recovery.resolveLeftovers();
  const reason = 'its begin took effect late; it was not sent';
  expect(await rig.lastChangeOf()).toMatchObject({ to: 'queued', reason });
});

it('revert tracks what was let go for its write, so that it is put back though the journal lost its note of it', async () => {
  const attempt = await rig.begin();
  rig.sends.begin(attempt);
  rig.sends.release(attempt);
  rig.ending.abort();
  rig.fail('revertSend', UNAVAILABLE);
  await rig.clock.until(rig.attempts.revert(attempt, REASON));
  rig.sends.clearCurrent();
  delete rig.before.revertSend;
  await rig.recovery.resolveLeftovers();
  expect(await rig.stateOf()).toBe('queued');
});

it.each(['another sender journaled the same number: it may have sent it', 'the journal cannot be read'])(
  'revert leaves the payout as it is where %s',
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

it('revert puts it back where the other sender noted that it did not send', async () => {
  const theirs = { ...LOST, token: 'theirs' };
  rig.journal.othersWrite(journaled(theirs), { ...theirs, outcome: { kind: 'not_sent', reason: 'r' }, at: 0 });
  await rig.attempts.revert(await rig.begin(), REASON);
  expect(await rig.stateOf()).toBe('queued');
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

const ACCEPTED = { kind: 'accepted', gatewayId: 'h' } as const;
const NO_FUNDS = { kind: 'rejected', message: 'no funds' } as const;

const resolve = async () => rig.recovery.resolveLeftovers().then(async () => rig.stateOf());

it('resolveLeftovers leaves an attempt alone while it is under way, and then puts it back if unwritten', async () => {
  for (const [payoutId, isWritten] of [
    ['p', false],
    ['q', true],
  ] as const) {
    const attempt = await rig.begin(payoutId);
    const resolved = async () => rig.recovery.resolveLeftovers().then(async () => rig.stateOf(payoutId));
    rig.sends.begin(attempt);
    expect(await resolved()).toBe('sending');
    rig.sends.begun(attempt, 1);
    expect(await resolved()).toBe('sending');
    if (isWritten) rig.sends.release(attempt);
    expect(await resolved()).toBe('sending');
    rig.sends.clearCurrent();
    expect(await resolved()).toBe(isWritten ? 'unknown' : 'queued');
  }
});

it('resolveLeftovers puts back no attempt whose number another sender journaled', async () => {
  const attempt = await rig.begin();
  rig.sends.begin(attempt);
  rig.sends.clearCurrent();
  rig.journal.othersWrite(journaled({ ...attempt, token: 'theirs' }));
  expect([await resolve(), await resolve()]).toEqual(['sending', 'unknown']);
});

it('resolveLeftovers removes an entry of sending without its record, and the journal says why', async () => {
  await rig.sending();
  const { redis, connection } = rig.ledger;
  redis.call('DEL', [connection.keys.payout('p')]);
  await rig.recovery.resolveLeftovers();
  expect(await rig.ledger.readSending()).toEqual([]);
  const reason = expect.stringMatching(/^Redis has no payout in this state/);
  expect(rig.journal.lastSends(1)).toMatchObject([{ payoutId: 'p', outcome: { kind: 'unknown', reason } }]);
  expect(rig.said).toContainEqual(expect.stringMatching(/^error removed from the index of sending/));
  expect(await rig.begin('q')).toMatchObject({ payoutId: 'q' });
});

it('resolveLeftovers knows its own attempts by their tokens, not by their numbers', async () => {
  rig.sends.begin({ ...LOST, token: 'mine' });
  rig.sends.clearCurrent();
  await rig.begin();
  expect(await resolve()).toBe('unknown');
});

it('resolveLeftovers forgets unwritten attempts once another has begun', async () => {
  const { sends } = rig;
  sends.begin({ ...LOST, payoutId: 'q' });
  const attempt = await rig.begin();
  const known = (): boolean[] => ['lost', attempt.token].map((token) => sends.hasUnwrittenToken(token));
  expect(known()).toEqual([true, false]);
  sends.begin(attempt);
  sends.begun(attempt, 1);
  expect(known()).toEqual([false, true]);
  sends.release(attempt);
  expect(known()).toEqual([false, false]);
});

it('resolveLeftovers records the last outcome again', async () => {
  const attempt = await rig.begin();
  const older = rig.ledger.snapshot();
  await rig.attempts.finish(attempt, { kind: 'accepted', gatewayId: 'h', durationMs: 1 });
  rig.ledger.restore(older);
  rig.journal.lines.length = 0;
  await rig.journal.reload();
  await resolve();
  await rig.expectPayout({ state: 'in_progress', gatewayId: 'h' });
});

it('resolveLeftovers says until when a request may be on its way, as its sender told when it began', async () => {
  const next = await makeSendRig({ senderLedger: rig.ledger, heldLease: rig.heldLease });
  await rig.begin('p', { inFlightMs: 4 * IN_FLIGHT_MAX_MS });
  await rig.clock.advance(5_000);
  await next.sender.recovery.resolveLeftovers();
  expect(await rig.ledger.change(PUT_BACK)).toEqual({ kind: 'in_flight', forMs: 4 * IN_FLIGHT_MAX_MS - 5_000 });
});

it('resolveLeftovers allows for the longest known time where the ledger forgot when the request began', async () => {
  const view = { ...rig.heldLease.view, inFlightMs: 2 * IN_FLIGHT_MAX_MS };
  const next = await makeSendRig({ senderLedger: rig.ledger, heldLease: { ...rig.heldLease, view } });
  await rig.begin();
  setFields(rig.ledger, rig.ledger.connection.keys.sender, { last: 'another' });
  await next.sender.recovery.resolveLeftovers();
  expect(await rig.ledger.change(PUT_BACK)).toEqual({ kind: 'in_flight', forMs: 2 * IN_FLIGHT_MAX_MS });
});

it('finish tells that a request was reset, also where another process called the payout unknown before', async () => {
  const attempt = await rig.begin('p', { inFlightMs: 4 * IN_FLIGHT_MAX_MS });
  await rig.ledger.markSendsUnknown(rig.heldLease.lease, [attempt], 'its sender ended', 0);
  await rig.attempts.finish(attempt, silence);
  const forMs = Math.ceil(onAnyClock(IN_FLIGHT_MAX_MS));
  expect(await rig.ledger.change(PUT_BACK)).toEqual({ kind: 'in_flight', forMs });
  expect((await rig.ledger.readSender()).inFlightMs).toBe(forMs);
});

const leave = async (outcome?: JournaledOutcome) => {
  await rig.sending(outcome);
  rig = { ...rig, ...(await rig.recordersOfTheNext()) };
  await resolve();
};

it.each<[JournaledOutcome, object]>([
  [ACCEPTED, { state: 'in_progress', gatewayId: 'h' }],
  [NO_FUNDS, { state: 'rejected', message: 'no funds' }],
  [{ kind: 'not_sent', reason: 'connection refused' }, { state: 'queued' }],
])('those of an earlier sender come to what the journal says: %j', async (outcome, payout) => {
  await leave(outcome);
  await rig.expectPayout(payout);
  expect((await rig.lastChangeOf())?.reason ?? '').not.toMatch(/its sender ended/);
});

it.each<[string, JournaledOutcome | undefined]>([
  ['that no trustworthy response came', { kind: 'unknown', reason: 'silence', inFlightUntil: 0 }],
  ['nothing of their outcome', undefined],
])('those of an earlier sender become unknown where the journal says %s', async (_, outcome) => {
  await leave(outcome);
  const message = 'its sender ended before the response came; it may have been sent';
  await rig.expectPayout({ state: 'unknown', message });
  const said = 'payout is unknown: its sender ended before the response came; `payouts resolve` decides';
  expect(rig.said).toEqual([`error ${said}`]);
});

it('those of an earlier sender become unknown where the journal knows another of that number', async () => {
  const theirs = { ...(await rig.begin()), token: 'theirs' };
  await rig.journal.append(journaled(theirs));
  rig.journal.noteOutcome(theirs, ACCEPTED, 0);
  await (await rig.recordersOfTheNext()).recovery.resolveLeftovers();
  expect(await rig.stateOf()).toBe('unknown');
});

it('those of an earlier sender stay when the lease is lost meanwhile', async () => {
  await rig.begin();
  await rig.recordersOfTheNext();
  expect(await resolve()).toBe('sending');
});

describe('the outcomes that a journal knows', () => {
  const recorderWith = (settings: object) =>
    new LedgerOutcomeRecorder({ ...rig.runtime, settings: { ...rig.runtime.settings, ...settings } }, undefined);
  let recorder: LedgerOutcomeRecorder;
  beforeEach(() => {
    recorder = recorderWith({ maxRejectionsInARow: 2 });
  });

  /** `p` was sent, and its sender ended before the ledger heard what came of it; the next one called it unknown. */
  async function left(outcome?: JournaledOutcome) {
    await rig.ledger.markSendsUnknown(rig.heldLease.lease, [await rig.sending(outcome)], 'its sender ended', 0);
    expect(await rig.stateOf()).toBe('unknown');
  }

  it('are told where the payout is unknown, to the attempt that the ledger knows', async () => {
    await left(NO_FUNDS);
    await recorder.replay({ ...LOST, token: 'other' }, ACCEPTED);
    expect([await rig.stateOf(), rig.said]).toEqual(['unknown', []]);
    expect(await recorder.replayAll()).toBe(true);
    await rig.expectPayout({ state: 'rejected', message: 'no funds' });
    expect(rig.said).toEqual(['info recorded the outcome from the journal']);
  });

  it.each<JournaledOutcome | undefined>([
    undefined,
    { kind: 'unknown', reason: 'silence', inFlightUntil: 0 },
    { kind: 'not_sent', reason: 'r' },
  ])('are not told where they are not certain, or missing: %j', async (outcome) => {
    await left(outcome);
    const asked = rig.fail('finishSend', new Error(), 0);
    expect(await recorder.replayAll()).toBe(true);
    expect([asked, await rig.stateOf()]).toEqual([[], 'unknown']);
  });

  it('leave a payout alone that is decided', async () => {
    await left(NO_FUNDS);
    await rig.ledger.change({ payoutId: 'p', from: 'unknown', to: 'written_off', by: 'ann', reason: 'settled' });
    expect(await recorder.replayAll()).toBe(true);
    expect([await rig.stateOf(), rig.said]).toEqual(['written_off', []]);
  });

  it('are told also of the send behind one whose record cannot be read', async () => {
    const damaged = { payoutId: 'damaged', attempt: 1, token: 'd' };
    await rig.journal.append(journaled(damaged));
    rig.journal.noteOutcome(damaged, ACCEPTED, 0);
    await left(ACCEPTED);
    rig.fail('readPayout', new UnreadableRecordError('The record of payout damaged', new Error('no hash')), 1);
    expect([await recorder.replayAll(), await rig.stateOf()]).toEqual([true, 'in_progress']);
    expect(rig.said).toContain('error cannot record an outcome that the send journal has');
  });

  it('are told of the newest ten sends', async () => {
    await left(ACCEPTED);
    for (let number = 1; number <= 10; number += 1) {
      await rig.journal.append(journaled({ payoutId: `other-${number}`, attempt: 1, token: `t${number}` }));
    }
    expect([await recorder.replayAll(), await rig.stateOf()]).toEqual([true, 'unknown']);
  });

  it('are not all told while one payout is being sent, which stays', async () => {
    const attempt = await rig.sending(ACCEPTED);
    expect([await recorder.replayAll(), await rig.stateOf()]).toEqual([false, 'sending']);
    await rig.ledger.markSendsUnknown(rig.heldLease.lease, [attempt], 'its sender ended', 0);
    expect([await recorder.replayAll(), await rig.stateOf()]).toEqual([true, 'in_progress']);
  });

  it('count for the breaker, which pauses where one is about the account', async () => {
    await left({ kind: 'rejected', message: 'Platform is blocked' });
    await recorder.replayAll();
    expect(await rig.pausedReason()).toMatch(/Platform is blocked/);
    expect(rig.said).toContain('error the account is paused; `payouts resume` lets it send again');
  });

  it.each([
    [
      'apart where the words name the payout',
      'unknown payment_id 9',
      2,
      [undefined, /^2 rejections in a row, for their own/],
    ],
    ['up to the stricter limit where they name nothing of it', 'declined', 50, [/^1 rejection/]],
  ] as const)('count %s', async (_, message, maxPayoutRejectionsInARow, reasons) => {
    recorder = recorderWith({ maxRejectionsInARow: 1, maxPayoutRejectionsInARow });
    for (const [index, reason] of reasons.entries()) {
      await recorder.record(await rig.begin(index === 0 ? 'p' : 'q'), { kind: 'rejected', message }, undefined);
      expect((await rig.pausedReason()) ?? 'none').toMatch(reason ?? 'none');
    }
  });
});

import { beforeEach, describe, expect, it } from '@jest/globals';
import type { JournaledOutcome } from '../../../src/journal/journal-line.js';
import { OutcomeRecorder } from '../../../src/worker/sender/outcome-recorder.js';
import { DOUBT_MS, GUARD_MS, IN_FLIGHT_MAX_MS, journaled, makeSendRig, type SendRig } from '../support/send-rig.js';

let rig: SendRig;
beforeEach(async () => {
  rig = await makeSendRig();
});

const LOST = { payoutId: 'p', attempt: 1, token: 'lost' };
const PUT_BACK = { payoutId: 'p', from: 'unknown', to: 'queued', by: 'ann', reason: 'not there' } as const;
const ACCEPTED = { kind: 'accepted', txhash: 'h' } as const;
const NO_FUNDS = { kind: 'rejected', message: 'no funds' } as const;

describe('resolveLeftovers', () => {
  const resolve = async (): Promise<string | undefined> =>
    rig.recovery.resolveLeftovers().then(async () => rig.stateOf());

  it('leaves an attempt alone while it is under way, begun or already written, and then puts it back if unwritten', async () => {
    for (const [payoutId, isWritten] of [
      ['p', false],
      ['q', true],
    ] as const) {
      const attempt = await rig.begin(payoutId);
      const resolved = async () => rig.recovery.resolveLeftovers().then(async () => rig.stateOf(payoutId));
      rig.ownAttempts.trackBegin(attempt);
      expect(await resolved()).toBe('sending');
      rig.ownAttempts.confirmBegin(attempt);
      expect(await resolved()).toBe('sending');
      if (isWritten) rig.ownAttempts.release(attempt);
      expect(await resolved()).toBe('sending');
      rig.ownAttempts.clearCurrent();
      expect(await resolved()).toBe(isWritten ? 'unknown' : 'queued');
    }
  });

  it('puts back no attempt that another sender journaled under the same number', async () => {
    const attempt = await rig.begin();
    rig.ownAttempts.trackBegin(attempt);
    rig.ownAttempts.clearCurrent();
    rig.journal.othersWrite(journaled({ ...attempt, token: 'theirs' }));
    expect([await resolve(), await resolve()]).toEqual(['sending', 'unknown']);
  });

  it('knows its own attempts by their tokens, not by their numbers', async () => {
    rig.ownAttempts.trackBegin({ ...LOST, token: 'mine' });
    rig.ownAttempts.clearCurrent();
    await rig.begin();
    expect(await resolve()).toBe('unknown');
  });

  it('forgets its unwritten attempts once another has begun: they can take effect no more', async () => {
    const { ownAttempts } = rig;
    ownAttempts.trackBegin({ ...LOST, payoutId: 'q' });
    const attempt = await rig.begin();
    const known = (): boolean[] => ['lost', attempt.token].map((token) => ownAttempts.hasUnwrittenToken(token));
    expect(known()).toEqual([true, false]);
    ownAttempts.trackBegin(attempt);
    ownAttempts.confirmBegin(attempt);
    expect(known()).toEqual([false, true]);
    ownAttempts.release(attempt);
    expect(known()).toEqual([false, false]);
  });

  it('records the last outcome again rather than calling the payout unknown', async () => {
    const attempt = await rig.begin();
    const older = rig.ledger.snapshot();
    await rig.attempts.finish(attempt, { kind: 'accepted', txhash: 'h', durationMs: 1 });
    rig.ledger.restore(older);
    rig.journal.lines.length = 0;
    await rig.journal.reload();
    await resolve();
    await rig.expectPayout({ state: 'in_progress', txhash: 'h' });
  });

  it('says until when the requests of the longest known time may be on their way', async () => {
    const view = { ...rig.heldLease.view, inFlightMs: 4 * IN_FLIGHT_MAX_MS };
    const patient = await makeSendRig({ senderLedger: rig.ledger, heldLease: { ...rig.heldLease, view } });
    await rig.begin();
    await patient.sender.recovery.resolveLeftovers();
    const forMs = expect.closeTo((GUARD_MS + 4 * IN_FLIGHT_MAX_MS) * 1.001, -1);
    expect(await rig.ledger.change(PUT_BACK)).toMatchObject({ kind: 'in_doubt', forMs });
  });

  describe('of an earlier sender', () => {
    const leave = async (outcome?: JournaledOutcome): Promise<void> => {
      await rig.sending(outcome);
      rig = { ...rig, ...(await rig.recordersOfTheNext()) };
      await resolve();
    };

    it.each<[JournaledOutcome, object]>([
      [ACCEPTED, { state: 'in_progress', txhash: 'h' }],
      [NO_FUNDS, { state: 'rejected', message: 'no funds' }],
      [{ kind: 'not_sent', reason: 'connection refused' }, { state: 'queued' }],
    ])('come to what the journal says: %j', async (outcome, payout) => {
      await leave(outcome);
      await rig.expectPayout(payout);
      expect((await rig.lastChangeOf())?.reason ?? '').not.toMatch(/its sender ended/);
    });

    it.each<[string, JournaledOutcome | undefined]>([
      ['that no trustworthy response came', { kind: 'unknown', reason: 'silence' }],
      ['nothing of their outcome', undefined],
    ])('become unknown where the journal says %s', async (_, outcome) => {
      await leave(outcome);
      const message = 'its sender ended before the response came; it may have been sent';
      await rig.expectPayout({ state: 'unknown', message });
      const said = 'payout is unknown: its sender ended before the response came; `payouts resolve` decides';
      expect(rig.said).toEqual([`error ${said}`]);
    });

    it('become unknown where the journal knows another attempt of the same number only', async () => {
      const theirs = { ...(await rig.begin()), token: 'theirs' };
      await rig.journal.append(journaled(theirs));
      rig.journal.noteOutcome(theirs, ACCEPTED, 0);
      await (await rig.recordersOfTheNext()).recovery.resolveLeftovers();
      expect(await rig.stateOf()).toBe('unknown');
    });

    it('stay where they are when the lease is lost meanwhile', async () => {
      await rig.begin();
      await rig.recordersOfTheNext();
      expect(await resolve()).toBe('sending');
    });
  });
});

it('checkLedger finds an older copy, to which it does not report its last outcome', async () => {
  const older = rig.ledger.snapshot();
  await rig.send();
  rig.ledger.restore(older);
  const asked = rig.fail('finishSend', new Error(), 0);
  expect(await rig.sender.recovery.checkLedger()).toMatchObject({ kind: 'ledger' });
  expect(asked).toEqual([]);
});

it('checkLedger reports the last outcome again to a ledger that came back without it', async () => {
  let older = rig.ledger.snapshot();
  rig.after.beginSend = () => void (older = rig.ledger.snapshot());
  await rig.send();
  rig.ledger.restore(older);
  expect(await rig.stateOf()).toBe('sending');
  expect(await rig.sender.recovery.checkLedger()).toBeUndefined();
  expect(await rig.stateOf()).toBe('in_progress');
});

describe('the outcomes that a journal knows', () => {
  const recorderWith = (settings: object): OutcomeRecorder =>
    new OutcomeRecorder({ ...rig.runtime, settings: { ...rig.runtime.settings, ...settings } }, DOUBT_MS, undefined);
  let recorder: OutcomeRecorder;
  beforeEach(() => {
    recorder = recorderWith({ maxRejectionsInARow: 2 });
  });

  /** `p` was sent, and its sender ended before the ledger heard what came of it; the next one called it unknown. */
  async function left(outcome?: JournaledOutcome): Promise<void> {
    await rig.ledger.markSendsUnknown(rig.heldLease.lease, [await rig.sending(outcome)], 'its sender ended', 0);
    expect(await rig.stateOf()).toBe('unknown');
  }

  it('are told to the ledger where the payout is unknown, and only to the attempt that it knows', async () => {
    await left(NO_FUNDS);
    await recorder.replay({ ...LOST, token: 'other' }, ACCEPTED);
    expect([await rig.stateOf(), rig.said]).toEqual(['unknown', []]);
    expect(await recorder.replayAll()).toBe(true);
    await rig.expectPayout({ state: 'rejected', message: 'no funds' });
    expect(rig.said).toEqual(['info recorded the outcome from the journal']);
  });

  it.each<JournaledOutcome | undefined>([
    undefined,
    { kind: 'unknown', reason: 'silence' },
    { kind: 'not_sent', reason: 'r' },
  ])('are not told where they are not certain, or missing: %j', async (outcome) => {
    await left(outcome);
    const asked = rig.fail('finishSend', new Error(), 0);
    expect(await recorder.replayAll()).toBe(true);
    expect([asked, await rig.stateOf()]).toEqual([[], 'unknown']);
  });

  it('leave a payout alone that is decided', async () => {
    await left(NO_FUNDS);
    await rig.ledger.change({ payoutId: 'p', from: 'unknown', to: 'cancelled', by: 'ann', reason: 'settled' });
    expect(await recorder.replayAll()).toBe(true);
    expect([await rig.stateOf(), rig.said]).toEqual(['cancelled', []]);
  });

  it('are told of the newest ten sends', async () => {
    await left(ACCEPTED);
    for (let number = 1; number <= 10; number += 1) {
      await rig.journal.append(journaled({ payoutId: `other-${number}`, attempt: 1, token: `t${number}` }));
    }
    expect(await recorder.replayAll()).toBe(true);
    expect(await rig.stateOf()).toBe('unknown');
  });

  it('are not all told while the ledger has one of the payouts as being sent, which stays', async () => {
    const attempt = await rig.sending(ACCEPTED);
    expect(await recorder.replayAll()).toBe(false);
    expect(await rig.stateOf()).toBe('sending');
    await rig.ledger.markSendsUnknown(rig.heldLease.lease, [attempt], 'its sender ended', 0);
    expect(await recorder.replayAll()).toBe(true);
    expect(await rig.stateOf()).toBe('in_progress');
  });

  it('count for the breaker, which pauses the account where the response is about the account', async () => {
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

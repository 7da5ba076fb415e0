import { beforeEach, describe, expect, it } from '@jest/globals';
import type { JournaledOutcome } from '../../../src/journal/journal-line.js';
import type { SendAttempt } from '../../../src/ledger/sender-ledger.js';
import { OutcomeRecorder } from '../../../src/worker/sender/outcome-recorder.js';
import { DOUBT_MS, journaled, makeSendRig, type SendRig } from '../support/send-rig.js';

let rig: SendRig;
let recorder: OutcomeRecorder;
beforeEach(async () => {
  rig = await makeSendRig();
  const settings = { ...rig.runtime.settings, maxRejectionsInARow: 2 };
  recorder = new OutcomeRecorder({ ...rig.runtime, settings }, DOUBT_MS, undefined);
});

/** `p` is being sent, and the journal knows what came of it. */
async function sending(outcome?: JournaledOutcome): Promise<SendAttempt> {
  const attempt = await rig.begin('p');
  await rig.journal.append(journaled(attempt));
  if (outcome !== undefined) rig.journal.noteOutcome(attempt, outcome, 0);
  return attempt;
}

/** `p` was sent, and its sender ended before the ledger heard what came of it; the next one called it unknown. */
async function left(outcome?: JournaledOutcome): Promise<SendAttempt> {
  const attempt = await sending(outcome);
  await rig.ledger.markSendsUnknown(rig.heldLease.lease, [attempt], 'its sender ended', 0);
  return attempt;
}

describe('the outcomes that a journal knows', () => {
  it.each<[JournaledOutcome, object]>([
    [
      { kind: 'accepted', txhash: 'h' },
      { state: 'in_progress', txhash: 'h' },
    ],
    [
      { kind: 'rejected', message: 'no funds' },
      { state: 'rejected', message: 'no funds' },
    ],
  ])('are told to the ledger where the payout is unknown: %j', async (outcome, payout) => {
    await left(outcome);
    expect(await rig.stateOf('p')).toBe('unknown');
    expect(await recorder.replayAll()).toBe(true);
    expect(await rig.ledger.readPayout('p')).toMatchObject(payout);
    expect(rig.said).toEqual(['info recorded the outcome from the journal']);
  });

  it.each<JournaledOutcome | undefined>([
    undefined,
    { kind: 'unknown', reason: 'silence' },
    { kind: 'not_sent', reason: 'r' },
  ])('are not told where they are not certain, or missing: %j', async (outcome) => {
    await left(outcome);
    let asked = 0;
    rig.before.finishSend = () => void (asked += 1);
    expect(await recorder.replayAll()).toBe(true);
    expect({ asked, state: await rig.stateOf('p') }).toEqual({ asked: 0, state: 'unknown' });
  });

  it('leave a payout alone that is decided', async () => {
    await left({ kind: 'rejected', message: 'no funds' });
    rig.ledger.change({ payoutId: 'p', from: 'unknown', to: 'cancelled', by: 'ann', reason: 'settled' });
    expect(await recorder.replayAll()).toBe(true);
    expect(await rig.stateOf('p')).toBe('cancelled');
    expect(rig.said).toEqual([]);
  });

  it('are told of the newest ten sends', async () => {
    await left({ kind: 'accepted', txhash: 'h' });
    for (let number = 1; number <= 10; number += 1) {
      await rig.journal.append(journaled({ payoutId: `other-${number}`, attempt: 1, token: `t${number}` }));
    }
    expect(await recorder.replayAll()).toBe(true);
    expect(await rig.stateOf('p')).toBe('unknown');
  });

  it('are not all told while the ledger has one of the payouts as being sent, which stays', async () => {
    const attempt = await sending({ kind: 'accepted', txhash: 'h' });
    expect(await recorder.replayAll()).toBe(false);
    expect(await rig.stateOf('p')).toBe('sending');
    await rig.ledger.markSendsUnknown(rig.heldLease.lease, [attempt], 'its sender ended', 0);
    expect(await recorder.replayAll()).toBe(true);
    expect(await rig.stateOf('p')).toBe('in_progress');
  });

  it('say nothing where the ledger does not know the attempt', async () => {
    await recorder.replay({ payoutId: 'p', attempt: 1, token: 'other' }, { kind: 'rejected', message: 'no funds' });
    expect(await rig.stateOf('p')).toBe('queued');
    expect(rig.said).toEqual([]);
  });

  it('count for the breaker, which pauses the account where the response is about the account', async () => {
    await left({ kind: 'rejected', message: 'Platform is blocked' });
    await recorder.replayAll();
    expect((await rig.ledger.readSender()).pausedReason).toMatch(/Platform is blocked/);
    expect(rig.said).toContain('error the account is paused; `payouts resume` lets it send again');
  });

  it('count apart where the words name the payout, up to the limit for these', async () => {
    const settings = { ...rig.runtime.settings, maxRejectionsInARow: 1, maxPayoutRejectionsInARow: 2 };
    recorder = new OutcomeRecorder({ ...rig.runtime, settings }, DOUBT_MS, undefined);
    for (const [payoutId, reason] of [
      ['p', undefined],
      ['q', /^2 rejections in a row, for their own data/],
    ] as const) {
      const result = { kind: 'rejected', message: 'unknown payment_id 9' } as const;
      await recorder.record(await rig.begin(payoutId), result, undefined);
      const { pausedReason } = await rig.ledger.readSender();
      if (reason === undefined) expect(pausedReason).toBeUndefined();
      else expect(pausedReason).toMatch(reason);
    }
  });

  it('count up to the stricter limit where the words name nothing of the payout', async () => {
    const settings = { ...rig.runtime.settings, maxRejectionsInARow: 1, maxPayoutRejectionsInARow: 50 };
    recorder = new OutcomeRecorder({ ...rig.runtime, settings }, DOUBT_MS, undefined);
    await recorder.record(await rig.begin('p'), { kind: 'rejected', message: 'declined' }, undefined);
    expect((await rig.ledger.readSender()).pausedReason).toMatch(/^1 rejection/);
  });
});

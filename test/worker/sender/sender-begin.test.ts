import { beforeEach, describe, expect, it } from '@jest/globals';
import { onAnyClock } from '../../../src/base/clock.js';
import type { SignedApproval } from '../../../src/ledger/control-record.js';
import { keptIntervalMs, Pacer } from '../../../src/worker/sender/pacer.js';
import type { SendAuthority } from '../../../src/worker/sender/send-authority.js';
import { noObserver } from '../../../src/worker/sender/worker-observer.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { HOLD, takeLease } from '../../ledger/contract/ledger-rig.js';
import {
  GUARD_MS,
  HOLD_OFF_MS,
  IN_FLIGHT_MAX_MS,
  makeSendRig,
  NEVER,
  PLACE,
  refused,
  type SendRig,
  throwing,
  UNAVAILABLE,
} from '../support/send-rig.js';

let rig: SendRig;
beforeEach(async () => {
  rig = await makeSendRig();
});

/** A begin that Redis has yet to carry out. */
async function loseBegin() {
  rig.fail('beginSend', UNAVAILABLE);
  rig.before.revertSend = () => {
    rig.ending.abort();
    throw UNAVAILABLE;
  };
  await rig.send('q');
  delete rig.before.beginSend;
  delete rig.before.revertSend;
  return { payoutId: 'q', attempt: 1, token: 't-1' };
}

it('a Redis that may not be trusted gets no begin; that is asked last', async () => {
  let hindrance: string | undefined = 'Redis is being checked';
  let askedAt = 0;
  const ask = () => {
    askedAt = rig.clock.now();
    return hindrance;
  };
  rig = await makeSendRig({ hindrance: ask });
  const begins = rig.fail('beginSend', UNAVAILABLE, 0);
  expect(await rig.send()).toEqual({ kind: 'not_sent', reason: hindrance, code: 'REDIS_UNAVAILABLE' });
  rig.expectNothingSent();
  expect([begins, await rig.stateOf(), await rig.attemptOf(), rig.journal.sends]).toEqual([[], 'queued', 0, []]);
  hindrance = undefined;
  await rig.expectSent();
  expect(begins).toEqual([askedAt]);
});

const LOST = { kind: 'lease_lost' };

it.each<[string, () => unknown, object]>([
  ['a lease that another has', async () => takeLease(rig.ledger, 'two'), LOST],
  ['a lease that another may have had, since this process stood still', () => void (rig.held.stoodStill = true), LOST],
  ['a paused account', () => void rig.ledger.pause('lunch'), { kind: 'paused', reason: 'lunch' }],
  [
    'an account of which a journal contradicts the ledger',
    async () => rig.ledger.object({ journalId: 'j', kind: 'ledger', reason: 'it forgot', sends: 3, at: 0, ...PLACE }),
    { kind: 'objected', reason: 'it forgot' },
  ],
  [
    'a flushed Redis',
    () => {
      rig.before.beginSend = async () => {
        rig.ledger.flush();
        await rig.ledger.readSender();
      };
    },
    refused('Redis was flushed or exchanged while this process was the sender.'),
  ],
])('no begin: %s', async (_, happens, report) => {
  await happens();
  expect(await rig.send()).toEqual(report);
  rig.expectNothingSent();
  expect(await rig.attemptOf()).toBeFalsy();
});

it('what the ledger refuses is an older copy, which knows fewer sends', async () => {
  const older = rig.ledger.snapshot();
  await rig.send();
  rig.ledger.restore(older);
  const reason = 'Redis came back older than it was: it knows 0 sends, this process 1.';
  expect(await rig.send('q')).toEqual(refused(reason));
  expect(rig.gateway.arrivals).toHaveLength(1);
});

it('what the ledger refuses is a begin after a late one; the next is allowed', async () => {
  const late = await loseBegin();
  await rig.begin('q', late);
  await rig.ledger.revertSend(late, 'found by a recovery');
  expect(await rig.send()).toEqual({ kind: 'not_sent', reason: 'send counter was behind; will retry' });
  rig.expectNothingSent();
  await rig.expectSent();
});

it('what the ledger refuses is a payout beside one being sent, until that is put back', async () => {
  await rig.begin('q', await loseBegin());
  expect(await rig.send()).toMatchObject({ reason: 'send counter was behind; will retry' });
  expect(await rig.send()).toEqual({ kind: 'not_sent', reason: 'payouts were left in sending: q' });
  expect(await rig.stateOf('q')).toBe('queued');
  rig.expectNothingSent();
  await rig.expectSent();
});

it('what the ledger refuses is a payout that changed: tried again if queued, else skipped', async () => {
  rig.once('before', 'beginSend', async () =>
    rig.ledger.revertSend({ payoutId: 'p', attempt: 1, token: 'x' }, 'used up'),
  );
  expect(await rig.send()).toEqual({ kind: 'not_sent', reason: 'the payout changed' });
  rig.once('before', 'beginSend', () => void rig.ledger.change({ payoutId: 'q', from: 'queued', to: 'cancelled' }));
  expect(await rig.send('q')).toEqual({ kind: 'skipped', state: 'cancelled' });
  rig.expectNothingSent();
});

it('a begin whose reply is lost is put back, and its number used up', async () => {
  rig.once('after', 'beginSend', throwing(UNAVAILABLE));
  expect(await rig.send()).toEqual({ kind: 'not_sent', reason: 'Redis unavailable', code: 'REDIS_UNAVAILABLE' });
  await rig.expectPayout({ state: 'queued', attempt: 1 });
  rig.expectNothingSent();
});

it('one of an earlier sender becomes unknown at the look, and is skipped', async () => {
  await rig.begin();
  const lease = await takeLease(rig.ledger, 'two');
  const heldLease = { ...rig.heldLease, lease, view: await rig.ledger.readSender() };
  const next = await makeSendRig({ senderLedger: rig.ledger, heldLease });
  expect([await next.send(), next.gateway.arrivals]).toEqual([{ kind: 'skipped', state: 'unknown' }, []]);
});

describe('the last checks before the write', () => {
  const REFUSED = { kind: 'not_sent', reason: 'permission to write was refused' };

  beforeEach(async () => rig.clock.advance(HOLD_OFF_MS));

  it.each([
    [GUARD_MS - 1, 'sent'],
    [GUARD_MS, 'not_sent'],
  ])('count the time from asking for the begin: after %d ms it is %s', async (tookMs, kind) => {
    rig.after.beginSend = async () => rig.clock.sleep(tookMs);
    expect(await rig.send()).toMatchObject({ kind });
    expect(await rig.stateOf()).toBe(kind === 'sent' ? 'in_progress' : 'queued');
  });

  it.each([
    [GUARD_MS - 1, 'sent'],
    [GUARD_MS, 'not_sent'],
    [1 - GUARD_MS, 'sent'],
    [-GUARD_MS, 'not_sent'],
  ])('look at the wall clock, which suspended machines move: a jump of %d ms is %s', async (ms, kind) => {
    rig.gateway.beforeWrite = () => void (rig.clock.wallOffsetMs += ms);
    expect(await rig.send()).toMatchObject({ kind });
  });

  it('count the time by the monotonic clock, whatever the wall clock says', async () => {
    rig.after.beginSend = async () => {
      await rig.clock.sleep(GUARD_MS);
      rig.clock.wallOffsetMs -= GUARD_MS;
    };
    expect(await rig.send()).toEqual(REFUSED);
  });

  it('look at the lease', async () => {
    rig.gateway.beforeWrite = () => {
      rig.lost.abort();
    };
    expect([await rig.send(), await rig.stateOf()]).toEqual([REFUSED, 'queued']);
  });

  it('look at the pace, also when a lost lease ended the wait for it', async () => {
    const early = await makeSendRig();
    early.after.beginSend = () => {
      early.lost.abort();
    };
    expect([await early.send('p'), early.gateway.arrivals]).toEqual([REFUSED, []]);
  });
});

const permit: SendAuthority['permit'] = () => ({ kind: 'refused', hold: HOLD });

it.each([false, true])('a rejection is on disk before it is in the ledger; with a full disk: %s', async (isFull) => {
  const steps: string[] = [];
  const keepRejections = async () => {
    steps.push(`kept while ${await rig.stateOf()}`);
    if (isFull) throw new Error('no space left');
  };
  rig = await makeSendRig({ authority: { permit, keepRejections } });
  expect(await rig.send()).toEqual(
    isFull ? { kind: 'not_sent', reason: 'no space left' } : { kind: 'skipped', state: 'held' },
  );
  expect([steps, await rig.stateOf()]).toEqual([['kept while queued'], isFull ? 'queued' : 'held']);
});

it.each([
  [{ kind: 'policy', reason: 'wait' }, 'info payout held by the policy', []],
  [{ kind: 'rejection', reason: 'rejected' }, 'info payout held: a person rejected it', []],
  [{ kind: 'signature', isTampering: true }, 'error payout held: it was tampered with', [[HOLD.reason, true]]],
  [{ kind: 'signature', isTampering: false }, 'warn payout held', [[HOLD.reason, false]]],
] as const)('what is held is said and counted by its kind: %o', async (given, line, counted) => {
  const refusals: unknown[][] = [];
  const observer = { ...noObserver, signatureRefused: (...what: unknown[]) => void refusals.push(what) };
  const hold = { ...HOLD, ...given };
  rig = await makeSendRig({ authority: { permit: () => ({ kind: 'refused', hold }) }, observer });
  await rig.send();
  expect([rig.said, refusals]).toEqual([[line], counted]);
});

it('a rejection is judged where it comes while the payout waits for its second', async () => {
  const REJECTION: SignedApproval = {
    ...{
      audience: 'test',
      payoutId: 'p',
      intent: '0'.repeat(64),
      decision: 'reject',
      reason: '',
      by: 'bob-1',
      signature: 's'.repeat(86),
    },
    at: '2030-01-01T00:00:00.000Z',
  };
  const permitUnlessRejected: SendAuthority['permit'] = ({ approvals = [] }) =>
    approvals.length === 0 ? { kind: 'granted' } : { kind: 'refused', hold: HOLD };
  rig = await makeSendRig({ authority: { permit: permitUnlessRejected } });
  rig.once('before', 'beginSend', () => void rig.ledger.addApproval(REJECTION));
  expect(await rig.send()).toEqual({ kind: 'skipped', state: 'held' });
  rig.expectNothingSent();
});

it('what a policy counts is noted with the begin, in journal and ledger', async () => {
  const judged = [{ policy: 'f'.repeat(64), usd: '12500000' }, { policy: 'e'.repeat(64) }] as const;
  const signed = {
    ...{ intent: '0'.repeat(64), key: 'shop', issuedAt: 1, expiresAt: 2 },
    proof: { signature: 's'.repeat(86), audience: 'test' },
  };
  const permitAll: SendAuthority['permit'] = ({ payoutId }) =>
    payoutId === 'p'
      ? { kind: 'granted', signed, counted: { judged: judged[0], keepMs: 60_000 } }
      : { kind: 'granted', counted: { judged: judged[1], keepMs: 60_000 } };
  rig = await makeSendRig({ authority: { permit: permitAll } });
  const begunIn = async () =>
    (await rig.ledger.readSpends()).flatMap((event) => (event.kind === 'begun' ? [event.spend] : []));
  const spendOf = (payoutId: string) => {
    const { paymentId, amount, addressTo } = aPayout(payoutId);
    const inFlightMs = GUARD_MS + IN_FLIGHT_MAX_MS;
    return { id: expect.any(String), payoutId, attempt: 1, paymentId, amount, addressTo, inFlightMs };
  };
  await rig.expectSent();
  await rig.expectSent('q');
  expect(await begunIn()).toEqual([{ ...spendOf('p'), signer: 'shop', usd: 12_500_000n }, spendOf('q')]);
  const [first, second] = rig.journal.sends;
  expect(first).toMatchObject({ signed, judged: judged[0] });
  expect(second).toMatchObject({ judged: judged[1] });
  expect(second).not.toHaveProperty('signed');
});

let clock: ManualClock;
let pacer: Pacer;
beforeEach(() => {
  clock = new ManualClock();
  pacer = new Pacer(clock, { intervalMs: 1_010, inFlightMaxMs: 30_000 });
});

it.each([
  [1_000, 1_001],
  [1_001, 1_001],
  [1_002, 1_002],
  [1_010, 1_010],
  [60_000, 60_000],
])('keptIntervalMs keeps %i as %i', (setMs, keptMs) => {
  expect(keptIntervalMs(setMs, 1_000)).toBe(keptMs);
  // A second at the gateway, also where its clock is the slowest that is assumed.
  expect(keptMs / onAnyClock(1)).toBeGreaterThanOrEqual(1_000);
});

it('the pacer opens never earlier than it said before', () => {
  pacer.afterNoResponse();
  const openAt = clock.now() + 30_030;
  expect(pacer.openAt).toBeCloseTo(openAt);
  pacer.afterResponse();
  pacer.holdUntil(0);
  expect(pacer.openAt).toBeCloseTo(openAt);
});

it('the pacer waits on when a timer fires early, or it was held longer', async () => {
  const earlyClock = {
    ...{ now: () => clock.now(), wallNow: () => clock.wallNow() },
    sleep: async (ms: number) => clock.sleep(ms > 10 ? ms - 5 : ms),
  };
  const early = new Pacer(earlyClock, { intervalMs: 1_010, inFlightMaxMs: 0 });
  early.holdUntil(7_000);
  const waiting = early.waitUntilOpen(NEVER);
  await clock.advance(500);
  early.holdUntil(8_000);
  await clock.until(waiting);
  expect(clock.now()).toBe(8_000);
});

it('the pacer ends the wait when the signal is aborted', async () => {
  pacer.holdUntil(9_000);
  const stop = new AbortController();
  const waiting = pacer.waitUntilOpen(stop.signal);
  await clock.advance(100);
  stop.abort();
  await clock.until(waiting);
  expect(clock.now()).toBe(5_100);
  expect(pacer.isOpen).toBe(false);
});

import { beforeEach, describe, expect, it } from '@jest/globals';
import { RedisUnavailableError } from '../../../src/errors.js';
import { Pacer } from '../../../src/worker/sender/pacer.js';
import { JOURNAL, NO_BREAKER } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import {
  GUARD_MS,
  IN_FLIGHT_MAX_MS,
  INTERVAL_MS,
  journaled,
  makeSendRig,
  PLACE,
  QUIET_MS,
  type SendRig,
} from '../support/send-rig.js';

let rig: SendRig;
beforeEach(async () => {
  rig = await makeSendRig();
});

const UNAVAILABLE = new RedisUnavailableError('Redis unavailable');
const OTHER_SENDS = 'Redis came back older than it was: its last send is another than the one that this process began.';

const refused = (reason: string, kind = 'ledger') => ({ kind: 'ledger_refused', mismatch: { kind, reason } });
const payoutState = async (payoutId = 'p') => (await rig.ledger.readPayout(payoutId))?.state;
const attemptOf = async (payoutId = 'p') => (await rig.ledger.readPayout(payoutId))?.attempt;

/** Nothing was written, and the connection that was made, if any, was given back. */
function expectNothingSent(): void {
  expect(rig.gateway.arrivals).toEqual([]);
  expect(rig.gateway.connections.every(({ isClosed }) => isClosed)).toBe(true);
}

describe('a send', () => {
  it('writes what the payout says, once it is begun in the ledger and on disk in the journal, and records the answer', async () => {
    const steps: string[] = [];
    rig.after.beginSend = () => void steps.push('begun');
    rig.journal.onAppend = () => void steps.push('journaled');
    rig.gateway.beforeWrite = () => void steps.push('written');
    rig.after.finishSend = () => void steps.push('recorded');
    expect(await rig.send('p')).toEqual({ kind: 'sent', outcome: rig.gateway.outcome });
    expect(steps).toEqual(['begun', 'journaled', 'written', 'recorded']);
    expect(rig.gateway.arrivals.map(({ request }) => request)).toEqual([
      { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' },
    ]);
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'in_progress', attempt: 1, txhash: 'h' });
    expect(rig.gateway.connections[0]?.isClosed).toBe(true);
    expect(rig.said).toEqual(['info withdraw sent']);
  });

  it('begins with all that the ledger needs to tell it from any other', async () => {
    await rig.send('p');
    await rig.send('q');
    const view = await rig.ledger.readSender();
    expect(view).toMatchObject({ sendCount: 2, last: 't-2', lastJournalId: 'j-mine', inFlightMs: IN_FLIGHT_MAX_MS });
    // As the journal stood when the last send began.
    expect(view.journals).toEqual([
      { journalId: 'j-mine', ...PLACE, sends: 1, token: 't-1', at: rig.clock.wallNow() - 100 - 30 },
    ]);
  });

  it('names the currency where the payout does', async () => {
    rig.ledger.enqueue(aPayout('dollars', { symbol: 'USD' }));
    await rig.send('dollars');
    expect(rig.gateway.arrivals[0]?.request.symbol).toBe('USD');
  });

  it.each([
    [{ kind: 'rejected', message: 'no', durationMs: 5 }, 'rejected'],
    [{ kind: 'unknown', reason: 'silence', durationMs: 5 }, 'unknown'],
  ] as const)('records %j', async (outcome, state) => {
    rig.gateway.outcome = outcome;
    expect(await rig.send('p')).toEqual({ kind: 'sent', outcome });
    expect(await payoutState()).toBe(state);
  });

  it('tells what it measured', async () => {
    await rig.send('p');
    expect(rig.seen).toEqual({ sent: [['accepted', 100]], gaps: [], waits: [QUIET_MS - 30] });
    await rig.send('q');
    expect(rig.seen.gaps).toEqual([INTERVAL_MS + 100]);
  });
});

describe('the pace', () => {
  it('begins where the lease says, with a connection of the last second and a begin of the last moment', async () => {
    const startedAt = rig.clock.now();
    let beganAt = 0;
    rig.before.beginSend = () => void (beganAt = rig.clock.now());
    await rig.send('p');
    expect(rig.gateway.arrivals[0]?.at).toBe(startedAt + QUIET_MS);
    expect(rig.gateway.connections[0]?.openedAt).toBe(startedAt + QUIET_MS - 1_000);
    expect(beganAt).toBe(startedAt + QUIET_MS - 30);
  });

  it('is an interval from the answer to the next write', async () => {
    await rig.send('p');
    const answeredAt = rig.clock.now();
    await rig.send('q');
    expect(rig.gateway.arrivals[1]?.at).toBe(answeredAt + INTERVAL_MS);
  });

  it('waits after a rejection like after any answer', async () => {
    rig.gateway.outcome = { kind: 'rejected', message: 'no', durationMs: 5 };
    await rig.send('p');
    const answeredAt = rig.clock.now();
    await rig.send('q');
    expect(rig.gateway.arrivals[1]?.at).toBe(answeredAt + INTERVAL_MS);
  });

  it('waits without an answer until the request can be on its way no more', async () => {
    rig.gateway.outcome = { kind: 'unknown', reason: 'silence', durationMs: 5 };
    await rig.send('p');
    const endedAt = rig.clock.now();
    await rig.send('q');
    expect(rig.gateway.arrivals[1]?.at).toBeGreaterThanOrEqual(endedAt + IN_FLIGHT_MAX_MS + INTERVAL_MS);
  });

  it('is not held up by an attempt of which nothing was written', async () => {
    rig.gateway.outcome = { kind: 'not_sent', reason: 'refused' };
    await rig.send('p');
    rig.gateway.outcome = { kind: 'accepted', txhash: 'h', durationMs: 1 };
    const tried = rig.clock.now();
    await rig.send('q');
    expect(rig.gateway.arrivals[0]?.at).toBe(tried);
  });

  it('counts from the answer though Redis takes long to record it', async () => {
    let answeredAt = 0;
    rig.before.finishSend = async () => {
      answeredAt = rig.clock.now();
      await rig.clock.sleep(700);
    };
    await rig.send('p');
    await rig.send('q');
    expect(rig.gateway.arrivals[1]?.at).toBe((rig.gateway.arrivals[0]?.at ?? 0) + 100 + INTERVAL_MS);
    expect(answeredAt).toBeGreaterThan(0);
  });
});

describe('a payout that is not to be sent', () => {
  it('is skipped in its state, or where there is none', async () => {
    rig.ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled' });
    expect(await rig.send('p')).toEqual({ kind: 'skipped', state: 'cancelled' });
    expect(await rig.send('nobody')).toEqual({ kind: 'skipped', state: undefined });
    expectNothingSent();
    expect(rig.gateway.connections).toEqual([]);
  });

  it('is early until its time has come', async () => {
    const notBefore = rig.clock.wallNow() + 60_000;
    rig.ledger.enqueue(aPayout('later', { notBefore: new Date(notBefore) }));
    expect(await rig.send('later')).toEqual({ kind: 'early', notBefore });
    expectNothingSent();
    await rig.clock.advance(60_000);
    expect(await rig.send('later')).toMatchObject({ kind: 'sent' });
  });

  it('is refused when the journal knows the very attempt, and never begun', async () => {
    rig.journal.given(journaled({ payoutId: 'p', attempt: 1, token: 'theirs' }));
    expect(await rig.send('p')).toEqual(
      refused('The send journal says that payout p was sent, the ledger says that it was not.'),
    );
    expect(await attemptOf()).toBe(0);
    expectNothingSent();
  });

  it('is sent when the journal knows that very attempt as not sent', async () => {
    const theirs = { payoutId: 'p', attempt: 1, token: 'theirs' };
    rig.journal.given(journaled(theirs), { ...theirs, outcome: { kind: 'not_sent', reason: 'r' }, at: 0 });
    expect(await rig.send('p')).toMatchObject({ kind: 'sent' });
  });

  it('is sent when the journal knows an earlier attempt: an operator put it back', async () => {
    for (const [payoutId, attempt] of [
      ['p', 0],
      ['q', 1],
    ] as const) {
      rig.journal.given(journaled({ payoutId, attempt, token: `${payoutId}-${attempt}` }));
    }
    expect(await rig.send('p')).toMatchObject({ kind: 'sent' });
  });
});

describe('a connection', () => {
  it('that cannot be made means not sent, and nothing was begun', async () => {
    rig.gateway.onOpen = () => {
      throw new Error('connection refused');
    };
    expect(await rig.send('p')).toEqual({ kind: 'not_sent', reason: 'connection refused' });
    expect(await attemptOf()).toBe(0);
  });

  it('that ended while it waited is made again', async () => {
    rig.gateway.onOpen = (count) => {
      if (count === 1)
        void rig.clock.sleep(500).then(() => {
          endConnection(0);
        });
    };
    expect(await rig.send('p')).toMatchObject({ kind: 'sent' });
    expect(rig.gateway.connections).toHaveLength(2);
    expect(rig.gateway.connections.every(({ isClosed }) => isClosed)).toBe(true);
  });

  it('that ends at once, with the slot open, is the trouble of the gateway', async () => {
    await rig.clock.advance(QUIET_MS);
    rig.gateway.opensUsable = false;
    expect(await rig.send('p')).toEqual({
      kind: 'not_sent',
      reason: 'the gateway ended the connection before it was used',
    });
    expectNothingSent();
    expect(await attemptOf()).toBe(0);
  });

  it('that refuses to write puts the payout back, with the reason', async () => {
    rig.gateway.outcome = { kind: 'not_sent', reason: 'ended early' };
    expect(await rig.send('p')).toEqual({ kind: 'not_sent', reason: 'ended early' });
    const payout = await rig.ledger.readPayout('p');
    expect(payout).toMatchObject({ state: 'queued', attempt: 1 });
    expect(payout?.history.at(-1)).toMatchObject({ reason: 'ended early' });
    expectNothingSent();
  });

  const endConnection = (index: number): void => {
    const connection = rig.gateway.connections[index];
    if (connection !== undefined) connection.usable = false;
  };
});

describe('a stop', () => {
  it('before the slot makes no connection', async () => {
    expect(await rig.send('p', AbortSignal.abort())).toEqual({ kind: 'stopped' });
    expect(rig.gateway.connections).toEqual([]);
  });

  it.each([
    ['waits for its slot', 100],
    ['waits with a connection', QUIET_MS - 500],
  ])('ends a send that %s', async (_, afterMs) => {
    const stop = new AbortController();
    const sending = rig.sender.send('p', stop.signal);
    await rig.clock.advance(afterMs);
    stop.abort();
    expect(await rig.clock.until(sending)).toEqual({ kind: 'stopped' });
    expectNothingSent();
    expect(await attemptOf()).toBe(0);
    expect(rig.seen.waits).toEqual([]);
  });

  it('ends one that is connecting, which is no trouble of the gateway', async () => {
    const stop = new AbortController();
    rig.gateway.onOpen = () => {
      stop.abort();
      throw new Error('it was no longer wanted');
    };
    expect(await rig.send('p', stop.signal)).toEqual({ kind: 'stopped' });
  });

  it('does not end one that has begun', async () => {
    const stop = new AbortController();
    rig.after.beginSend = () => {
      stop.abort();
    };
    expect(await rig.send('p', stop.signal)).toMatchObject({ kind: 'sent' });
  });

  it('because of a lost lease is told as such', async () => {
    const sending = rig.sender.send('p', new AbortController().signal);
    await rig.clock.advance(100);
    rig.lost.abort();
    expect(await rig.clock.until(sending)).toEqual({ kind: 'lease_lost' });
  });
});

describe('a Redis that may not be trusted now', () => {
  it('gets no begin, so that the payout is as it was, and gets one once it may', async () => {
    let hindrance: string | undefined = 'Redis is being checked';
    const begins: number[] = [];
    rig = await makeSendRig({ hindrance: () => hindrance });
    rig.before.beginSend = () => void begins.push(rig.clock.now());
    expect(await rig.send('p')).toEqual({ kind: 'not_sent', reason: 'Redis is being checked' });
    expectNothingSent();
    expect(begins).toEqual([]);
    expect([await payoutState(), await attemptOf(), rig.journal.sends]).toEqual(['queued', 0, []]);
    hindrance = undefined;
    expect(await rig.send('p')).toMatchObject({ kind: 'sent' });
  });

  it('is asked for in the same step as the begin, after everything that takes time', async () => {
    let asked = 0;
    rig = await makeSendRig({
      hindrance: () => {
        asked = rig.clock.now();
        return undefined;
      },
    });
    const begins: number[] = [];
    rig.before.beginSend = () => void begins.push(rig.clock.now());
    await rig.send('p');
    expect(begins).toEqual([asked]);
  });
});

describe('what the ledger refuses', () => {
  it('is a lease that another has', async () => {
    await rig.ledger.acquireLease('two', await rig.ledger.readSender(), JOURNAL, 0);
    expect(await rig.send('p')).toEqual({ kind: 'lease_lost' });
    expectNothingSent();
  });

  it('is a paused account', async () => {
    rig.ledger.pause('lunch');
    expect(await rig.send('p')).toEqual({ kind: 'paused', reason: 'lunch' });
    expectNothingSent();
  });

  it('is an account of which a journal contradicts the ledger', async () => {
    const objection = { journalId: 'j-theirs', kind: 'ledger', reason: 'it forgot', sends: 3, at: 0 } as const;
    await rig.ledger.object({ ...objection, ...PLACE });
    expect(await rig.send('p')).toEqual({ kind: 'objected', reason: 'it forgot' });
    expectNothingSent();
  });

  it('is a flushed Redis', async () => {
    rig.before.beginSend = async () => {
      rig.ledger.flush();
      await rig.ledger.readSender();
    };
    expect(await rig.send('p')).toEqual(refused('Redis was flushed or exchanged while this process was the sender.'));
    expectNothingSent();
  });

  it('is an older copy, which knows fewer sends', async () => {
    const older = rig.ledger.snapshot();
    await rig.send('p');
    rig.ledger.restore(older);
    expect(await rig.send('q')).toEqual(
      refused('Redis came back older than it was: it knows 0 sends, this process 1.'),
    );
    expect(rig.gateway.arrivals).toHaveLength(1);
  });

  it.each([
    ['as many', 1],
    ['more', 2],
  ])('is an older copy that has %s sends again, which are others', async (_, sends) => {
    rig.ledger.enqueue(aPayout('r'));
    const older = rig.ledger.snapshot();
    await rig.send('p');
    rig.ledger.restore(older);
    for (let number = 1; number <= sends; number += 1) {
      await rig.ledger.finishSend(await rig.begin('r'), { kind: 'rejected', message: 'no' }, NO_BREAKER, 0);
      rig.ledger.change({ payoutId: 'r', from: 'rejected', to: 'queued', by: 'ann', reason: 'again' });
    }
    expect(await rig.send('q')).toEqual(refused(OTHER_SENDS));
    expect(rig.gateway.arrivals).toHaveLength(1);
  });

  it('is a begin after one of this process that took effect late; the next is allowed', async () => {
    const late = await loseBegin('q');
    await rig.begin('q', late);
    await rig.ledger.revertSend(late, 'found by a recovery');
    expect(await rig.send('p')).toEqual({ kind: 'not_sent', reason: 'send counter was behind; will retry' });
    expectNothingSent();
    expect(await rig.send('p')).toMatchObject({ kind: 'sent' });
  });

  it('is a payout beside another that is sending; that one is put back, and then it is allowed', async () => {
    await rig.begin('q', await loseBegin('q'));
    expect(await rig.send('p')).toMatchObject({ reason: 'send counter was behind; will retry' });
    expect(await rig.send('p')).toEqual({ kind: 'not_sent', reason: 'payouts were left in sending: q' });
    expect(await payoutState('q')).toBe('queued');
    expectNothingSent();
    expect(await rig.send('p')).toMatchObject({ kind: 'sent' });
  });

  it('is a payout that changed since the look: put back into the queue it is tried again, else it is skipped', async () => {
    rig.before.beginSend = async () => {
      await rig.ledger.revertSend({ payoutId: 'p', attempt: 1, token: 'x' }, 'used up');
    };
    expect(await rig.send('p')).toEqual({ kind: 'not_sent', reason: 'the payout changed' });
    rig.before.beginSend = () => {
      rig.ledger.change({ payoutId: 'q', from: 'queued', to: 'cancelled' });
    };
    expect(await rig.send('q')).toEqual({ kind: 'skipped', state: 'cancelled' });
    expectNothingSent();
  });
});

describe('a begin whose reply is lost', () => {
  it('is put back, and the number of the attempt is used up', async () => {
    rig.after.beginSend = () => {
      delete rig.after.beginSend;
      throw UNAVAILABLE;
    };
    expect(await rig.send('p')).toEqual({ kind: 'not_sent', reason: 'Redis unavailable' });
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'queued', attempt: 1 });
    expectNothingSent();
  });

  it('and takes effect late is found sending, and put back, by the next look', async () => {
    await rig.begin('p', await loseBegin('p'));
    expect(await rig.send('p')).toMatchObject({ kind: 'not_sent', reason: 'send counter was behind; will retry' });
    expect(await rig.send('p')).toMatchObject({ kind: 'sent' });
    expect(rig.gateway.arrivals).toHaveLength(1);
  });

  it('of an earlier sender becomes unknown at the look, and is skipped', async () => {
    await rig.begin('p');
    const epoch = await rig.ledger.acquireLease('two', await rig.ledger.readSender(), JOURNAL, 0);
    const held = { ...rig.held, lease: { owner: 'two', epoch: epoch ?? 0 }, view: await rig.ledger.readSender() };
    const next = await makeSendRig({ ledger: rig.ledger, held });
    expect(await next.send('p')).toEqual({ kind: 'skipped', state: 'unknown' });
    expect(next.gateway.arrivals).toEqual([]);
  });
});

/** A begin that Redis has yet to carry out, and whose revert it never got. */
async function loseBegin(payoutId: string): Promise<{ payoutId: string; attempt: number; token: string }> {
  rig.before.beginSend = () => {
    throw UNAVAILABLE;
  };
  rig.before.revertSend = () => {
    rig.ending.abort();
    throw UNAVAILABLE;
  };
  await rig.send(payoutId);
  delete rig.before.beginSend;
  delete rig.before.revertSend;
  return { payoutId, attempt: 1, token: 't-1' };
}

describe('the last checks before the write', () => {
  const REFUSED = { kind: 'not_sent', reason: 'permission to write was refused' };

  beforeEach(async () => rig.clock.advance(QUIET_MS));

  it.each([
    [GUARD_MS - 1, 'sent'],
    [GUARD_MS, 'not_sent'],
  ])('count the time from asking for the begin: after %d ms it is %s', async (tookMs, kind) => {
    rig.after.beginSend = async () => rig.clock.sleep(tookMs);
    expect(await rig.send('p')).toMatchObject({ kind });
    expect(await payoutState()).toBe(kind === 'sent' ? 'in_progress' : 'queued');
  });

  it.each([
    [GUARD_MS - 1, 'sent'],
    [GUARD_MS, 'not_sent'],
    [1 - GUARD_MS, 'sent'],
    [-GUARD_MS, 'not_sent'],
  ])(
    'look at the wall clock too, which goes on in a suspended machine: a jump of %d ms is %s',
    async (jumpMs, kind) => {
      rig.gateway.beforeWrite = () => void (rig.clock.wallOffsetMs += jumpMs);
      expect(await rig.send('p')).toMatchObject({ kind });
    },
  );

  it('count the time by the monotonic clock, whatever the wall clock says', async () => {
    rig.after.beginSend = async () => {
      await rig.clock.sleep(GUARD_MS);
      rig.clock.wallOffsetMs -= GUARD_MS;
    };
    expect(await rig.send('p')).toEqual(REFUSED);
  });

  it('look at the lease', async () => {
    rig.gateway.beforeWrite = () => {
      rig.lost.abort();
    };
    expect(await rig.send('p')).toEqual(REFUSED);
    expect(await payoutState()).toBe('queued');
  });

  it('look at the pace, also when a lost lease ended the wait for it', async () => {
    const early = await makeSendRig();
    early.after.beginSend = () => {
      early.lost.abort();
    };
    expect(await early.send('p')).toEqual(REFUSED);
    expect(early.gateway.arrivals).toEqual([]);
  });

  it('find a slot that was closed again since', async () => {
    const pacer = new Pacer({ clock: rig.clock, intervalMs: INTERVAL_MS, inFlightMaxMs: IN_FLIGHT_MAX_MS });
    const other = await makeSendRig({ pacer });
    other.gateway.beforeWrite = () => {
      pacer.holdUntil(rig.clock.now() + 1_000_000);
    };
    expect(await other.send('p')).toEqual(REFUSED);
  });
});

describe('checkLedger', () => {
  it('finds nothing wrong with the ledger that it knows', async () => {
    expect(await rig.sender.checkLedger()).toBeUndefined();
    await rig.send('p');
    expect(await rig.sender.checkLedger()).toBeUndefined();
  });

  it('finds an older copy, to which it does not tell its last outcome', async () => {
    const older = rig.ledger.snapshot();
    await rig.send('p');
    rig.ledger.restore(older);
    rig.before.finishSend = () => {
      throw new Error('it should not be asked');
    };
    expect(await rig.sender.checkLedger()).toMatchObject({ kind: 'ledger' });
  });

  it('tells the last outcome again to a ledger that came back without it', async () => {
    let older = rig.ledger.snapshot();
    rig.after.beginSend = () => void (older = rig.ledger.snapshot());
    await rig.send('p');
    rig.ledger.restore(older);
    expect(await payoutState()).toBe('sending');
    expect(await rig.sender.checkLedger()).toBeUndefined();
    expect(await payoutState()).toBe('in_progress');
  });
});

describe('resolveLeftovers', () => {
  it('leaves the send alone that is under way', async () => {
    rig.gateway.answerMs = 5_000;
    const sending = rig.sender.send('p', new AbortController().signal);
    await rig.clock.advance(QUIET_MS + 1_000);
    expect(rig.gateway.arrivals).toHaveLength(1);
    await rig.sender.resolveLeftovers();
    expect(await payoutState()).toBe('sending');
    expect(await rig.clock.until(sending)).toMatchObject({ kind: 'sent' });
  });

  it('says until when the requests of the longest known time may be on their way', async () => {
    const view = { ...rig.held.view, inFlightMs: 4 * IN_FLIGHT_MAX_MS };
    const patient = await makeSendRig({ ledger: rig.ledger, held: { ...rig.held, view } });
    await rig.begin('p');
    await patient.sender.resolveLeftovers();
    const resolve = { payoutId: 'p', from: 'unknown', to: 'queued', by: 'ann', reason: 'not there' } as const;
    expect(rig.ledger.change(resolve)).toMatchObject({
      kind: 'in_doubt',
      forMs: expect.closeTo((GUARD_MS + 4 * IN_FLIGHT_MAX_MS) * 1.001, -1),
    });
  });
});

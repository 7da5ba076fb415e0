import { beforeEach, describe, expect, it } from '@jest/globals';
import { Pacer } from '../../src/worker/pacer.js';
import type { JournaledLedger, JournaledSend } from '../../src/worker/send-journal.js';
import { aPayout } from '../ledger/support/a-payout.js';
import type { MemoryJournal } from './support/memory-journal.js';
import { GUARD_MS, IN_FLIGHT_MAX_MS, INTERVAL_MS, makeSendRig, QUIET_MS, type SendRig } from './support/send-rig.js';

let rig: SendRig;
beforeEach(async () => {
  rig = await makeSendRig();
});

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

  it('is in the journal with all that is needed to know it again', async () => {
    await rig.send('p');
    expect(rig.journal.sends).toEqual([
      {
        payoutId: 'p',
        attempt: 1,
        epoch: rig.held.lease.epoch,
        sends: 1,
        request: { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' },
        at: expect.any(Number),
      },
    ]);
    expect(rig.journal.sends[0]?.at).toBe((rig.gateway.arrivals[0]?.at ?? 0) - 30 + rig.clock.wallOffsetMs);
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
    rig.journal.sends.push({ ...sendOf('p', 1) });
    expect(await rig.send('p')).toEqual({
      kind: 'ledger_refused',
      reason: 'The journal says that payout p was sent, the ledger says that it was not.',
    });
    expect(await attemptOf()).toBe(0);
    expectNothingSent();
  });

  it('is sent when the journal knows an earlier attempt: a person put it back', async () => {
    rig.journal.sends.push(sendOf('p', 0), sendOf('q', 1));
    expect(await rig.send('p')).toMatchObject({ kind: 'sent' });
  });

  const sendOf = (payoutId: string, attempt: number) => ({
    payoutId,
    attempt,
    epoch: 1,
    sends: 1,
    at: 0,
    request: { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' },
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

describe('what the ledger refuses', () => {
  it('is a lease that another has', async () => {
    await rig.ledger.acquireLease('two', (await rig.ledger.readSender()).lease);
    expect(await rig.send('p')).toEqual({ kind: 'lease_lost' });
    expectNothingSent();
  });

  it('is a paused account', async () => {
    rig.ledger.pause('lunch');
    expect(await rig.send('p')).toEqual({ kind: 'paused', reason: 'lunch' });
    expectNothingSent();
  });

  it('is a flushed Redis', async () => {
    rig.before.beginSend = async () => {
      rig.ledger.flush();
      await rig.ledger.readSender();
    };
    expect(await rig.send('p')).toEqual({
      kind: 'ledger_refused',
      reason: 'Redis was flushed or exchanged while this process was the sender.',
    });
    expectNothingSent();
  });

  it('is an older copy, which knows fewer sends', async () => {
    const older = rig.ledger.snapshot();
    await rig.send('p');
    rig.ledger.restore(older);
    expect(await rig.send('q')).toEqual({
      kind: 'ledger_refused',
      reason: 'Redis came back older than it was: it knows 0 sends, this process 1.',
    });
    expect(rig.gateway.arrivals).toHaveLength(1);
  });

  it('is a begin after one that was counted late; the next is allowed', async () => {
    await beginBehindItsBack('q');
    expect(await rig.send('p')).toEqual({ kind: 'not_sent', reason: 'an earlier begin was counted late' });
    expectNothingSent();
    expect(await rig.send('p')).toMatchObject({ kind: 'sent' });
  });

  it('is a payout beside another that is sending; that one is put back, and then it is allowed', async () => {
    rig.after.beginSend = () => {
      throw new Error('the reply was lost');
    };
    rig.before.revertSend = () => {
      rig.giveUp.abort();
      throw new Error('Redis is away');
    };
    await rig.send('q');
    delete rig.after.beginSend;
    delete rig.before.revertSend;
    expect(await payoutState('q')).toBe('sending');
    expect(await rig.send('p')).toMatchObject({ reason: 'an earlier begin was counted late' });
    expect(await rig.send('p')).toEqual({ kind: 'not_sent', reason: 'payouts were left in sending: q' });
    expect(await payoutState('q')).toBe('queued');
    expectNothingSent();
    expect(await rig.send('p')).toMatchObject({ kind: 'sent' });
  });

  it('is a payout that changed since the look: put back into the queue it is tried again, else it is skipped', async () => {
    rig.before.beginSend = async () => {
      await rig.ledger.revertSend({ payoutId: 'p', attempt: 1, epoch: 1 }, 'used up');
    };
    expect(await rig.send('p')).toEqual({ kind: 'not_sent', reason: 'the payout changed' });
    rig.before.beginSend = () => {
      rig.ledger.change({ payoutId: 'q', from: 'queued', to: 'cancelled' });
    };
    expect(await rig.send('q')).toEqual({ kind: 'skipped', state: 'cancelled' });
    expectNothingSent();
  });

  /** A begin and a revert of this very holder, of whose count it has not heard. */
  const beginBehindItsBack = async (payoutId: string): Promise<void> => {
    const { ledgerId } = rig.held.view;
    const { epoch } = rig.held.lease;
    await rig.ledger.beginSend({ lease: rig.held.lease, ledgerId, sends: 0, payoutId, attempt: 1 });
    await rig.ledger.revertSend({ payoutId, attempt: 1, epoch }, 'not sent');
  };
});

describe('a begin whose reply is lost', () => {
  it('is put back, and the number of the attempt is used up', async () => {
    rig.after.beginSend = () => {
      delete rig.after.beginSend;
      throw new Error('the reply was lost');
    };
    expect(await rig.send('p')).toEqual({ kind: 'not_sent', reason: 'the reply was lost' });
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'queued', attempt: 1 });
    expectNothingSent();
  });

  it('and takes effect late is found sending, and put back, by the next look', async () => {
    const { ledgerId } = rig.held.view;
    rig.before.beginSend = () => {
      throw new Error('no reply');
    };
    rig.before.revertSend = () => {
      rig.giveUp.abort();
      throw new Error('Redis is away');
    };
    await rig.send('p');
    rig.before.beginSend = () => undefined;
    rig.before.revertSend = () => undefined;
    await rig.ledger.beginSend({ lease: rig.held.lease, ledgerId, sends: 0, payoutId: 'p', attempt: 1 });
    expect(await rig.send('p')).toMatchObject({ kind: 'not_sent', reason: 'an earlier begin was counted late' });
    expect(await rig.send('p')).toMatchObject({ kind: 'sent' });
    expect(rig.gateway.arrivals).toHaveLength(1);
  });

  it('of an earlier sender becomes unknown at the look, and is skipped', async () => {
    const { ledgerId } = rig.held.view;
    await rig.ledger.beginSend({ lease: rig.held.lease, ledgerId, sends: 0, payoutId: 'p', attempt: 1 });
    const epoch = await rig.ledger.acquireLease('two', (await rig.ledger.readSender()).lease);
    const held = { ...rig.held, lease: { owner: 'two', epoch: epoch ?? 0 }, view: await rig.ledger.readSender() };
    const next = await makeSendRig({ ledger: rig.ledger, held });
    expect(await next.send('p')).toEqual({ kind: 'skipped', state: 'unknown' });
    expect(next.gateway.arrivals).toEqual([]);
  });
});

describe('the journal', () => {
  it('that cannot be written stops a send before anything else', async () => {
    rig.journal.failWith = new Error('no space left on device');
    expect(await rig.send('p')).toEqual({ kind: 'not_sent', reason: 'no space left on device' });
    expect(rig.gateway.connections).toEqual([]);
  });

  it('that fails after the begin has the payout put back', async () => {
    rig.journal.onAppend = () => {
      throw new Error('no space left on device');
    };
    expect(await rig.send('p')).toEqual({ kind: 'not_sent', reason: 'no space left on device' });
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'queued', attempt: 1 });
    expectNothingSent();
  });

  const OTHERS = {
    kind: 'ledger_refused',
    reason: 'Another process has written to the send journal while this one took itself for the sender.',
  };

  it('that an earlier sender has added to late, with what the ledger knows, is no objection', async () => {
    await rig.send('q');
    rig.journal.ledger = { ledgerId: rig.held.view.ledgerId, epoch: 1, sends: 1 };
    rig.journal.othersWrote.push(true);
    expect(await rig.send('p')).toMatchObject({ kind: 'sent' });
  });

  it.each<[string, (journal: MemoryJournal, known: JournaledLedger, send: JournaledSend) => void, RegExp]>([
    ['under a later lease', (journal, known) => (journal.ledger = { ...known, epoch: 2 }), /lease epoch is 1.* seen 2/],
    ['after more sends', (journal, known) => (journal.ledger = { ...known, sends: 2 }), /knows 1 sends, the journal 2/],
    [
      'with a send that the ledger forgot',
      (journal, _, send) => journal.sends.push({ ...send, payoutId: 'p' }),
      /not know that payout p was sent/,
    ],
  ])('that another has written to %s stops a send before it begins', async (_, write, reason) => {
    await rig.send('q');
    const { journal } = rig;
    const [send] = journal.sends;
    const known = { ledgerId: rig.held.view.ledgerId, epoch: 1, sends: 1 };
    journal.ledger = known;
    journal.othersWrote.push(true);
    journal.onReload = () => {
      if (send !== undefined) write(journal, known, send);
    };
    const report = await rig.send('p');
    expect(report).toMatchObject({ kind: 'ledger_refused', reason: expect.stringMatching(reason) });
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'queued', attempt: 0 });
    expect(rig.gateway.arrivals).toHaveLength(1);
  });

  it('that another writes to at the same time leaves the payout in sending: the other may have sent it', async () => {
    rig.journal.othersWrote.push(false, true);
    expect(await rig.send('p')).toEqual(OTHERS);
    expect(await payoutState()).toBe('sending');
    expectNothingSent();
  });

  it.each([
    ['before the begin', [true], 'queued'],
    ['after it', [false, true], 'sending'],
  ])('that another has written to who took the lease is no objection to the ledger: %s', async (_, others, state) => {
    rig.journal.othersWrote.push(...others);
    rig.before.readSender = () => void rig.ledger.adoptLedger({ epoch: 0, sends: 0 });
    expect(await rig.send('p')).toEqual({ kind: 'lease_lost' });
    expect(await payoutState()).toBe(state);
    // Neither is it put back when its job comes again before the loss of the lease is noticed.
    await rig.send('p');
    expect(await payoutState()).toBe(state);
    expectNothingSent();
  });

  it('that another writes to at the same time stops all sends, also where Redis cannot say who has the lease', async () => {
    rig.journal.othersWrote.push(false, true);
    rig.before.readSender = () => {
      throw new Error('away');
    };
    expect(await rig.send('p')).toEqual(OTHERS);
    expect(await payoutState()).toBe('sending');
  });

  it('that another has written to does not hide that the ledger came back older', async () => {
    const older = { ...rig.ledger.snapshot(), lease: undefined };
    await rig.send('q');
    rig.ledger.restore(older);
    rig.journal.othersWrote.push(true);
    expect(await rig.send('p')).toMatchObject({
      kind: 'ledger_refused',
      reason: 'Redis came back older than it was: it knows 0 sends, this process 1.',
    });
  });
});

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

  it('finds another ledger', async () => {
    rig.ledger.flush();
    expect(await rig.sender.checkLedger()).toBe('Redis was flushed or exchanged while this process was the sender.');
  });

  it('finds an older copy', async () => {
    const older = rig.ledger.snapshot();
    await rig.send('p');
    rig.ledger.restore(older);
    expect(await rig.sender.checkLedger()).toBe('Redis came back older than it was: it knows 0 sends, this process 1.');
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

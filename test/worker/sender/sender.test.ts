import { beforeEach, expect, it } from '@jest/globals';
import { onAnyClock } from '../../../src/base/clock.js';
import { RedisUnavailableError } from '../../../src/base/errors.js';
import type { WithdrawOutcome } from '../../../src/gateway/gateway.js';
import type { JournalLine } from '../../../src/journal/journal-line.js';
import { UnreadableRecordError } from '../../../src/base/errors.js';
import { recoverRegularly } from '../../../src/worker/sender/recover-sends.js';
import type { SenderRuntime } from '../../../src/worker/sender/sender-runtime.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { alterPayout, putPayout, setFields } from '../../world/world-ledger.js';
import {
  GUARD_MS,
  HOLD_OFF_MS,
  IN_FLIGHT_MAX_MS,
  INTERVAL_MS,
  journaled,
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

const ACCEPTED = { kind: 'accepted', gatewayId: 'h-2', durationMs: 5 } as const;
const REJECTED = { kind: 'rejected', message: 'no', durationMs: 5 } as const;
const SILENCE = { kind: 'unknown', reason: 'silence', durationMs: 5 } as const;
/** Complete, and of something before the gateway. */
const BAD_GATEWAY = {
  kind: 'unknown',
  reason: 'HTTP 502: the body is not JSON',
  httpStatus: 502,
  durationMs: 5,
} as const;
const THEIRS = { payoutId: 'p', attempt: 1, token: 'theirs' };

async function sendTwo(outcome: WithdrawOutcome = ACCEPTED) {
  rig.gateway.outcome = outcome;
  await rig.send();
  const endedAt = rig.clock.now();
  if (outcome.kind === 'not_sent') rig.gateway.outcome = ACCEPTED;
  await rig.send('q');
  return { arrivals: rig.gateway.arrivals.map(({ at }) => at), endedAt };
}

it.each([
  ['silence', SILENCE],
  ['a complete response of something before the gateway', BAD_GATEWAY],
])('after %s the gateway first has to respond to something harmless', async (_, outcome) => {
  let probes = 0;
  rig.gateway.onProbe = () => {
    probes += 1;
    throw new Error('The gateway did not respond to /balance: HTTP 502');
  };
  rig.gateway.outcome = outcome;
  await rig.send();
  expect(probes).toBe(0);
  rig.gateway.outcome = ACCEPTED;
  const reason = /^The gateway did not respond to \/balance: HTTP 502\. No response could be trusted for 30 s: /;
  const held = { kind: 'not_sent', reason: expect.stringMatching(reason) };
  expect([await rig.send('q'), await rig.send('q')]).toEqual([held, held]);
  expect([rig.gateway.arrivals.length, await rig.stateOf('q')]).toEqual([1, 'queued']);
  rig.gateway.onProbe = () => void (probes += 1);
  await rig.expectSent('q');
  await rig.send('q');
  expect(probes).toBe(3);
});

it('that request is made after the wait for the last one, and an interval passes after its response', async () => {
  let [askedAt, answeredAt] = [0, 0];
  rig.gateway.onProbe = async () => {
    askedAt = rig.clock.now();
    await rig.clock.sleep(20_000);
    answeredAt = rig.clock.now();
  };
  const { arrivals, endedAt } = await sendTwo(SILENCE);
  expect(askedAt).toBe(endedAt + onAnyClock(IN_FLIGHT_MAX_MS));
  expect(arrivals[1]).toBe(answeredAt + INTERVAL_MS);
});

it('a send tells ledger and journal for how long it may arrive, which its host, too, decides', async () => {
  rig.gateway.resendsForMs = 924_600;
  await rig.send();
  const inFlightMs = GUARD_MS + 924_600 + IN_FLIGHT_MAX_MS;
  expect((await rig.ledger.readSender()).inFlightMs).toBe(inFlightMs);
  expect(rig.journal.sends.at(-1)).toMatchObject({ inFlightMs });
});

const RESET = { kind: 'unknown', reason: expect.stringContaining('may no longer be the sender') };

it.each([
  ['once no heartbeat was acknowledged for the lease time', 4_000],
  ['not before, while heartbeats are acknowledged', Infinity],
])('a request without a response is reset, %s', async (_, heldForMs) => {
  const startedAt = rig.clock.now();
  rig.held.until = startedAt + HOLD_OFF_MS + heldForMs;
  rig.gateway.responseMs = 9_000;
  const report = await rig.send();
  expect(report).toMatchObject({ outcome: heldForMs === Infinity ? rig.gateway.outcome : RESET });
  const lastedMs = Math.min(heldForMs, 9_000);
  expect(rig.clock.now() - startedAt).toBe(HOLD_OFF_MS + lastedMs);
});

it('a request without a response is reset once the lease is lost', async () => {
  rig.gateway.responseMs = 9_000;
  const sending = rig.sender.send('p', NEVER);
  await rig.clock.advance(HOLD_OFF_MS + 100);
  rig.lost.abort();
  expect(await sending).toMatchObject({ outcome: RESET });
  expect(await rig.stateOf()).toBe('unknown');
});

it('after such a send of an earlier sender, too', async () => {
  const { heldLease } = rig;
  rig = await makeSendRig({ heldLease: { ...heldLease, view: { ...heldLease.view, awaitingAnswer: true } } });
  let probes = 0;
  rig.gateway.onProbe = () => void (probes += 1);
  await sendTwo();
  expect(probes).toBe(1);
});

it('a send is written once it is in ledger and journal, and its response recorded', async () => {
  const steps: string[] = [];
  rig.after.beginSend = () => void steps.push('begun');
  rig.journal.onAppend = () => void steps.push('journaled');
  rig.gateway.beforeWrite = () => void steps.push('written');
  rig.after.finishSend = () => void steps.push('recorded');
  expect(await rig.send()).toEqual({ kind: 'sent', outcome: rig.gateway.outcome });
  expect(steps).toEqual(['begun', 'journaled', 'written', 'recorded']);
  const request = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };
  expect(rig.gateway.arrivals.map((arrival) => arrival.request)).toEqual([request]);
  await rig.expectPayout({ state: 'in_progress', attempt: 1, gatewayId: 'h' });
  expect([rig.gateway.connections[0]?.isClosed, rig.said]).toEqual([true, ['info withdraw sent']]);
});

it('a send begins with all that the ledger needs to distinguish it from any other', async () => {
  await sendTwo();
  const view = await rig.ledger.readSender();
  expect(view).toMatchObject({
    sendCount: 2,
    last: 't-2',
    lastJournalId: 'j-mine',
    inFlightMs: GUARD_MS + IN_FLIGHT_MAX_MS,
  });
  // As the journal stood when the last send began.
  const at = rig.clock.wallNow() - 100 - 30;
  expect(view.journals).toEqual([{ journalId: 'j-mine', ...PLACE, sends: 1, token: 't-1', at }]);
});

it('a send reports what it measured, and calls the gap after idle time no pace', async () => {
  await rig.send();
  expect(rig.seen).toEqual({ sent: [['accepted', 100]], gaps: [], waits: [HOLD_OFF_MS - 30] });
  await rig.send('q');
  expect(rig.seen.gaps).toEqual([[INTERVAL_MS + 100, true]]);
  await rig.clock.advance(60_000);
  rig.ledger.enqueue(aPayout('r', { symbol: 'USD' }));
  await rig.send('r');
  expect([rig.seen.gaps[1], rig.gateway.arrivals[2]?.request.symbol]).toEqual([[60_100, false], 'USD']);
});

it('the pace begins where the lease says, with a fresh connection and a late begin', async () => {
  const startedAt = rig.clock.now();
  const begins = rig.fail('beginSend', new Error(), 0);
  await rig.send();
  expect(rig.gateway.arrivals[0]?.at).toBe(startedAt + HOLD_OFF_MS);
  expect(rig.gateway.connections[0]?.openedAt).toBe(startedAt + HOLD_OFF_MS - 1_000);
  expect(begins).toEqual([startedAt + HOLD_OFF_MS - 30]);
});

it.each([
  ['is an interval from the response to the next write', ACCEPTED, INTERVAL_MS],
  ['is the same after a rejection', REJECTED, INTERVAL_MS],
  [
    'waits without a response until the request can be on its way no more',
    SILENCE,
    onAnyClock(IN_FLIGHT_MAX_MS) + INTERVAL_MS,
  ],
  [
    'waits as long after a complete response of something before the gateway',
    BAD_GATEWAY,
    onAnyClock(IN_FLIGHT_MAX_MS) + INTERVAL_MS,
  ],
])('the pace %s', async (_, outcome, gapMs) => {
  const { arrivals, endedAt } = await sendTwo(outcome);
  expect(arrivals[1]).toBe(endedAt + gapMs);
});

it('the pace is not held up by an attempt of which nothing was written', async () => {
  const { arrivals, endedAt } = await sendTwo({ kind: 'not_sent', reason: 'refused' });
  expect(arrivals).toEqual([endedAt]);
});

it('the pace counts from the response though Redis takes long to record it', async () => {
  let records = 0;
  rig.before.finishSend = async () => {
    records += 1;
    await rig.clock.sleep(700);
  };
  const { arrivals } = await sendTwo();
  expect([records, arrivals[1]]).toEqual([2, (arrivals[0] ?? 0) + 100 + INTERVAL_MS]);
});

it('a payout is skipped at once in its state, or where there is none', async () => {
  const startedAt = rig.clock.now();
  await rig.ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled' });
  expect(await rig.send()).toEqual({ kind: 'skipped', state: 'cancelled' });
  expect(await rig.send('nobody')).toEqual({ kind: 'skipped', state: undefined });
  expect(rig.clock.now()).toBe(startedAt);
  rig.expectNothingSent();
  expect(rig.gateway.connections).toEqual([]);
});

it('a payout is early until its time has come', async () => {
  const notBefore = rig.clock.wallNow() + 60_000;
  rig.ledger.enqueue(aPayout('later', { notBefore: new Date(notBefore) }));
  expect(await rig.send('later')).toEqual({ kind: 'early', notBefore });
  rig.expectNothingSent();
  await rig.clock.advance(60_000);
  await rig.expectSent('later');
});

it('a payout is refused when the journal knows the very attempt, and never begun', async () => {
  rig.journal.given(journaled(THEIRS));
  const reason = 'The send journal says that payout p was sent, the ledger says that it was not.';
  expect([await rig.send(), await rig.attemptOf()]).toEqual([refused(reason), 0]);
  rig.expectNothingSent();
});

it.each<[string, ...lines: JournalLine[]]>([
  [
    'that very attempt as not sent',
    journaled(THEIRS),
    { ...THEIRS, outcome: { kind: 'not_sent', reason: 'r' }, at: 0 },
  ],
  [
    'an earlier attempt: an operator put it back',
    journaled({ ...THEIRS, attempt: 0 }),
    journaled({ ...THEIRS, payoutId: 'q' }),
  ],
])('a payout is sent when the journal knows %s', async (_, ...lines) => {
  rig.journal.given(...lines);
  await rig.expectSent();
});

it.each([
  ...[NaN, 1.5, -1, 100_000].map((attempt) => ({ attempt })),
  ...[{ amount: '0' }, { amount: '1e3' }, { paymentId: NaN }, { addressTo: 'x'.repeat(257) }, { symbol: '' }],
])('a payout that can never be sent is held as tampered with: %p', async (fields) => {
  rig = await makeSendRig({ authority: { permit: throwing('asked') } });
  alterPayout(rig.ledger, 'p', fields);
  expect(await rig.send()).toEqual({ kind: 'skipped', state: 'held' });
  const held = (await rig.ledger.readPayout('p'))?.held;
  expect(held).toMatchObject({ kind: 'signature', reason: 'fields' });
  expect(held?.message).toMatch(`It can never be sent: ${Object.keys(fields)[0] ?? ''}: must`);
  expect(rig.said).toEqual(['error payout held: it was tampered with']);
  rig.expectNothingSent();
  expect(rig.gateway.connections).toEqual([]);
});

it('a payout that can never be sent is tried again where Redis was unavailable', async () => {
  rig.fail('readPayout', new UnreadableRecordError('p', new Error('metadata')));
  rig.fail('holdPayout', new RedisUnavailableError('gone'));
  await expect(rig.send()).rejects.toThrow(RedisUnavailableError);
  rig.fail('holdPayout', new Error('WRONGTYPE'));
  expect(await rig.send()).toEqual({ kind: 'skipped', state: undefined });
  delete rig.before.holdPayout;
  expect(await rig.send()).toEqual({ kind: 'skipped', state: 'held' });
  await rig.ledger.change({ payoutId: 'p', from: 'held', to: 'cancelled' });
  expect(await rig.send()).toEqual({ kind: 'skipped', state: undefined });
});

it('a connection that ended while it waited is made again', async () => {
  rig.gateway.onOpen = (count) => {
    const end = () => Object.assign(rig.gateway.connections[0] ?? {}, { usable: false });
    if (count === 1) void rig.clock.sleep(500).then(end);
  };
  await rig.expectSent();
  expect(rig.gateway.connections.map(({ isClosed }) => isClosed)).toEqual([true, true]);
});

it('a connection that ends at once is the trouble of the gateway', async () => {
  await rig.clock.advance(HOLD_OFF_MS);
  rig.gateway.opensUsable = false;
  const reason = 'the gateway ended the connection before it was used';
  expect(await rig.send()).toEqual({ kind: 'not_sent', reason, code: 'GATEWAY_UNAVAILABLE' });
  rig.expectNothingSent();
  expect(await rig.attemptOf()).toBe(0);
});

it('a connection that cannot be made, or refuses to write, means not sent', async () => {
  rig.gateway.onOpen = throwing('connection refused');
  expect(await rig.send()).toEqual({ kind: 'not_sent', reason: 'connection refused' });
  expect(await rig.attemptOf()).toBe(0);
  rig.gateway.onOpen = () => undefined;
  rig.gateway.outcome = { kind: 'not_sent', reason: 'ended early' };
  expect(await rig.send()).toEqual(rig.gateway.outcome);
  await rig.expectPayout({ state: 'queued', attempt: 1 });
  expect(await rig.lastChangeOf()).toMatchObject({ reason: 'ended early' });
  rig.expectNothingSent();
});

it('a stop before the slot makes no connection', async () => {
  expect(await rig.send('p', AbortSignal.abort())).toEqual({ kind: 'stopped' });
  expect(rig.gateway.connections).toEqual([]);
});

it.each([
  ['waits for its slot', 100, 'stopped'],
  ['waits with a connection', HOLD_OFF_MS - 500, 'stopped'],
  ['lost its lease', 100, 'lease_lost'],
])('a stop ends a send that %s, and is told as such', async (_, afterMs, kind) => {
  const stop = new AbortController();
  const sending = rig.sender.send('p', stop.signal);
  await rig.clock.advance(afterMs);
  if (kind === 'stopped') stop.abort();
  else rig.lost.abort();
  expect(await rig.clock.until(sending)).toEqual({ kind });
  rig.expectNothingSent();
  expect([await rig.attemptOf(), rig.seen.waits]).toEqual([0, []]);
});

it('a stop ends one that is connecting, and none that has begun', async () => {
  const stop = new AbortController();
  rig.gateway.onOpen = () => {
    stop.abort();
    throw new Error('it was no longer wanted');
  };
  expect(await rig.send('p', stop.signal)).toEqual({ kind: 'stopped' });
  const another = new AbortController();
  rig.gateway.onOpen = () => undefined;
  rig.after.beginSend = () => {
    another.abort();
  };
  await rig.expectSent('p', another.signal);
});

it('checkLedger finds an older copy, to which it does not report its last outcome', async () => {
  const older = rig.ledger.snapshot();
  await rig.send();
  rig.ledger.restore(older);
  const asked = rig.fail('finishSend', new Error(), 0);
  expect(await rig.sender.recovery.checkLedger()).toMatchObject({ kind: 'ledger' });
  expect(asked).toEqual([]);
});

it('checkLedger tells the last outcome to a ledger that forgot it', async () => {
  let older = rig.ledger.snapshot();
  rig.after.beginSend = () => void (older = rig.ledger.snapshot());
  await rig.send();
  rig.ledger.restore(older);
  expect(await rig.stateOf()).toBe('sending');
  expect(await rig.sender.recovery.checkLedger()).toBeUndefined();
  expect(await rig.stateOf()).toBe('in_progress');
});

const alterLedger = (fields: Record<string, string | number>) => {
  setFields(rig.ledger, rig.ledger.connection.keys.ledger, fields);
};

/** The journal has the act, and Redis lost that it does. */
async function alterKept() {
  await rig.journal.noteActs({ at: 0, count: 1, ended: [] });
  alterLedger({ acts: 1, keptActs: 0 });
}

function recovering(relayOutbox: SenderRuntime['relayOutbox'] = async () => Promise.resolve(0)) {
  const [found, end]: [unknown[], AbortController] = [[], new AbortController()];
  const runtime = { ...rig.runtime, relayOutbox };
  const running = recoverRegularly(runtime, rig.sender.recovery, (what) => void found.push(what), end.signal);
  const ended = async () => {
    end.abort();
    await running;
  };
  return { found, ended };
}

it('recoverRegularly looks for missing jobs of 2 s ago, goes on after an error, and says what contradicts', async () => {
  const missingSince: number[] = [];
  rig.fail('readSending', UNAVAILABLE, 1);
  const { found, ended } = recovering(async (olderThan) =>
    Promise.resolve(missingSince.push(olderThan - rig.clock.wallNow()) === 2 ? 3 : 0),
  );
  for (let beats = 0; beats < 3; beats += 1) await rig.beat();
  expect([missingSince, found, rig.said]).toEqual([
    [-2_000, -2_000, -2_000],
    [],
    ['warn recovery was interrupted, will try again', 'info checked payouts whose job may have been missing'],
  ]);
  const older = rig.ledger.snapshot();
  await rig.send();
  rig.ledger.restore(older);
  await rig.beat();
  await ended();
  expect(found).toContainEqual(expect.objectContaining({ kind: 'ledger' }));
});

it('recoverRegularly reads nothing of a ledger that each heartbeat sees as it is known, but every ten seconds', async () => {
  let reads = 0;
  for (const call of ['readSending', 'readSender', 'finishSend'] as const) rig.before[call] = () => void (reads += 1);
  await rig.send();
  reads = 0;
  const { ended } = recovering();
  await rig.beat();
  expect(reads).toBe(3);
  for (let seconds = 2; seconds < 10; seconds += 2) {
    await rig.clock.advance(2_000);
    await rig.beat();
  }
  expect(reads).toBe(3);
  await rig.clock.advance(2_000);
  await rig.beat();
  // The last outcome once more.
  expect(reads).toBe(4);
  await ended();
});

it.each<[string, () => unknown]>([
  [
    'another ledger',
    () => {
      alterLedger({ id: 'other' });
    },
  ],
  [
    'more sends',
    () => {
      setFields(rig.ledger, rig.ledger.connection.keys.sender, { sends: 1 });
    },
  ],
  [
    'another last send',
    () => {
      setFields(rig.ledger, rig.ledger.connection.keys.sender, { last: 'theirs' });
    },
  ],
  [
    'an act of people',
    () => {
      alterLedger({ acts: 1, keptActs: 1 });
    },
  ],
  ['an act that the ledger does not know as kept', async () => alterKept()],
  [
    'a payout in sending',
    () => {
      putPayout(rig.ledger, { payoutId: 'left', state: 'sending' });
    },
  ],
])('recoverRegularly looks at once if a heartbeat sees %s', async (_, change) => {
  const { ended } = recovering();
  await rig.beat();
  let reads = 0;
  rig.before.readSending = () => void (reads += 1);
  await rig.beat();
  expect(reads).toBe(0);
  await change();
  await rig.beat();
  expect(reads).toBe(1);
  await ended();
});

it('recoverRegularly does not take a payout that this process is sending for one that was left', async () => {
  const { ended } = recovering();
  let reads = 0;
  rig.gateway.responseMs = 5_000;
  const sending = rig.sender.send('p', NEVER);
  await rig.clock.advance(HOLD_OFF_MS + 1_000);
  expect(rig.ledger.idsIn('sending')).toEqual(['p']);
  rig.before.readSending = () => void (reads += 1);
  await rig.beat();
  expect((await rig.clock.until(sending)).kind).toBe('sent');
  expect(reads).toBe(0);
  await ended();
});

import { expect } from '@jest/globals';
import { RedisUnavailableError } from '../../../src/base/errors.js';
import { silentLogger, type Logger } from '../../../src/base/logger.js';
import type { AccountJournal } from '../../../src/journal/control-journal.js';
import type { JournaledOutcome, SendLine } from '../../../src/journal/journal-line.js';
import { describeJournal } from '../../../src/journal/send-journal.js';
import type {
  BeginSend,
  Lease,
  LeaseRenewal,
  LedgerGlance,
  SendAttempt,
  SenderLedger,
} from '../../../src/ledger/sender-ledger.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { OwnOutcomeRecorder, StopGrace } from '../../../src/worker/sender/own-outcome-recorder.js';
import type { HeldLease } from '../../../src/worker/sender/lease-keeper.js';
import { OwnSends } from '../../../src/worker/sender/own-sends.js';
import { LedgerCheck } from '../../../src/worker/sender/ledger-check.js';
import { LedgerOutcomeRecorder } from '../../../src/worker/sender/ledger-outcome-recorder.js';
import { Pacer } from '../../../src/worker/sender/pacer.js';
import { SendRecovery } from '../../../src/worker/sender/recover-sends.js';
import { Sender } from '../../../src/worker/sender/sender.js';
import type { SenderRuntime } from '../../../src/worker/sender/sender-runtime.js';
import { noObserver } from '../../../src/worker/sender/worker-observer.js';
import { nextBegin, takeLease } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { countLedgers, RigLedger } from '../../world/world-rig.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { ScriptedGateway } from '../../doubles/scripted-gateway.js';

export const LEASE_MS = 10_000;
export const INTERVAL_MS = 1_010;
export const IN_FLIGHT_MAX_MS = 30_000;
export const GUARD_MS = 1_000;
export const DAY_MS = 24 * 60 * 60 * 1_000;
export const PLACE = { host: 'host-1', dir: '/journal' };
export const HOLD_OFF_MS = 3_000;
/** For how long Redis is waited for once the process is to end. */
export const GRACE_MS = 10_000;

const SETTINGS: SenderRuntime['settings'] = {
  intervalMs: INTERVAL_MS,
  inFlightMaxMs: IN_FLIGHT_MAX_MS,
  leaseMs: LEASE_MS,
  quarantineMs: 0,
  maxRejectionsInARow: 5,
  maxPayoutRejectionsInARow: 50,
  maxUnknownsInARow: 2,
};

interface Given extends Partial<Omit<SenderRuntime, 'settings' | 'journal'>> {
  readonly journal?: AccountJournal;
  readonly clock?: ManualClock;
  readonly settings?: Partial<SenderRuntime['settings']>;
}

export function makeRuntime(given: Given = {}): SenderRuntime & { readonly journal: AccountJournal } {
  const { clock = new ManualClock() } = given;
  const settings = { ...SETTINGS, ...given.settings };
  let tokens = 0;
  let owners = 0;
  return {
    clock,
    senderLedger: new RigLedger({ clock, nextLedgerId: countLedgers() }),
    journal: new MemoryJournal(),
    journalLocation: PLACE,
    journalKeptMs: DAY_MS,
    gateway: new ScriptedGateway(clock),
    audience: 'test',
    pacer: new Pacer(clock, settings),
    guardMs: GUARD_MS,
    machineUptime: () => clock.now(),
    hindrance: () => undefined,
    acknowledgedReplicas: () => ({ count: 0, names: [] }),
    makeOwner: () => `one.${(owners += 1)}`,
    makeToken: () => `t-${(tokens += 1)}`,
    relayOutbox: async () => Promise.resolve(0),
    onBroken: (error) => {
      throw error;
    },
    observer: noObserver,
    logger: silentLogger,
    ...given,
    settings,
  };
}

type Call = keyof SenderLedger;

type Hooks = Partial<Record<Call, () => unknown>>;

export type SendRig = Awaited<ReturnType<typeof makeSendRig>>;

/**
 * A sender on a clock, a ledger, a journal and a gateway that a test has in its hand; beside it the parts of another that
 * record and recover attempts, under the same lease.
 */
export async function makeSendRig(
  given: Partial<Omit<SenderRuntime, 'clock' | 'settings'>> & {
    readonly journal?: MemoryJournal;
    readonly heldLease?: HeldLease;
  } = {},
) {
  const clock = new ManualClock();
  const ledger = new RigLedger({ clock, nextLedgerId: countLedgers() });
  const { journal = new MemoryJournal() } = given;
  const gateway = new ScriptedGateway(clock);
  const [lost, ending] = [new AbortController(), new AbortController()];
  const stopGrace = new StopGrace(clock, ending.signal, GRACE_MS);
  /** Why outcomes could not be recorded, in order; undefined where they could be again. */
  const unrecordable: (string | undefined)[] = [];
  const onUnrecordable = (reason: string | undefined) => void unrecordable.push(reason);
  const sent: [string, number][] = [];
  const gaps: [gapMs: number, hadToWait: boolean][] = [];
  const waits: number[] = [];
  const said: string[] = [];
  /** What happens before a call of the ledger takes effect, and after it, before the reply is there; may throw. */
  const [before, after]: [Hooks, Hooks] = [{}, {}];
  for (const payoutId of ['p', 'q']) ledger.enqueue(aPayout(payoutId));
  /** Until when nobody else may be the sender. */
  const held = { until: Infinity, stoodStill: false };
  const beats = new Beats();
  const heldLease = given.heldLease ?? {
    ...(await holdLease(ledger, journal, lost.signal, clock.now() + HOLD_OFF_MS)),
    ...{ glance: () => beats.glance, nextHeartbeat: () => beats.next.signal },
    heldUntil: () => held.until,
    stoodStill: () => held.stoodStill,
  };
  const { lease, view } = heldLease;
  if (journal.ledger === undefined) {
    await journal.bind({ ledgerId: view.ledgerId, epoch: lease.epoch, sends: view.sendCount, token: view.last });
  }
  const runtime = makeRuntime({
    ...{ clock, senderLedger: hooked(ledger, before, after), journal, gateway, logger: listeningLogger(said) },
    observer: {
      ...noObserver,
      sent: (kind, durationMs) => void sent.push([kind, durationMs]),
      sendGap: (gapMs, hadToWait) => void gaps.push([gapMs, hadToWait]),
      pacerWaited: (waitedMs) => void waits.push(waitedMs),
    },
    ...given,
  });
  const makeRecorders = (held: HeldLease) => {
    const strict = { ...runtime, settings: { ...runtime.settings, maxRejectionsInARow: 2 } };
    const check = new LedgerCheck(strict, held, new OwnSends(held.view, journal, clock.now()));
    const outcomes = new LedgerOutcomeRecorder(strict, undefined);
    const attempts = new OwnOutcomeRecorder(strict, check, outcomes, stopGrace, onUnrecordable);
    return { sends: check.sends, attempts, recovery: new SendRecovery(strict, check, attempts) };
  };
  const sender = new Sender(runtime, heldLease, stopGrace, onUnrecordable, undefined);
  /** Begins the next attempt of a payout behind the sender's back, under the same lease. */
  const begin = async (payoutId = 'p', change: Partial<BeginSend> = {}) => {
    const next = await nextBegin(ledger, lease, payoutId);
    const token = `behind-${payoutId}-${next.attempt}`;
    const asked = { ...next, token, inFlightMs: IN_FLIGHT_MAX_MS, ...change };
    const begun = await ledger.beginSend(asked);
    if (begun.kind !== 'begun') throw new Error(`${payoutId} did not begin: ${JSON.stringify(begun)}`);
    return { payoutId, attempt: asked.attempt, token: asked.token };
  };
  const readPayout = async (payoutId = 'p') => ledger.readPayout(payoutId);
  return {
    ...{ runtime, clock, ledger, journal, gateway, heldLease, held, lost, ending, unrecordable, sender },
    ...{ seen: { sent, gaps, waits }, said, before, after, begin, ...makeRecorders(heldLease) },
    send: async (payoutId = 'p', stop = NEVER) => clock.until(sender.send(payoutId, stop)),
    /** A heartbeat of the holder, and what follows from it. */
    async beat() {
      beats.take(await ledger.renewLease(lease));
      await clock.advance(0);
    },
    /** `p` is being sent, and the journal knows what came of it. */
    async sending(outcome?: JournaledOutcome) {
      const attempt = await begin();
      await journal.append(journaled(attempt));
      if (outcome !== undefined) journal.noteOutcome(attempt, outcome, 0);
      return attempt;
    },
    /** The lease goes to another process, which knows nothing of what was begun before. */
    recordersOfTheNext: async () => makeRecorders({ ...heldLease, lease: await takeLease(ledger, 'two') }),
    stateOf: async (payoutId?: string) => (await readPayout(payoutId))?.state,
    attemptOf: async (payoutId?: string) => (await readPayout(payoutId))?.attempt,
    lastChangeOf: async (payoutId?: string) => (await readPayout(payoutId))?.history.at(-1),
    pausedReason: async () => (await ledger.readSender()).pausedReason,
    async expectPayout(expected: Partial<Payout>, payoutId?: string) {
      expect(await readPayout(payoutId)).toMatchObject(expected);
    },
    /** Fails a call before it takes effect, the first so many times. @returns when it was called */
    fail(call: Call, error: Error, times = Infinity): number[] {
      const calledAt: number[] = [];
      before[call] = () => {
        calledAt.push(clock.now());
        if (calledAt.length <= times) throw error;
      };
      return calledAt;
    },
    once(side: 'before' | 'after', call: Call, action: () => unknown) {
      const hooks = { before, after }[side];
      hooks[call] = async () => {
        hooks[call] = () => undefined;
        await action();
      };
    },
    async expectSent(payoutId = 'p', stop = NEVER) {
      expect(await clock.until(sender.send(payoutId, stop))).toMatchObject({ kind: 'sent' });
    },
    expectNothingSent() {
      expect(gateway.arrivals).toEqual([]);
      expect(gateway.connections.every(({ isClosed }) => isClosed)).toBe(true);
    },
  };
}

/** Those of a lease that no keeper renews. */
class Beats {
  glance: LedgerGlance | undefined;
  next = new AbortController();

  take(renewal: LeaseRenewal | undefined): void {
    this.glance = renewal?.glance;
    const { next } = this;
    this.next = new AbortController();
    next.abort();
  }
}

async function holdLease(ledger: RigLedger, journal: MemoryJournal, lost: AbortSignal, firstSendAt: number) {
  const known = describeJournal(journal, PLACE, 0);
  const epoch = (await ledger.acquireLease('one', await ledger.readSender(), known, 0)) ?? 0;
  const lease: Lease = { owner: 'one', epoch };
  return {
    ...{ lease, view: await ledger.readSender(), firstSendAt, heartbeat: () => 0, arrivesUntil: () => -Infinity, lost },
    ...{ release: async () => ledger.releaseLease(lease), stopHeartbeat: () => undefined },
  };
}

export const UNAVAILABLE = new RedisUnavailableError('Redis unavailable');
export const NEVER = new AbortController().signal;
export const throwing = (error: Error | string) => (): never => {
  throw typeof error === 'string' ? new Error(error) : error;
};

/** The report of a send that ledger or journal contradict. */
export const refused = (reason: string, kind = 'ledger') => ({ kind: 'ledger_mismatch', mismatch: { kind, reason } });

export function journaled(attempt: SendAttempt, given: Partial<SendLine> = {}): SendLine {
  const request = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };
  return {
    ...attempt,
    epoch: 1,
    sends: 1,
    after: { sends: 0, token: '' },
    inFlightMs: GUARD_MS + IN_FLIGHT_MAX_MS,
    at: 0,
    request,
    ...given,
  };
}

export function hooked(ledger: RigLedger, before: Hooks, after: Hooks): SenderLedger {
  return new Proxy(ledger, {
    get(target, name: Call) {
      return async (...args: unknown[]) => {
        await before[name]?.();
        const reply: unknown = await (target[name] as (...given: unknown[]) => unknown).apply(target, args);
        await after[name]?.();
        return reply;
      };
    },
  });
}

export function listeningLogger(said: string[]): Logger {
  const hear = (level: string) => (_: object, message: string) => void said.push(`${level} ${message}`);
  const [debug, info, warn, error] = [hear('debug'), hear('info'), hear('warn'), hear('error')];
  const logger: Logger = { debug, info, warn, error, child: () => logger };
  return logger;
}

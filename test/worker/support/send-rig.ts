import { expect } from '@jest/globals';
import { RedisUnavailableError } from '../../../src/base/errors.js';
import type { SendLine } from '../../../src/journal/journal-line.js';
import { describeJournal } from '../../../src/journal/send-journal.js';
import type { BeginSend, Lease, SendAttempt, SenderLedger } from '../../../src/ledger/sender-ledger.js';
import type { Payout } from '../../../src/ledger/payout.js';
import type { Logger } from '../../../src/base/logger.js';
import type { HeldLease } from '../../../src/worker/sender/lease-keeper.js';
import type { SendReport } from '../../../src/worker/sender/send-report.js';
import { Sender } from '../../../src/worker/sender/sender.js';
import type { SenderRuntime } from '../../../src/worker/sender/sender-runtime.js';
import { noObserver } from '../../../src/worker/sender/worker-observer.js';
import { StopGrace } from '../../../src/worker/sender/attempt-recorder.js';
import { JOURNAL } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { countLedgers, RigLedger } from '../../world/world-rig.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { ScriptedGateway } from '../../doubles/scripted-gateway.js';
import { IN_FLIGHT_MAX_MS, makeRuntime, PLACE } from './sender-runtime.js';

export { GUARD_MS, IN_FLIGHT_MAX_MS, INTERVAL_MS, PLACE } from './sender-runtime.js';

export const HOLD_OFF_MS = 3_000;
/** For how long Redis is waited for once the process is to end. */
export const GRACE_MS = 10_000;
/** For how long a request without a response may be on its way, in a test that asks nothing else of it. */
export const DOUBT_MS = 31_000;

type Call = keyof SenderLedger;

type Hooks = Partial<Record<Call, () => unknown>>;

export type SendRig = Awaited<ReturnType<typeof makeSendRig>>;

/** A sender on a clock, a ledger, a journal and a gateway that a test has in its hand. */
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
  const lost = new AbortController();
  const ending = new AbortController();
  const stopGrace = new StopGrace(clock, ending.signal, GRACE_MS);
  /** Why outcomes could not be recorded, in order; undefined where they could be again. */
  const unrecordable: (string | undefined)[] = [];
  const sent: [string, number][] = [];
  const gaps: [gapMs: number, hadToWait: boolean][] = [];
  const waits: number[] = [];
  /** What was logged, as `level message`. */
  const said: string[] = [];
  /** What happens before a call of the ledger takes effect; may throw. */
  const before: Hooks = {};
  /** What happens after it, before the reply is there; may throw. */
  const after: Hooks = {};
  const port = hooked(ledger, before, after);
  for (const payoutId of ['p', 'q']) ledger.enqueue(aPayout(payoutId));
  const heldLease = given.heldLease ?? (await holdLease(ledger, journal, lost.signal, clock.now() + HOLD_OFF_MS));
  const { lease, view } = heldLease;
  if (journal.ledger === undefined) {
    await journal.bind({ ledgerId: view.ledgerId, epoch: lease.epoch, sends: view.sendCount, token: view.last });
  }
  const runtime = makeRuntime({
    clock,
    senderLedger: port,
    journal,
    gateway,
    observer: {
      ...noObserver,
      sent: (kind, durationMs) => void sent.push([kind, durationMs]),
      sendGap: (gapMs, hadToWait) => void gaps.push([gapMs, hadToWait]),
      pacerWaited: (waitedMs) => void waits.push(waitedMs),
    },
    logger: listeningLogger(said),
    ...given,
  });
  const onUnrecordable = (reason: string | undefined): void => void unrecordable.push(reason);
  const sender = new Sender(runtime, heldLease, stopGrace, onUnrecordable, undefined);
  const send = async (payoutId: string, stop = new AbortController().signal): Promise<SendReport> =>
    clock.until(sender.send(payoutId, stop));
  /** Begins the next attempt of a payout behind the sender's back, under the same lease. */
  const begin = async (payoutId: string, change: Partial<BeginSend> = {}): Promise<SendAttempt> => {
    const { ledgerId, sendCount, last } = await ledger.readSender();
    const attempt = ((await ledger.readPayout(payoutId))?.attempt ?? 0) + 1;
    const token = `behind-${payoutId}-${attempt}`;
    const asked = { payoutId, attempt, token, ledgerId, sendCount, last, lease: heldLease.lease, ...change };
    const about = { audience: 'test', heartbeat: 0, journal: JOURNAL, inFlightMs: IN_FLIGHT_MAX_MS, decisions: 0 };
    const begun = await ledger.beginSend({ ...about, ...asked });
    if (begun.kind !== 'begun') throw new Error(`${payoutId} did not begin: ${JSON.stringify(begun)}`);
    return { payoutId, attempt: asked.attempt, token: asked.token };
  };
  const readPayout = async (payoutId = 'p'): Promise<Payout | undefined> => ledger.readPayout(payoutId);
  return {
    ...{ runtime, clock, ledger, port, journal, gateway, heldLease, lost, ending, stopGrace, unrecordable, sender },
    ...{ seen: { sent, gaps, waits }, said, before, after, send, begin },
    stateOf: async (payoutId?: string) => (await readPayout(payoutId))?.state,
    attemptOf: async (payoutId?: string) => (await readPayout(payoutId))?.attempt,
    lastChangeOf: async (payoutId?: string) => (await readPayout(payoutId))?.history.at(-1),
    async expectPayout(expected: Partial<Payout>, payoutId?: string): Promise<void> {
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
    /** Does this around the next of these calls. */
    once(side: 'before' | 'after', call: Call, action: () => unknown): void {
      const hooks = { before, after }[side];
      hooks[call] = async () => {
        hooks[call] = () => undefined;
        await action();
      };
    },
    /** Nothing was written, and each connection was closed. */
    expectNothingSent(): void {
      expect(gateway.arrivals).toEqual([]);
      expect(gateway.connections.every(({ isClosed }) => isClosed)).toBe(true);
    },
  };
}

async function holdLease(
  ledger: RigLedger,
  journal: MemoryJournal,
  lost: AbortSignal,
  firstSendAt: number,
): Promise<HeldLease> {
  const known = describeJournal(journal, PLACE, 0);
  const epoch = (await ledger.acquireLease('one', await ledger.readSender(), known, 0)) ?? 0;
  const lease: Lease = { owner: 'one', epoch };
  return {
    lease,
    view: await ledger.readSender(),
    firstSendAt,
    heartbeat: () => 0,
    lost,
    release: async () => ledger.releaseLease(lease),
    stopHeartbeat: () => undefined,
  };
}

export const UNAVAILABLE = new RedisUnavailableError('Redis unavailable');
export const NEVER = new AbortController().signal;
/** Throws this, as a hook. */
export const throwing = (error: Error | string) => (): never => {
  throw typeof error === 'string' ? new Error(error) : error;
};

/** The report of a send that was refused because the ledger, or the journal, contradicts what the process knows. */
export const refused = (reason: string, kind = 'ledger') => ({ kind: 'ledger_mismatch', mismatch: { kind, reason } });

/** A send as a journal has it. */
export function journaled(attempt: SendAttempt, given: Partial<SendLine> = {}): SendLine {
  const request = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };
  return { ...attempt, epoch: 1, sends: 1, after: { sends: 0, token: '' }, at: 0, request, ...given };
}

/** The same ledger, with something before and after each call. */
export function hooked(ledger: RigLedger, before: Hooks, after: Hooks): SenderLedger {
  return new Proxy(ledger, {
    get(target, name: Call) {
      return async (...args: unknown[]): Promise<unknown> => {
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

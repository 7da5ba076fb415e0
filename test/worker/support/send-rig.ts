import type { Lease, SenderLedger } from '../../../src/ledger/sender-ledger.js';
import type { Logger } from '../../../src/logger.js';
import type { HeldLease } from '../../../src/worker/lease-keeper.js';
import { Pacer } from '../../../src/worker/pacer.js';
import { Sender, type SenderOptions, type SendReport } from '../../../src/worker/sender.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { MemoryLedger } from '../../simulation/memory-ledger.js';
import { countLedgers } from '../../simulation/support/memory-rig.js';
import { ManualClock } from './manual-clock.js';
import { MemoryJournal } from './memory-journal.js';
import { ScriptedGateway } from './scripted-gateway.js';

export const INTERVAL_MS = 1_010;
export const IN_FLIGHT_MAX_MS = 30_000;
export const GUARD_MS = 1_000;
export const QUIET_MS = 3_000;

type Call = keyof SenderLedger;

/** A sender on a clock, a ledger, a journal and a gateway that a test has in its hand. */
export interface SendRig {
  readonly clock: ManualClock;
  readonly ledger: MemoryLedger;
  /** The ledger as the sender has it: goes through `before` and `after`. */
  readonly port: SenderLedger;
  readonly journal: MemoryJournal;
  readonly gateway: ScriptedGateway;
  readonly held: HeldLease;
  readonly lost: AbortController;
  readonly giveUp: AbortController;
  readonly sender: Sender;
  readonly seen: { sent: [string, number][]; gaps: number[]; waits: number[] };
  /** What was said in the log, as `level message`. */
  readonly said: string[];
  /** What happens before a call of the ledger takes effect; may throw. */
  before: Partial<Record<Call, () => void | Promise<void>>>;
  /** What happens after it, before the reply is there; may throw. */
  after: Partial<Record<Call, () => void | Promise<void>>>;
  send(payoutId: string, stop?: AbortSignal): Promise<SendReport>;
}

export async function makeSendRig(given: Partial<SenderOptions> = {}): Promise<SendRig> {
  const clock = new ManualClock();
  const ledger = new MemoryLedger({ clock, nextLedgerId: countLedgers() });
  const journal = new MemoryJournal();
  const gateway = new ScriptedGateway(clock);
  const lost = new AbortController();
  const giveUp = new AbortController();
  const seen: SendRig['seen'] = { sent: [], gaps: [], waits: [] };
  const said: string[] = [];
  const before: SendRig['before'] = {};
  const after: SendRig['after'] = {};
  const port = hooked(ledger, before, after);
  for (const payoutId of ['p', 'q']) ledger.enqueue(aPayout(payoutId));
  const held = await holdLease(ledger, lost.signal, clock.now() + QUIET_MS);
  const sender = new Sender({
    clock,
    ledger: port,
    journal,
    gateway,
    held,
    pacer: new Pacer({ clock, intervalMs: INTERVAL_MS, inFlightMaxMs: IN_FLIGHT_MAX_MS }),
    giveUp: giveUp.signal,
    guardMs: GUARD_MS,
    maxRejectionsInARow: 5,
    maxUnknownsInARow: 2,
    observer: {
      sent: (kind, durationMs) => void seen.sent.push([kind, durationMs]),
      sendGap: (gapMs) => void seen.gaps.push(gapMs),
      pacerWaited: (waitedMs) => void seen.waits.push(waitedMs),
      journalSynced: () => undefined,
      polled: () => undefined,
    },
    logger: listeningLogger(said),
    ...given,
  });
  const send = async (payoutId: string, stop = new AbortController().signal): Promise<SendReport> =>
    clock.until(sender.send(payoutId, stop));
  return { clock, ledger, port, journal, gateway, held, lost, giveUp, sender, seen, said, before, after, send };
}

async function holdLease(ledger: MemoryLedger, lost: AbortSignal, firstSendAt: number): Promise<HeldLease> {
  const epoch = (await ledger.acquireLease('one', undefined)) ?? 0;
  const lease: Lease = { owner: 'one', epoch };
  return {
    lease,
    view: await ledger.readSender(),
    firstSendAt,
    lost,
    release: async () => ledger.releaseLease(lease),
    abandon: () => undefined,
  };
}

/** The same ledger, with something before and after each call. */
export function hooked(ledger: MemoryLedger, before: SendRig['before'], after: SendRig['after']): SenderLedger {
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
  const hear =
    (level: string) =>
    (_: object, message: string): void =>
      void said.push(`${level} ${message}`);
  const logger: Logger = {
    debug: hear('debug'),
    info: hear('info'),
    warn: hear('warn'),
    error: hear('error'),
    child: () => logger,
  };
  return logger;
}

import { isAborted } from '../../../src/base/clock.js';
import type { JournalLine } from '../../../src/journal/journal-line.js';
import { findMismatch, type LedgerMismatch } from '../../../src/journal/find-mismatch.js';
import { describeJournal } from '../../../src/journal/send-journal.js';
import type { JournalPlace } from '../../../src/ledger/sender-ledger.js';
import { silentLogger } from '../../../src/base/logger.js';
import type { HeldLease } from '../../../src/worker/sender/lease-keeper.js';
import { Pacer } from '../../../src/worker/sender/pacer.js';
import { pollPayout } from '../../../src/worker/poll-payout.js';
import { recoverRegularly } from '../../../src/worker/sender/recover-sends.js';
import { Sender } from '../../../src/worker/sender/sender.js';
import type { SenderRuntime } from '../../../src/worker/sender/sender-runtime.js';
import { StopGrace } from '../../../src/worker/sender/attempt-recorder.js';
import { noObserver } from '../../../src/worker/sender/worker-observer.js';
import { IN_FLIGHT_MAX_MS, type RaceGateway } from './race-gateway.js';
import { RaceJournal } from './race-journal.js';
import type { RaceLedger } from './race-ledger.js';
import type { RaceWorld } from './race-world.js';

export const GUARD_MS = 3_000;

/** How often a worker checks whether there is something to send, or to poll, before it ends. */
const ITERATIONS = 8;

const PLACE: JournalPlace = { host: 'host-1', dir: '/journal' };

const SETTINGS: SenderRuntime['settings'] = {
  intervalMs: 1_000,
  inFlightMaxMs: IN_FLIGHT_MAX_MS,
  leaseMs: 0,
  quarantineMs: 0,
  maxRejectionsInARow: 2,
  maxPayoutRejectionsInARow: 50,
  maxUnknownsInARow: 2,
};

export interface RaceWorkerOptions {
  readonly world: RaceWorld;
  readonly name: string;
  readonly ledger: RaceLedger;
  readonly gateway: RaceGateway;
  readonly lines: JournalLine[];
  /** The number of the command to the ledger at which it is killed. */
  readonly killedAt?: number | undefined;
  /** Plants a mistake. */
  readonly alterRuntime?: ((runtime: SenderRuntime) => SenderRuntime) | undefined;
}

/**
 * A worker of the real sender, recovery and polls. It takes the lease without waiting for it to stand still: two payments
 * for one payout must be impossible even so, only the pace may suffer.
 */
export async function runWorker(options: RaceWorkerOptions): Promise<void> {
  const { world, name, gateway, lines, killedAt = Infinity } = options;
  let commands = 0;
  const killed = new AbortController();
  const isDead = (): boolean => {
    commands += 1;
    if (commands <= killedAt) return false;
    if (!killed.signal.aborted) world.note(`${name} is KILLED`);
    killed.abort();
    return true;
  };
  const ledger = options.ledger.linkOf(name, isDead);
  const clock = world.clockOf(name);
  const journal = new RaceJournal(world, name, lines);
  const { alterRuntime = (sound: SenderRuntime) => sound } = options;

  const object = async (mismatch: LedgerMismatch): Promise<void> => {
    await ledger.object({ ...mismatch, ...describeJournal(journal, PLACE, clock.wallNow()) });
  };

  const send = async (): Promise<void> => {
    await journal.reload();
    const view = await ledger.readSender();
    const found = await findMismatch(journal, view, ledger);
    if (found?.kind === 'ledger') await object(found);
    // The holder may have sent between the two reads, so that the journal seems to lack something: harmless, as in production.
    if (found !== undefined) return;
    const epoch = await ledger.acquireLease(name, view, describeJournal(journal, PLACE, clock.wallNow()), 0);
    if (epoch === undefined) return;
    const lease = { owner: name, epoch };
    const heldLease: HeldLease = {
      lease,
      view: await ledger.readSender(),
      firstSendAt: clock.now(),
      heartbeat: () => 0,
      lost: new AbortController().signal,
      release: async () => ledger.releaseLease(lease),
      stopHeartbeat: () => undefined,
    };
    const { ledgerId, sendCount, last } = heldLease.view;
    if (journal.ledger === undefined) await journal.bind({ ledgerId, epoch, sends: sendCount, token: last });
    let tokens = 0;
    const stop = new AbortController();
    const runtime = alterRuntime({
      clock,
      senderLedger: ledger,
      journal,
      gateway: gateway.linkOf(name),
      pacer: new Pacer(clock, SETTINGS),
      settings: SETTINGS,
      hindrance: () => undefined,
      audience: 'test',
      journalPlace: PLACE,
      journalKeptMs: Infinity,
      makeOwner: () => name,
      makeToken: () => `${name}.${epoch}.${(tokens += 1)}`,
      guardMs: GUARD_MS,
      relayOutbox: async () => Promise.resolve(0),
      observer: noObserver,
      logger: silentLogger,
    });
    const stopGrace = new StopGrace(clock, new AbortController().signal, 0);
    const onUnrecordable = (reason: string | undefined): void => {
      if (reason !== undefined) world.breaks(`not recorded: ${reason}`);
    };
    const sender = new Sender(runtime, heldLease, stopGrace, onUnrecordable, undefined);
    const { recovery } = sender;
    await recovery.resolveLeftovers();
    let firstMismatch: LedgerMismatch | undefined;
    const onMismatch = (mismatch: LedgerMismatch): void => {
      firstMismatch ??= mismatch;
      stop.abort();
    };
    const recovering = recoverRegularly(runtime, recovery, onMismatch, stop.signal);
    for (let iteration = 0; iteration < ITERATIONS && !isAborted(stop.signal); iteration += 1) {
      for (const payoutId of await ledger.idsIn('queued').catch(() => [])) {
        const report = await sender.send(payoutId, stop.signal).catch((error: unknown) => ({
          kind: 'not_sent' as const,
          reason: String(error),
        }));
        world.note(`${name} ${payoutId}: ${JSON.stringify(report)}`);
        if (report.kind === 'ledger_mismatch') onMismatch(report.mismatch);
        if (isAborted(stop.signal)) break;
      }
      await clock.sleep(500, stop.signal);
    }
    stop.abort();
    await recovering;
    if (firstMismatch === undefined) await heldLease.release();
    else await object(firstMismatch);
  };

  const poll = async (): Promise<void> => {
    for (let iteration = 0; iteration < ITERATIONS; iteration += 1) {
      for (const payoutId of await ledger.idsIn('in_progress').catch(() => [])) {
        // A poll that fails changes nothing.
        await pollPayout(payoutId, ledger, gateway, silentLogger).catch(() => undefined);
      }
      await clock.sleep(1_000);
    }
  };
  const death = new Promise<void>((resolve) => {
    killed.signal.addEventListener('abort', () => {
      resolve();
    });
  });
  const sending = send().catch((error: unknown) => {
    world.note(`${name} was interrupted: ${(error as Error).message}`);
  });
  await Promise.race([Promise.all([sending, poll()]), death]);
}

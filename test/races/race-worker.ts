import { isAborted } from '../../src/clock.js';
import { silentLogger } from '../../src/logger.js';
import type { HeldLease } from '../../src/worker/lease-keeper.js';
import { Pacer } from '../../src/worker/pacer.js';
import { pollPayout } from '../../src/worker/poll-payout.js';
import { recoverRegularly, recoverSends } from '../../src/worker/recovery.js';
import { findDisagreement } from '../../src/worker/send-journal.js';
import { Sender, type SenderOptions } from '../../src/worker/sender.js';
import { noObserver } from '../../src/worker/worker-observer.js';
import { IN_FLIGHT_MAX_MS, type RaceGateway } from './race-gateway.js';
import { RaceJournal, type JournalLines } from './race-journal.js';
import type { RaceLedger } from './race-ledger.js';
import type { RaceWorld } from './race-world.js';

export const GUARD_MS = 3_000;

/** So often a worker looks whether there is something to send, or to ask about, before it ends. */
const ROUNDS = 8;

export interface RaceWorkerOptions {
  readonly world: RaceWorld;
  readonly name: string;
  readonly ledger: RaceLedger;
  readonly gateway: RaceGateway;
  readonly lines: JournalLines;
  /** It is killed at its so many-th command to the ledger. */
  readonly killedAt?: number | undefined;
  readonly makeSender?: ((options: SenderOptions) => Sender) | undefined;
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
  const makeSender = options.makeSender ?? ((given: SenderOptions) => new Sender(given));

  const send = async (): Promise<void> => {
    await journal.reload();
    const view = await ledger.readSender();
    if ((await findDisagreement(journal, view, ledger, clock.wallNow())) !== undefined) return;
    const epoch = await ledger.acquireLease(name, view.lease);
    if (epoch === undefined) return;
    const lease = { owner: name, epoch };
    const held: HeldLease = {
      lease,
      view: await ledger.readSender(),
      firstSendAt: clock.now(),
      lost: new AbortController().signal,
      release: async () => ledger.releaseLease(lease),
      abandon: () => undefined,
    };
    const { ledgerId, sends } = held.view;
    if (journal.ledger === undefined) await journal.bind({ ledgerId, epoch, sends });
    await recoverSends({ ledger, lease, logger: silentLogger });
    const stop = new AbortController();
    const sender = makeSender({
      clock,
      ledger,
      journal,
      gateway: gateway.linkOf(name),
      pacer: new Pacer({ clock, intervalMs: 1_000, inFlightMaxMs: IN_FLIGHT_MAX_MS }),
      held,
      giveUp: new AbortController().signal,
      guardMs: GUARD_MS,
      maxRejectionsInARow: 2,
      maxUnknownsInARow: 2,
      observer: noObserver,
      logger: silentLogger,
    });
    let refusal: string | undefined;
    const onRefused = (reason: string): void => {
      refusal ??= reason;
      stop.abort();
    };
    const recovery = recoverRegularly(
      {
        clock,
        ledger,
        sender,
        lease,
        onRefused,
        delivery: { deliverOutbox: async () => Promise.resolve(0), checkAll: async () => Promise.resolve(0) },
        logger: silentLogger,
      },
      stop.signal,
    );
    for (let round = 0; round < ROUNDS && !isAborted(stop.signal); round += 1) {
      for (const payoutId of await ledger.idsIn('queued').catch(() => [])) {
        const report = await sender.send(payoutId, stop.signal).catch((error: unknown) => ({
          kind: 'not_sent' as const,
          reason: String(error),
        }));
        world.note(`${name} ${payoutId}: ${JSON.stringify(report)}`);
        if (report.kind === 'ledger_refused') onRefused(report.reason);
        if (isAborted(stop.signal)) break;
      }
      await clock.sleep(500, stop.signal);
    }
    stop.abort();
    await recovery;
    if (refusal === undefined) await held.release();
    else await ledger.pause(refusal);
  };

  const poll = async (): Promise<void> => {
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const payoutId of await ledger.idsIn('in_progress').catch(() => [])) {
        // A poll that fails changes nothing.
        await pollPayout(payoutId, { ledger, gateway, logger: silentLogger }).catch(() => undefined);
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

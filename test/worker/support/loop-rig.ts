import { untilAborted } from '../../../src/base/clock.js';
import type { KnownJournal, Objection, SenderLedger } from '../../../src/ledger/sender-ledger.js';
import type { PayoutState } from '../../../src/ledger/states.js';
import { KeptPause } from '../../../src/worker/sender/kept-pause.js';
import type { ActiveSender } from '../../../src/worker/sender/send-until-decided.js';
import type { ResumeAuthority, SendAuthority } from '../../../src/worker/sender/send-authority.js';
import { SenderLoop } from '../../../src/worker/sender/sender-loop.js';
import { countLedgers, RigLedger } from '../../world/world-rig.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { ScriptedGateway } from '../../doubles/scripted-gateway.js';
import { JOURNAL, nextBegin } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { afterTest } from './close-after-test.js';
import { hooked, listeningLogger, makeRuntime, throwing, UNAVAILABLE, type SendRig } from './send-rig.js';

type Work = (active: ActiveSender, end: AbortSignal) => Promise<void>;

export type LoopRig = ReturnType<LoopWorld['make']>;

export interface LoopRigOptions {
  readonly name?: string;
  readonly journal?: MemoryJournal;
  readonly quarantineMs?: number;
  readonly authority?: SendAuthority;
  readonly resumeAuthority?: ResumeAuthority;
  readonly pause?: KeptPause;
  readonly work?: Work;
}

type EarlierSend = Partial<KnownJournal> & { readonly inFlightMs?: number; readonly payoutId?: string };

/** The ledger and the time that all processes share. They end with the test. */
export class LoopWorld {
  readonly clock = new ManualClock();
  readonly ledger = new RigLedger({ clock: this.clock, nextLedgerId: countLedgers() });
  readonly #processes: { readonly stop: AbortController; readonly ended: () => Promise<void> }[] = [];

  constructor() {
    afterTest(async () => this.endAll());
  }

  advance = async (ms: number): Promise<void> => this.clock.advance(ms);
  stateOf = async (payoutId: string): Promise<PayoutState | undefined> =>
    (await this.ledger.readPayout(payoutId))?.state;
  objections = async (): Promise<readonly Objection[]> => (await this.ledger.readSender()).objections;
  lease = async () => (await this.ledger.readSender()).lease;

  /** Sends a payout as soon as it may, and returns what its sender objects to. */
  sendOnce =
    (payoutId = 'p'): Work =>
    async ({ sender, onMismatch }, end) => {
      const report = await sender.send(payoutId, end);
      if (report.kind === 'ledger_mismatch') onMismatch(report.mismatch);
      await untilAborted(end);
    };

  /** Sends a payout whenever it is queued, and returns what the sender objects to. */
  sendQueued =
    (payoutId = 'p'): Work =>
    async ({ sender, onMismatch }, end) => {
      while (!end.aborted) {
        if ((await this.stateOf(payoutId)) === 'queued') {
          const report = await sender.send(payoutId, end).catch(() => undefined);
          if (report?.kind === 'ledger_mismatch') onMismatch(report.mismatch);
        }
        await this.clock.sleep(200, end);
      }
    };

  /** A sender that is gone has taken the lease, and begun the first attempt of a payout. */
  async earlierSend({ inFlightMs = 500, payoutId = 'p', ...known }: EarlierSend = {}) {
    const { ledger } = this;
    const journal = { ...JOURNAL, ...known };
    ledger.enqueue(aPayout(payoutId));
    const epoch = (await ledger.acquireLease('earlier', await ledger.readSender(), journal, 0)) ?? 0;
    const lease = { owner: 'earlier', epoch };
    const asked = { ...(await nextBegin(ledger, lease, payoutId)), journal, inFlightMs };
    await ledger.beginSend(asked);
    return { lease, epoch, attempt: { payoutId, attempt: 1, token: asked.token } };
  }

  make(options: LoopRigOptions = {}) {
    const { clock, ledger } = this;
    const { name = 'one', journal = new MemoryJournal(`j-${name}`), quarantineMs = 0, resumeAuthority } = options;
    const { work = async (_: ActiveSender, end: AbortSignal) => untilAborted(end) } = options;
    const gateway = new ScriptedGateway(clock);
    const stop = new AbortController();
    const said: string[] = [];
    const [before, after]: [SendRig['before'], SendRig['after']] = [{}, {}];
    let [owners, tokens] = [0, 0];
    const runtime = makeRuntime({
      ...{ clock, senderLedger: hooked(ledger, before, after), journal, gateway },
      settings: { quarantineMs },
      authority: options.authority,
      makeOwner: () => `${name}.${(owners += 1)}`,
      makeToken: () => `${name}-t${(tokens += 1)}`,
      journalPlace: { host: `host-${name}`, dir: `/${name}` },
      logger: listeningLogger(said),
    });
    const pause = options.pause ?? (resumeAuthority && new KeptPause(runtime, resumeAuthority));
    const loop = new SenderLoop(runtime, stop.signal, work, pause);
    let running = Promise.resolve();
    const ended = async (): Promise<void> => clock.until(running);
    this.#processes.push({ stop, ended });
    return {
      ...{ loop, journal, gateway, said, before, after, stop, ended },
      errors: () => said.filter((line) => line.startsWith('error')),
      start: () => void (running = loop.run()),
    };
  }

  start(options: LoopRigOptions = {}): LoopRig {
    const rig = this.make(options);
    rig.start();
    return rig;
  }

  async endAll(): Promise<void> {
    for (const { stop } of this.#processes) stop.abort();
    for (const { ended } of this.#processes) await ended();
  }
}

const CALLS = [
  ...(['readSender', 'acquireLease', 'renewLease', 'releaseLease', 'readPayout', 'findForgottenSends'] as const),
  ...(['beginSend', 'holdPayout', 'findSignedBefore', 'revertSend', 'finishSend', 'readSending'] as const),
  ...(['markSendsUnknown', 'object'] as const),
] satisfies readonly (keyof SenderLedger)[];

/** A process can ask Redis nothing, until what this returns is called. */
export function cutFromRedis({ before }: LoopRig): () => void {
  for (const call of CALLS) before[call] = throwing(UNAVAILABLE);
  return () => {
    for (const call of CALLS) before[call] = () => undefined;
  };
}

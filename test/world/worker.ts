import { isAborted, untilAborted, type Clock } from '../../src/base/clock.js';
import type { Logger } from '../../src/base/logger.js';
import { AccountPolicy } from '../../src/control/worker/account-policy.js';
import { SignedAuthority, type SignedRuntime } from '../../src/control/worker/signed-authority.js';
import type { WithdrawGateway } from '../../src/gateway/gateway.js';
import type { SendJournal } from '../../src/journal/send-journal.js';
import type { StateChange } from '../../src/ledger/payout-ledger.js';
import type { ValidPayout } from '../../src/ledger/payout.js';
import { KeptPause } from '../../src/worker/sender/kept-pause.js';
import { Pacer, type Pace } from '../../src/worker/sender/pacer.js';
import type { ResumeAuthority, SendAuthority } from '../../src/worker/sender/send-authority.js';
import { sendUntilDecided, type ActiveSender } from '../../src/worker/sender/send-until-decided.js';
import { SenderLoop } from '../../src/worker/sender/sender-loop.js';
import type { SenderRuntime } from '../../src/worker/sender/sender-runtime.js';
import { noObserver } from '../../src/worker/sender/worker-observer.js';
import type { Settings } from '../proofs/simulation/plan.js';
import type { WorkerLedger } from './ledger-link.js';
import { WorldLedger, type WorldLedgerOptions } from './world-ledger.js';
import type { WorldProcess } from './world.js';

export function walletOf(payoutId: string): string {
  return `wallet-${payoutId}`;
}

export function newPayout(payoutId: string): ValidPayout {
  return { payoutId, paymentId: 7, amount: '12.5', addressTo: walletOf(payoutId) };
}

type PolicyArguments = ConstructorParameters<typeof AccountPolicy>;

export type PolicyPieces = PolicyArguments[0] &
  Readonly<{
    signatures: PolicyArguments[1];
    source: PolicyArguments[2];
    publish: PolicyArguments[3];
  }>;

export function openPolicy({ signatures, source, publish, ...runtime }: PolicyPieces): AccountPolicy {
  return new AccountPolicy(runtime, signatures, source, publish);
}

export type PieceContext = Readonly<{
  clock: Clock;
  pacer: Pacer;
  settings: Settings;
  ledgerOfRun: WorldLedger;
}>;

/** The pieces that a worker is made of. A planted mistake replaces some of them; the sound ones change nothing. */
export type Pieces = Readonly<{
  makeToken: (next: string, epoch: number) => string;
  makeLedger: (options: WorldLedgerOptions) => WorldLedger;
  makePacer: (clock: Clock, pace: Pace) => Pacer;
  wrapLedger: (ledger: WorkerLedger, context: PieceContext) => WorkerLedger;
  wrapGateway: (gateway: WithdrawGateway, context: PieceContext) => WithdrawGateway;
  wrapJournal: (journal: SendJournal, context: PieceContext) => SendJournal;
  makeAuthority: (options: SignedRuntime, context: PieceContext) => SendAuthority & ResumeAuthority;
  makePolicy: (options: PolicyPieces) => AccountPolicy;
  adoptsWithoutProof: boolean;
  signsInDoubt: boolean;
}>;

export const soundPieces: Pieces = {
  makeToken: (next) => next,
  makeLedger: (options) => new WorldLedger(options),
  makePacer: (clock, pace) => new Pacer(clock, pace),
  wrapLedger: (ledger) => ledger,
  wrapGateway: (gateway) => gateway,
  wrapJournal: (journal) => journal,
  makeAuthority: (options) => new SignedAuthority(options),
  makePolicy: openPolicy,
  adoptsWithoutProof: false,
  signsInDoubt: false,
};

type WorkerParts = Readonly<{
  process: WorldProcess;
  pieces: Pieces;
  settings: Settings;
  ledger: WorkerLedger;
  gateway: WithdrawGateway;
  journal: SendJournal;
  ledgerOfRun: WorldLedger;
  dir: string;
  nextToken: () => string;
  ringsTwice?: number;
  control?: (
    journal: SendJournal,
    ledger: WorkerLedger,
    context: PieceContext,
    logger: Logger,
  ) => Readonly<{
    authority: (SendAuthority & ResumeAuthority) | undefined;
    policy: AccountPolicy | undefined;
  }>;
}>;

const IDLE_MS = 500;
const PUT_BACK_MS = 10;
const OPEN_AGAIN_MS = 3_000;

/** The real sender loop, with a job for every payout that is queued instead of BullMQ, so that no job is ever missing. */
export class WorldWorker {
  isOpen = false;
  readonly #process: WorldProcess;
  readonly #ledger: WorkerLedger;
  readonly #journal: SendJournal;
  readonly #policy: AccountPolicy | undefined;
  readonly #ringsTwice: number;
  readonly #loop: SenderLoop;
  readonly #stop = new AbortController();
  #owners = 0;

  constructor({ process, pieces, settings, ledgerOfRun, dir, nextToken, ringsTwice = 0, ...parts }: WorkerParts) {
    const pacer = pieces.makePacer(process, settings);
    const context = { clock: process, pacer, settings, ledgerOfRun };
    const journal = pieces.wrapJournal(parts.journal, context);
    const ledger = pieces.wrapLedger(parts.ledger, context);
    const logger = tracingLogger(process);
    const { authority, policy } = parts.control?.(journal, ledger, context, logger) ?? {};
    this.#process = process;
    this.#ledger = ledger;
    this.#journal = journal;
    this.#policy = policy;
    this.#ringsTwice = ringsTwice;
    const runtime: SenderRuntime = {
      clock: process,
      senderLedger: ledger,
      relayOutbox: async () => Promise.resolve(0),
      journal,
      audience: 'test',
      journalPlace: { host: dir, dir },
      journalKeptMs: Infinity,
      makeToken: () => pieces.makeToken(nextToken(), this.#epoch),
      gateway: pieces.wrapGateway(parts.gateway, context),
      pacer,
      settings: { ...settings, maxRejectionsInARow: 4, maxPayoutRejectionsInARow: 50, maxUnknownsInARow: 2 },
      guardMs: settings.guardMs,
      hindrance: () => undefined,
      makeOwner: () => `${process.name}.${(this.#owners += 1)}`,
      authority: policy?.authority ?? authority,
      observer: noObserver,
      logger,
    };
    const pause = authority && new KeptPause(runtime, authority);
    this.#loop = new SenderLoop(runtime, this.#stop.signal, async (active, end) => this.#work(active, end), pause);
  }

  get mismatch(): string | undefined {
    const { status } = this.#loop;
    return status.role === 'refused' ? status.reason : undefined;
  }

  get isUnadopted(): boolean {
    return this.mismatch?.includes('payouts audit adopt-journal') === true;
  }

  get #epoch() {
    const { status } = this.#loop;
    return status.role === 'sender' ? status.epoch : 0;
  }

  get isSender(): boolean {
    return this.#loop.status.role === 'sender';
  }

  async run(): Promise<void> {
    while (!this.isOpen) {
      try {
        await this.#journal.reload();
        this.isOpen = true;
      } catch {
        await this.#process.sleep(OPEN_AGAIN_MS, this.#stop.signal);
        if (this.isStopping) return;
      }
    }
    await this.#loop.run();
  }

  /** Ends in good order; of a process that is dead, what it still waits for: Node never collects a signal with a listener. */
  stop(): void {
    this.#stop.abort();
  }

  get isStopping(): boolean {
    return this.#stop.signal.aborted;
  }

  async #work(active: ActiveSender, end: AbortSignal) {
    // Not `await policy?.…`: a step more would make other runs of the seeds without a policy.
    if (this.#policy !== undefined) await this.#policy.takeOver(end);
    const kept = this.#policy?.keep(end);
    const stop = new AbortController();
    const running = this.#runJobs(this.#traced(active), stop.signal);
    await untilAborted(end);
    stop.abort();
    await running;
    if (kept !== undefined) await kept;
  }

  async #runJobs(active: ActiveSender, signal: AbortSignal) {
    const process = this.#process;
    const runJob = async (payoutId: string) => {
      const { kind } = await sendUntilDecided(payoutId, active, signal);
      if (kind === 'put_back') await process.sleep(PUT_BACK_MS, signal);
    };
    while (!isAborted(signal)) {
      const queued = await this.#ledger.queued().catch(() => []);
      if (queued.length === 0) await process.sleep(IDLE_MS, signal);
      for (const payoutId of queued) {
        await runJob(payoutId);
        if (process.world.fault(this.#ringsTwice)) await runJob(payoutId);
        if (isAborted(signal)) return;
      }
    }
  }

  #traced({ sender, ...rest }: ActiveSender): ActiveSender {
    const { world, name } = this.#process;
    const send: typeof sender.send = async (payoutId, stop) => {
      const report = await sender.send(payoutId, stop);
      world.note(() => `${name} ${payoutId}: ${JSON.stringify(report)}`);
      return report;
    };
    return { ...rest, sender: { send } };
  }
}

function tracingLogger(process: WorldProcess): Logger {
  const note = (fields: object, message: string) => {
    process.world.note(() => `${process.name} ${message} ${JSON.stringify(fields)}`);
  };
  return { debug: () => undefined, info: note, warn: note, error: note, child: () => tracingLogger(process) };
}

/** What an operator may truthfully state of a payout that is `unknown`. @param txhash - the gateway's payment of it */
export function truthfulResolution(txhash: string | undefined): Pick<StateChange, 'to' | 'txhash'> {
  return txhash === undefined ? { to: 'queued' } : { to: 'in_progress', txhash };
}

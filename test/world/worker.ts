import { type Clock, isAborted, untilAborted } from '../../src/base/clock.js';
import type { Logger } from '../../src/base/logger.js';
import { AccountPolicy } from '../../src/control/worker/account-policy.js';
import { RejectionAuthority } from '../../src/control/worker/rejection-authority.js';
import { SignedAuthority, type SignedRuntime } from '../../src/control/worker/signed-authority.js';
import type { WithdrawGateway } from '../../src/gateway/gateway.js';
import type { AccountJournal } from '../../src/journal/control-journal.js';
import { AccountReplicas } from '../../src/ledger/known-replicas.js';
import type { LedgerConnection } from '../../src/ledger/ledger-connection.js';
import type { StateChange } from '../../src/ledger/payout-ledger.js';
import type { ValidPayout } from '../../src/ledger/payout.js';
import type { ReplicasSeen } from '../../src/ledger/sender-ledger.js';
import type { LookUpLedger } from '../../src/ledger/order-look-ups.js';
import type { LookUpGateway } from '../../src/operator/find-payments.js';
import { Janitor, type JanitorRuntime } from '../../src/worker/janitor.js';
import { KeptPause } from '../../src/worker/sender/kept-pause.js';
import { type Pace, Pacer } from '../../src/worker/sender/pacer.js';
import type { ResumeAuthority, SendAuthority } from '../../src/worker/sender/send-authority.js';
import { type ActiveSender, sendUntilDecided } from '../../src/worker/sender/send-until-decided.js';
import { SenderLoop } from '../../src/worker/sender/sender-loop.js';
import type { SenderRuntime } from '../../src/worker/sender/sender-runtime.js';
import { noObserver } from '../../src/worker/sender/worker-observer.js';
import type { Settings } from '../proofs/simulation/plan.js';
import type { WorkerLedger } from './links.js';
import { WorldLedger, type WorldLedgerOptions } from './world-ledger.js';
import type { WorldProcess } from './world.js';

export function walletOf(payoutId: string) {
  return `wallet-${payoutId}`;
}

export function newPayout(payoutId: string): ValidPayout {
  return { payoutId, paymentId: 7, amount: '12.5', addressTo: walletOf(payoutId) };
}

export type Authority = SendAuthority & ResumeAuthority;

type PolicyArguments = ConstructorParameters<typeof AccountPolicy>;

export type PolicyPieces = PolicyArguments[0] &
  Readonly<{ signatures: PolicyArguments[1]; source: PolicyArguments[2]; publish: PolicyArguments[3] }>;

export function openPolicy({ signatures, source, publish, ...runtime }: PolicyPieces): AccountPolicy {
  return new AccountPolicy(runtime, new RejectionAuthority(runtime, signatures), source, publish);
}

export type PieceContext = Readonly<{ clock: Clock; pacer: Pacer; settings: Settings; ledgerOfRun: WorldLedger }>;

/** What a janitor asks: the gateway, and the ledger. */
export type LookUps = Readonly<{ gateway: LookUpGateway; ledger: LookUpLedger }>;

/** The pieces that a worker is made of. A planted mistake replaces some of them; the sound ones change nothing. */
export type Pieces = Readonly<{
  makeToken: (next: string, epoch: number) => string;
  makeLedger: (options: WorldLedgerOptions) => WorldLedger;
  makePacer: (clock: Clock, pace: Pace) => Pacer;
  wrapLedger: (ledger: WorkerLedger, context: PieceContext) => WorkerLedger;
  wrapGateway: (gateway: WithdrawGateway, context: PieceContext) => WithdrawGateway;
  wrapJournal: (journal: AccountJournal, context: PieceContext) => AccountJournal;
  wrapLookUps: (lookUps: LookUps, context: PieceContext) => LookUps;
  makeAuthority: (options: SignedRuntime, context: PieceContext) => Authority;
  makePolicy: (options: PolicyPieces) => AccountPolicy;
  adoptsWithoutProof: boolean;
  signsInDoubt: boolean;
  /** A connection is closed where it should be reset. */
  closesOnly: boolean;
  statesAnyAttempt: boolean;
  /** What a process knows of its account's replicas, at a master of this replication id. */
  knowReplicas: (
    connection: LedgerConnection,
    lowest: number,
    run: object,
  ) => (replicationId: string) => AccountReplicas;
  /** How many replicas a command asks, of those that it has to. */
  commandAsks: (required: number) => number;
}>;

export const soundPieces: Pieces = {
  makeToken: (next) => next,
  makeLedger: (options) => new WorldLedger(options),
  makePacer: (clock, pace) => new Pacer(clock, pace),
  wrapLedger: (ledger) => ledger,
  wrapGateway: (gateway) => gateway,
  wrapJournal: (journal) => journal,
  wrapLookUps: (lookUps) => lookUps,
  makeAuthority: (options) => new SignedAuthority(options),
  makePolicy: openPolicy,
  adoptsWithoutProof: false,
  signsInDoubt: false,
  closesOnly: false,
  statesAnyAttempt: false,
  knowReplicas: (connection, lowest) => {
    const known = new AccountReplicas(connection, lowest);
    return () => known;
  },
  commandAsks: (required) => required,
};

type WorkerParts = Readonly<{
  process: WorldProcess;
  pieces: Pieces;
  settings: Settings;
  ledger: WorkerLedger;
  gateway: WithdrawGateway;
  journal: AccountJournal;
  /** Undefined: the gateway has no order ids, and the worker no janitor. */
  lookUps?: LookUps | undefined;
  ledgerOfRun: WorldLedger;
  dir: string;
  nextToken: () => string;
  ringsTwice?: number;
  acknowledgedReplicas?: (() => ReplicasSeen) | undefined;
  control?: (
    journal: AccountJournal,
    ledger: WorkerLedger,
    context: PieceContext,
    logger: Logger,
  ) => Readonly<{ authority: Authority | undefined; policy: AccountPolicy | undefined }>;
}>;

const AUDIENCE = 'test';
const POLL_RATE = 10;
const IDLE_MS = 500;
const PUT_BACK_MS = 10;
const OPEN_AGAIN_MS = 3_000;

export type WorldWorker = ReturnType<typeof makeWorker>;

/** The real sender loop, with a job for every payout that is queued instead of BullMQ, so that no job is ever missing. */
export function makeWorker({
  process,
  pieces,
  settings,
  ledgerOfRun,
  dir,
  nextToken,
  ringsTwice = 0,
  ...parts
}: WorkerParts) {
  const { world, name } = process;
  const pacer = pieces.makePacer(process, settings);
  const context = { clock: process, pacer, settings, ledgerOfRun };
  const journal = pieces.wrapJournal(parts.journal, context);
  const ledger = pieces.wrapLedger(parts.ledger, context);
  const logger = tracingLogger(process);
  const { authority, policy } = parts.control?.(journal, ledger, context, logger) ?? {};
  const lookUps = parts.lookUps && pieces.wrapLookUps(parts.lookUps, context);
  const end = new AbortController();
  let owners = 0;

  const foundPayment = () => world.actions?.end('a janitor finds a payment');
  const janitorJournal: JanitorRuntime['journal'] = {
    lastSends: (limit) => journal.lastSends(limit),
    noteOutcome: (...args) => {
      foundPayment();
      journal.noteOutcome(...args);
    },
    get ledger() {
      return journal.ledger;
    },
  };
  const janitor =
    lookUps &&
    (() =>
      new Janitor({
        ...{ clock: process, gateway: lookUps.gateway, journal: janitorJournal, logger },
        lookUps: {
          ...lookUps.ledger,
          recordFound: async (...args) => {
            foundPayment();
            return lookUps.ledger.recordFound(...args);
          },
        },
        ...{ audience: AUDIENCE, observer: noObserver, settings: { pollRate: POLL_RATE } },
        publishEvidence: async () => Promise.resolve(),
      }));

  const runJobs = async (active: ActiveSender, signal: AbortSignal) => {
    const runJob = async (payoutId: string) => {
      const { kind } = await sendUntilDecided(payoutId, active, signal);
      if (kind === 'put_back') await process.sleep(PUT_BACK_MS, signal);
    };
    while (!isAborted(signal)) {
      const queued = await ledger.queued().catch(() => []);
      if (queued.length === 0) await process.sleep(IDLE_MS, signal);
      for (const payoutId of queued) {
        await runJob(payoutId);
        if (world.fault(ringsTwice)) await runJob(payoutId);
        if (isAborted(signal)) return;
      }
    }
  };

  const traced = ({ sender, ...rest }: ActiveSender): ActiveSender => {
    const send: typeof sender.send = async (payoutId, stop) => {
      const report = await sender.send(payoutId, stop);
      world.note(() => `${name} ${payoutId}: ${JSON.stringify(report)}`);
      return report;
    };
    return { ...rest, sender: { send } };
  };

  const work = async (active: ActiveSender, ended: AbortSignal) => {
    // Not `await policy?.…`: a step more would make other runs of the seeds without a policy.
    if (policy !== undefined) await policy.takeOver(ended);
    const kept = policy?.keep(ended);
    const cleaned = janitor?.().run(ended);
    const stop = new AbortController();
    const running = runJobs(traced(active), stop.signal);
    await untilAborted(ended);
    stop.abort();
    await running;
    if (kept !== undefined) await kept;
    if (cleaned !== undefined) await cleaned;
  };

  const runtime: SenderRuntime = {
    ...{ clock: process, senderLedger: ledger, journal, pacer, logger, guardMs: settings.guardMs },
    machineUptime: () => process.now(),
    ...{ audience: AUDIENCE, journalLocation: { host: dir, dir }, journalKeptMs: Infinity, observer: noObserver },
    relayOutbox: async () => Promise.resolve(0),
    onBroken: ({ message }) => {
      world.fail(message);
    },
    makeToken: () => pieces.makeToken(nextToken(), loop.status.role === 'sender' ? loop.status.epoch : 0),
    gateway: pieces.wrapGateway(parts.gateway, context),
    settings: { ...settings, maxRejectionsInARow: 4, maxPayoutRejectionsInARow: 50, maxUnknownsInARow: 2 },
    hindrance: () => undefined,
    acknowledgedReplicas: parts.acknowledgedReplicas ?? (() => ({ count: 0, names: [] })),
    makeOwner: () => `${name}.${(owners += 1)}`,
    authority: policy?.authority ?? authority,
  };
  const loop: SenderLoop = new SenderLoop(
    runtime,
    end.signal,
    work,
    authority && new KeptPause({ ...runtime, journal }, authority),
  );

  const worker = {
    isOpen: false,

    get mismatch() {
      return loop.status.role === 'refused' ? loop.status.reason : undefined;
    },

    get isUnadopted() {
      return worker.mismatch?.includes('payouts audit adopt-journal') === true;
    },

    get isSender() {
      return loop.status.role === 'sender';
    },

    get isStopping() {
      return end.signal.aborted;
    },

    async run() {
      while (!worker.isOpen) {
        try {
          await journal.reload();
          worker.isOpen = true;
        } catch {
          await process.sleep(OPEN_AGAIN_MS, end.signal);
          if (worker.isStopping) return;
        }
      }
      await loop.run();
    },

    /** Ends in good order; of a process that is dead, what it still waits for: Node never collects a signal with a listener. */
    stop() {
      end.abort();
    },
  };
  return worker;
}

function tracingLogger(process: WorldProcess): Logger {
  const note = (fields: object, message: string) => {
    process.world.note(() => `${process.name} ${message} ${JSON.stringify(fields)}`);
  };
  return { debug: () => undefined, info: note, warn: note, error: note, child: () => tracingLogger(process) };
}

/** What an operator may truthfully state of an `unknown` payout that has this payment. */
export function truthfulResolution(gatewayId: string | undefined): Pick<StateChange, 'to' | 'gatewayId'> {
  return gatewayId === undefined ? { to: 'queued' } : { to: 'in_progress', gatewayId };
}

import type { Logger } from '../../../src/base/logger.js';
import type { FaultInjector } from './fault-injector.js';
import { GatewayLink } from './gateway-link.js';
import { JournalFile } from './journal-file.js';
import type { LedgerLinkOptions } from './ledger-call.js';
import { linkLedger, type WorkerLedger } from './ledger-link.js';
import { linkHolds } from './policed/link-holds.js';
import type { SimPolicy } from './policed/sim-policy.js';
import type { Pieces, PolicyPieces } from './pieces.js';
import type { Plan } from './plan.js';
import type { Attacker } from './signed/attacker.js';
import { FIRST_BIRTH, type SimControl } from './signed/sim-control.js';
import { KEYRING, PLATFORM_ID } from './signed/sim-keys.js';
import type { SimGateway } from './sim-gateway.js';
import { SimJournal } from './sim-journal.js';
import type { JournalFolder } from './sim-operator.js';
import { SimProcess } from './sim-process.js';
import type { SimRedis } from './sim-redis.js';
import { SimWorker } from './sim-worker.js';
import type { World } from './world.js';

/** A run takes minutes: its days are short. */
const RATE_MOVE_EVERY_MS = 60_000;

/** A worker and the process that it runs in. */
export interface Started {
  readonly process: SimProcess;
  readonly worker: SimWorker;
}

export interface Host extends JournalFolder {
  file: JournalFile;
  readonly running: Map<string, Started>;
}

export interface SimHostsOptions {
  readonly world: World;
  readonly plan: Plan;
  readonly pieces: Pieces;
  readonly injector: FaultInjector;
  readonly redis: SimRedis;
  readonly gateway: SimGateway;
  /** In signed mode. */
  readonly control?: SimControl | undefined;
  readonly attacker?: Attacker | undefined;
  readonly policy?: SimPolicy | undefined;
}

/** The hosts with their journals, and the worker processes that run on them. */
export class SimHosts {
  readonly all: readonly Host[];
  /** Told now and then when the worker of a process is about to begin a send. */
  onBegin: (process: SimProcess) => void = () => undefined;
  readonly #options: SimHostsOptions;
  readonly #workers: SimWorker[] = [];
  #tokens = 0;

  constructor(options: SimHostsOptions) {
    this.#options = options;
    const { plan, control } = options;
    this.all = Array.from({ length: plan.hosts }, (_, number) => ({
      dir: `host${number}`,
      file: new JournalFile(`journal${number}`, control === undefined ? undefined : FIRST_BIRTH),
      running: new Map(),
    }));
    for (let number = 0; number < plan.workers; number += 1) this.startLater(`w${number}`, this.#hostOf(number));
  }

  /** The folders of the hosts of which a running worker refuses to send. */
  get refusing(): string[] {
    return this.all
      .filter(({ running }) =>
        [...running.values()].some(({ worker }) => worker.mismatch !== undefined && !worker.isUnadopted),
      )
      .map(({ dir }) => dir);
  }

  /** What operators of signed mode see of the hosts. */
  get signed(): { readonly file: JournalFile; readonly isUnadopted: boolean }[] {
    return this.all.map(({ file, running }) => ({
      file,
      isUnadopted: [...running.values()].some(({ worker }) => worker.isUnadopted),
    }));
  }

  /** The sender that is running, if there is one. */
  findSender(): Started | undefined {
    const started = this.all.flatMap(({ running }) => [...running.values()]);
    return started.find(({ process, worker }) => worker.isSender && !process.paused);
  }

  /** In signed mode, operators repair the clocks of hosts: what they sign has its time. */
  setClocksRight(): void {
    if (this.#options.control === undefined) return;
    for (const { running } of this.all) for (const { process } of running.values()) process.wallOffsetMs = 0;
  }

  /** Lets every stopped process continue. */
  continueAll(): void {
    for (const { running } of this.all) for (const { process } of running.values()) process.continueNow();
  }

  /** Ends what processes that are over still wait for: Node never collects a signal that has a listener. */
  close(): void {
    for (const { running } of this.all) for (const { process } of [...running.values()]) process.end();
    for (const worker of this.#workers) worker.forget();
  }

  #hostOf(worker: number): Host {
    const host = this.all[worker % this.all.length];
    if (host === undefined) throw new Error('a run has at least one host');
    return host;
  }

  startLater(slot: string, host: Host): void {
    const { world } = this.#options;
    world.after(world.random.heavyTail(200, 20_000), () => {
      this.#start(slot, host);
    });
  }

  /** Starts a process; one that ends is started again, as systemd or Kubernetes would. */
  #start(slot: string, host: Host): void {
    const { world, plan } = this.#options;
    const { random } = world;
    const clocks = this.#options.policy ?? this.#options.control;
    const process = new SimProcess({
      world,
      name: `${slot}#${this.#workers.length + 1}`,
      rate: 1 + plan.drift * random.pick([-1, 1, random.between(-1, 1)]),
      earlyTimers: plan.earlyTimers,
      wallOffsetMs: random.pick([0, 0, 0, -1_000, 1_000, -3_600_000, 3_600_000]),
    });
    if (clocks !== undefined) process.wallOffsetMs = clocks.withinTolerance(process.wallOffsetMs);
    const worker = this.#makeWorker(process, host);
    this.#workers.push(worker);
    host.running.set(slot, { process, worker });
    process.onDeath(() => {
      host.running.delete(slot);
      this.startLater(slot, host);
    });
    world.note(() => `${process.name} starts on ${host.dir}`);
    void worker.run().then(() => {
      world.note(() => `${process.name} has ended in good order`);
      process.end();
    });
  }

  #makeWorker(process: SimProcess, host: Host): SimWorker {
    const { world, plan, pieces, injector, redis, gateway, control, attacker, policy } = this.#options;
    const { settings, faults } = plan;
    const onBegin = (): void => {
      if (world.fault(0.2)) this.onBegin(process);
    };
    const link = { process, plan, injector, onBegin, control, attacker, policy, book: control?.book };
    const pacer = pieces.makePacer(process, settings);
    const context = { clock: process, pacer, settings, ledgerOfRun: redis.ledger };
    const journal = pieces.wrapJournal(new SimJournal({ ...link, file: host.file, ledger: redis.ledger }), context);
    const doubtMs = settings.guardMs + settings.inFlightMaxMs;
    const signing = { platformId: PLATFORM_ID, keyring: KEYRING, journal, clock: process, doubtMs };
    const connect = (): WorkerLedger => linkLedger({ ...link, redis });
    const ledger = pieces.wrapLedger(policy?.watchReads(process, connect()) ?? connect(), context);
    const logger = tracingLogger(world, process.name);
    const about = { platformId: PLATFORM_ID, journal, senderLedger: ledger, clock: process, doubtMs, logger };
    const signatures = control?.watch(pieces.makeAuthority(signing, context));
    const judged = { ...about, signatures, keyring: KEYRING };
    const holds = policy && policedLedger({ ...link, redis }, policy, pieces.wrapLedger(connect(), context));
    return new SimWorker({
      process,
      policy:
        policy &&
        holds &&
        pieces.makePolicy({ ...judged, ...holds, current: policy, rateMoveEveryMs: RATE_MOVE_EVERY_MS }),
      ledger,
      gateway: pieces.wrapGateway(new GatewayLink({ ...link, gateway }), context),
      journal,
      authority: signatures,
      journalPlace: { host: host.dir, dir: host.dir },
      makeToken: (epoch) => pieces.makeToken(`t${(this.#tokens += 1)}`, epoch),
      pacer,
      settings,
      guardMs: settings.guardMs,
      ringsTwice: faults.ringsTwice,
      logger,
    });
  }
}

function policedLedger(
  link: LedgerLinkOptions,
  { rates }: SimPolicy,
  ledger: WorkerLedger,
): Pick<PolicyPieces, 'ledger' | 'relay' | 'source' | 'gateway' | 'publish'> {
  const holds = linkHolds(link, ledger);
  const { process, plan } = link;
  const currencies = async (): Promise<Record<string, unknown>[]> => {
    await process.takeMs(process.world.random.heavyTail(20, 5_000));
    if (process.world.fault(plan.faults.responseLost)) throw new Error('no answer');
    return rates.tell(process);
  };
  const publish = async (): Promise<void> => Promise.resolve();
  // Here a payout needs no job: its state alone makes it wait for its turn.
  const relay = { tryDeliver: async (): Promise<void> => Promise.resolve() };
  return { ledger: holds, relay, source: holds, gateway: { currencies }, publish };
}

function tracingLogger(world: World, name: string): Logger {
  const note = (fields: object, message: string): void => {
    world.note(() => `${name} ${message} ${JSON.stringify(fields)}`);
  };
  return { debug: () => undefined, info: note, warn: note, error: note, child: () => tracingLogger(world, name) };
}

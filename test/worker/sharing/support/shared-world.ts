import { silentLogger } from '../../../../src/base/logger.js';
import type { MemberRegistry, MemberReport } from '../../../../src/ledger/member-registry.js';
import type { AccountPart } from '../../../../src/worker/account-runtime.js';
import { AccountSharing, type SharedAccount } from '../../../../src/worker/sharing/account-sharing.js';
import type { AccountFitness } from '../../../../src/worker/sharing/own-report.js';
import { ManualClock } from '../../../doubles/manual-clock.js';

type Registry = Pick<MemberRegistry, 'exchange' | 'report' | 'readReports' | 'leave' | 'remove'>;

/** How long it takes until the lease of a dead process is another's, in ms. */
export const TAKEOVER_MS = 20_000;

/** A process that gives an account up finishes its send, and the next one looks once a second. */
const HANDOVER_MS = 1_500;

/** An account, as its lease shows it. */
interface Lease {
  holder: SharedProcess | undefined;
  /** May be taken from then on. */
  freeAt: number;
  /** How often another process got it. */
  moves: number;
}

/** Several processes that share accounts, on a clock of the test and with a registry in memory. Leases are modelled. */
export class SharedWorld {
  readonly clock = new ManualClock();
  readonly platformIds: readonly number[];
  readonly leases: ReadonlyMap<number, Lease>;
  readonly heartbeats = new Map<string, string>();
  readonly reports = new Map<string, MemberReport>();
  readonly processes: SharedProcess[] = [];

  constructor(count: number) {
    this.platformIds = Array.from({ length: count }, (_, index) => index + 1);
    this.leases = new Map(this.platformIds.map((id) => [id, { holder: undefined, freeAt: 0, moves: 0 }]));
  }

  start(id: string, options: Partial<SharedProcessOptions> = {}): SharedProcess {
    const process = new SharedProcess(this, { id, folder: id, platformIds: this.platformIds, ...options });
    this.processes.push(process);
    return process;
  }

  /** Lets time go by in steps in which leases are given back and taken. */
  async advance(ms: number): Promise<void> {
    const end = this.clock.now() + ms;
    while (this.clock.now() < end) {
      await this.clock.advance(Math.min(100, end - this.clock.now()));
      for (const process of this.processes) process.tendLeases();
    }
  }

  /** How many leases each process holds. */
  get loads(): Record<string, number> {
    const countOf = (process: SharedProcess): number =>
      [...this.leases.values()].filter(({ holder }) => holder === process).length;
    return Object.fromEntries(this.processes.map((process) => [process.id, countOf(process)]));
  }

  /** Which process competes for an account, by id. */
  competitors(platformId: number): string[] {
    return this.processes
      .filter((process) => process.isRunning && process.partOf(platformId) === 'send')
      .map(({ id }) => id);
  }

  async close(): Promise<void> {
    const ending = Promise.all(this.processes.map(async (process) => process.stop()));
    await this.clock.until(ending);
  }
}

interface SharedProcessOptions {
  readonly id: string;
  readonly folder: string | undefined;
  readonly platformIds: readonly number[];
}

class FakeAccount implements SharedAccount {
  part: AccountPart = 'rest';
  fitness: AccountFitness = 'fit';
  /** Each part that it was given, the first left out. */
  readonly parts: AccountPart[] = [];
  readonly platformId: number;
  readonly #lease: Lease;
  readonly #process: SharedProcess;

  constructor(platformId: number, lease: Lease, process: SharedProcess) {
    this.platformId = platformId;
    this.#lease = lease;
    this.#process = process;
  }

  get holdsLease(): boolean {
    return this.#lease.holder === this.#process;
  }

  assign(part: AccountPart): void {
    if (part !== this.part) this.parts.push(part);
    this.part = part;
  }

  /** As a sender loop does. */
  tend(now: number): void {
    const lease = this.#lease;
    if (this.part !== 'send' && this.holdsLease) {
      lease.holder = undefined;
      lease.freeAt = now + HANDOVER_MS;
    } else if (this.part === 'send' && lease.holder === undefined && now >= lease.freeAt && this.fitness === 'fit') {
      lease.holder = this.#process;
      lease.moves += 1;
    }
  }
}

/** One of the processes. */
export class SharedProcess {
  readonly id: string;
  readonly accounts: readonly FakeAccount[];
  readonly sharing: AccountSharing;
  /** What the registry throws at this process. */
  registryError: Error | undefined;
  patienceMs = Infinity;
  isRunning = true;
  readonly #world: SharedWorld;
  /** Calls of a process that is stopped or dead come to nothing until it continues. */
  #stopped: { readonly until: Promise<void>; readonly resume: () => void } | undefined;

  constructor(world: SharedWorld, { id, folder, platformIds }: SharedProcessOptions) {
    this.id = id;
    this.#world = world;
    this.accounts = platformIds.map((platformId) => {
      const lease = world.leases.get(platformId);
      if (lease === undefined) throw new Error(`No account ${platformId}`);
      return new FakeAccount(platformId, lease, this);
    });
    this.sharing = new AccountSharing({
      id,
      accounts: this.accounts,
      registry: this.#makeRegistry(),
      nameFolder: async () => Promise.resolve(folder),
      patienceMs: () => this.patienceMs,
      clock: world.clock,
      logger: silentLogger,
    });
    this.sharing.start();
  }

  partOf(platformId: number): AccountPart | undefined {
    return this.accounts.find((account) => account.platformId === platformId)?.part;
  }

  get own(): number[] {
    return this.accounts.filter(({ part }) => part === 'send').map(({ platformId }) => platformId);
  }

  tendLeases(): void {
    if (!this.isRunning) return;
    for (const account of this.accounts) account.tend(this.#world.clock.now());
  }

  /** SIGSTOP. The leases stay. */
  freeze(): void {
    this.isRunning = false;
    let resume = (): void => undefined;
    const until = new Promise<void>((resolve) => (resume = resolve));
    this.#stopped = { until, resume };
  }

  /** SIGCONT. */
  thaw(): void {
    this.isRunning = true;
    this.#stopped?.resume();
    this.#stopped = undefined;
  }

  /** SIGKILL: each of its leases can be taken after the usual time from when another process watches it. */
  kill(): void {
    this.freeze();
    for (const lease of this.#world.leases.values()) {
      if (lease.holder !== this) continue;
      lease.holder = undefined;
      lease.freeAt = this.#world.clock.now() + TAKEOVER_MS;
    }
  }

  async stop(): Promise<void> {
    this.thaw();
    await this.sharing.stop();
    for (const account of this.accounts) account.assign('rest');
    this.tendLeases();
    this.isRunning = false;
  }

  #makeRegistry(): Registry {
    const { heartbeats, reports } = this.#world;
    const { id } = this;
    return {
      exchange: async ({ count, version }) => {
        await this.#reach();
        const wasListed = heartbeats.has(id);
        heartbeats.set(id, `${count} ${version}`);
        const listed = [...heartbeats].map(([other, text]) => [other, text === 'leaving' ? undefined : text] as const);
        return { heartbeats: new Map(listed), wasListed };
      },
      report: async (report) => {
        await this.#reach();
        reports.set(id, structuredClone(report));
      },
      readReports: async (ids) => {
        await this.#reach();
        return new Map([...reports].filter(([other]) => ids.includes(other)));
      },
      leave: async () => {
        await this.#reach();
        heartbeats.set(id, 'leaving');
        reports.delete(id);
      },
      remove: async (ids) => {
        await this.#reach();
        for (const other of ids) {
          heartbeats.delete(other);
          reports.delete(other);
        }
      },
    };
  }

  async #reach(): Promise<void> {
    await this.#stopped?.until;
    if (this.registryError !== undefined) throw this.registryError;
  }
}

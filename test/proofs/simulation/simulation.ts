import type { Logger } from '../../../src/logger.js';
import { GatewayLink } from './gateway-link.js';
import { linkLedger } from './ledger-link.js';
import { Mischief } from './mischief.js';
import { soundPieces, type Pieces } from './pieces.js';
import { makePlan, nearBoundary, type Plan } from './plan.js';
import { SimGateway } from './sim-gateway.js';
import { JournalFile, SimJournal } from './sim-journal.js';
import type { JournalFolder } from './sim-operator.js';
import { walletOf } from './sim-payout.js';
import { SimPeople } from './sim-people.js';
import { SimProcess } from './sim-process.js';
import { SimRedis } from './sim-redis.js';
import { SimWorker } from './sim-worker.js';
import type { LedgerSnapshot } from './support/ledger-snapshot.js';
import { knows } from './support/payout-book.js';
import { wasSent } from '../../../src/journal/journal-view.js';
import type { JournalEntry } from '../../../src/journal/journal-line.js';
import { World } from './world.js';

export interface RunOptions {
  readonly pieces?: Pieces;
  /** Keeps every step, to be printed. */
  readonly tracing?: boolean;
}

/** How a run ended. */
export interface RunResult {
  readonly seed: number;
  /** Which promise was broken; undefined when all were kept. */
  readonly broken: string | undefined;
  readonly steps: number;
  readonly arrivals: number;
  /** Virtual time, ms. */
  readonly endedAt: number;
  readonly trace: readonly string[];
}

interface Started {
  readonly process: SimProcess;
  readonly worker: SimWorker;
}

interface Host extends JournalFolder {
  file: JournalFile;
  readonly running: Map<string, Started>;
}

/** A worker that knows better than the ledger says so within this time, once nothing goes wrong any more. */
const NOTICED_WITHIN_MS = 20_000;

/** One run of the whole system, decided by one seed. */
export class Simulation {
  readonly #world: World;
  readonly #plan: Plan;
  readonly #pieces: Pieces;
  readonly #mischief: Mischief;
  readonly #redis: SimRedis;
  readonly #gateway: SimGateway;
  readonly #people: SimPeople;
  readonly #hosts: Host[] = [];
  readonly #workers: SimWorker[] = [];
  /** Journals of disks that are gone. */
  readonly #lostFiles: JournalFile[] = [];
  #deposalsLeft: number;
  #tokens = 0;

  constructor(seed: number, { pieces = soundPieces, tracing = false }: RunOptions = {}) {
    this.#pieces = pieces;
    const world = (this.#world = new World(seed, tracing));
    const plan = (this.#plan = makePlan(world.random));
    world.note(() => JSON.stringify(plan));
    this.#mischief = new Mischief(world, plan);
    let ledgers = 0;
    const ledger = pieces.makeLedger({
      clock: { wallNow: () => Date.UTC(2030, 0, 1) + Math.round(world.now) },
      nextLedgerId: () => `ledger-${(ledgers += 1)}`,
    });
    this.#redis = new SimRedis(world, plan, ledger);
    this.#gateway = new SimGateway(world);
    for (let number = 0; number < plan.hosts; number += 1) {
      this.#hosts.push({ dir: `host${number}`, file: new JournalFile(`journal${number}`), running: new Map() });
    }
    this.#people = new SimPeople({
      world,
      plan,
      redis: this.#redis,
      gateway: this.#gateway,
      folders: () => this.#hosts,
      refusing: () =>
        this.#hosts
          .filter(({ running }) => [...running.values()].some(({ worker }) => worker.refusal !== undefined))
          .map(({ dir }) => dir),
      adoptsWithoutProof: pieces.adoptsWithoutProof,
    });
    this.#redis.mayForget = (kept) => this.#mayForget(kept);
    this.#deposalsLeft = plan.times.deposed;
    for (let number = 0; number < plan.workers; number += 1) this.#startLater(`w${number}`, this.#hostOf(number));
    this.#planFaults();
  }

  /** @returns undefined when every promise was kept, else which one was not */
  async run(): Promise<string | undefined> {
    const { faultsForMs, settings } = this.#plan;
    try {
      await this.#world.run(() => false, faultsForMs);
      this.#endFaults();
      const waits = settings.leaseMs + settings.quarantineMs + settings.guardMs + 2 * settings.inFlightMaxMs;
      const end = faultsForMs + 120_000 + 20 * waits;
      do {
        if (!(await this.#world.run(() => this.#people.isDrained, end))) return this.#describeStuck();
        // What is still on its way must do no harm either, and whoever knows better than the ledger has the time to say so.
        const rest = Math.max(settings.inFlightMaxMs + settings.leaseMs, NOTICED_WITHIN_MS);
        await this.#world.run(() => false, this.#world.now + rest);
      } while (!this.#people.isDrained);
      return this.#findLie();
    } catch (error) {
      return (error as Error).message;
    }
  }

  /** Lets go of what ended processes still wait for: Node keeps signals with listeners for ever. */
  close(): void {
    for (const { running } of this.#hosts) for (const { process } of [...running.values()]) process.end();
    for (const worker of this.#workers) worker.forget();
  }

  get result(): Omit<RunResult, 'seed' | 'broken'> {
    const { steps, now, trace = [] } = this.#world;
    return { steps, arrivals: this.#gateway.arrivals, endedAt: now, trace: [...trace] };
  }

  #hostOf(worker: number): Host {
    const host = this.#hosts[worker % this.#hosts.length];
    if (host === undefined) throw new Error('a run has at least one host');
    return host;
  }

  #startLater(slot: string, host: Host): void {
    this.#world.after(this.#world.random.heavyTail(200, 20_000), () => {
      this.#start(slot, host);
    });
  }

  /** Starts a process; whoever ends is started again, as systemd or Kubernetes would. */
  #start(slot: string, host: Host): void {
    const world = this.#world;
    const plan = this.#plan;
    const { random } = world;
    const process = new SimProcess({
      world,
      name: `${slot}#${this.#workers.length + 1}`,
      rate: 1 + plan.drift * random.pick([-1, 1, random.between(-1, 1)]),
      earlyTimers: plan.earlyTimers,
      wallOffsetMs: random.pick([0, 0, 0, -1_000, 1_000, -3_600_000, 3_600_000]),
    });
    const worker = this.#makeWorker(process, host);
    this.#workers.push(worker);
    host.running.set(slot, { process, worker });
    process.onDeath(() => {
      host.running.delete(slot);
      this.#startLater(slot, host);
    });
    world.note(() => `${process.name} starts on ${host.dir}`);
    void worker.run().then(() => {
      world.note(() => `${process.name} has ended in good order`);
      process.end();
    });
  }

  #makeWorker(process: SimProcess, host: Host): SimWorker {
    const { settings, faults } = this.#plan;
    const pieces = this.#pieces;
    const onBegin = (): void => {
      if (this.#world.fault(0.2)) this.#depose(process);
    };
    const link = { process, plan: this.#plan, mischief: this.#mischief, onBegin };
    const { intervalMs, inFlightMaxMs } = settings;
    const pacer = pieces.makePacer({ clock: process, intervalMs, inFlightMaxMs });
    const context = { clock: process, pacer, settings, ledgerOfRun: this.#redis.ledger };
    return new SimWorker({
      process,
      ledger: pieces.wrapLedger(linkLedger({ ...link, redis: this.#redis }), context),
      gateway: pieces.wrapGateway(new GatewayLink({ ...link, gateway: this.#gateway }), context),
      journal: pieces.wrapJournal(new SimJournal({ ...link, file: host.file }), context),
      journalPlace: { host: host.dir, dir: host.dir },
      makeToken: (epoch) => pieces.makeToken(`t${(this.#tokens += 1)}`, epoch),
      pacer,
      settings,
      guardMs: settings.guardMs,
      ringsTwice: faults.ringsTwice,
      logger: tracingLogger(this.#world, process.name),
    });
  }

  /** Faults that come at some time, rather than with some command. */
  #planFaults(): void {
    const { times, faults, faultsForMs, settings } = this.#plan;
    const { random } = this.#world;
    const sometimes = (count: number, run: () => void): void => {
      for (let number = 0; number < count; number += 1) {
        this.#world.after(random.between(0, faultsForMs), () => {
          if (this.#world.mayFail) run();
        });
      }
    };
    sometimes(times.redisAway, () => {
      this.#redis.goAway(nearBoundary(random, settings));
    });
    sometimes(times.rollback, () => {
      this.#redis.rollBack();
    });
    sometimes(times.flush, () => {
      this.#redis.flush();
    });
    sometimes(times.journalLost, () => {
      this.#loseJournal(random.pick(this.#hosts));
    });
    sometimes(times.deposed, () => {
      this.#depose(this.#findSender()?.process);
    });
    sometimes(times.atRandom, () => {
      this.#strikeAtRandom();
    });
    sometimes(random.chance(faults.hostCrash) ? 1 : 0, () => {
      this.#crashHost(random.pick(this.#hosts));
    });
  }

  #strikeAtRandom(): void {
    const { random } = this.#world;
    const { faults } = this.#plan;
    const running = random.pick(this.#hosts).running;
    if (running.size === 0) return;
    const { process, worker } = random.pick([...running.values()]);
    if (random.chance(faults.wallJump)) process.wallOffsetMs += random.pick([-3_600_000, -1_000, 1_000, 3_600_000]);
    else if (random.chance(faults.stopCleanly)) {
      this.#world.note(() => `${process.name} is asked to end`);
      process.deliver(() => {
        worker.stop();
      });
    } else if (faults.pause > 0 && random.chance(0.5)) process.pause(this.#mischief.pauseMs());
    else if (faults.kill > 0) process.kill();
  }

  /**
   * Stops the sender for so long that another takes over, often right when a send begins. Redis comes back older: at once,
   * as it was before the sender had the lease, so that the other gets a lease of the same epoch; or once the other has sent,
   * as it was when the first was stopped, so that the ledger says that the first still has the lease. Then the first goes on.
   */
  #depose(deposed: SimProcess | undefined): void {
    const world = this.#world;
    if (deposed === undefined || this.#deposalsLeft === 0) return;
    this.#deposalsLeft -= 1;
    const { beforeLease } = this.#redis;
    const before = this.#redis.ledger.snapshot();
    deposed.pause(this.#plan.faultsForMs);
    const isAtOnce = beforeLease !== undefined && world.random.chance(0.5);
    const copy = isAtOnce ? beforeLease : before;
    if (isAtOnce) this.#redis.rollBack(copy);
    const look = (): void => {
      if (!world.faultsOn || !deposed.paused) return;
      const next = this.#findSender();
      if (next === undefined || this.#redis.ledger.snapshot().sendCount === copy.sendCount) {
        world.after(world.random.between(50, 500), look);
        return;
      }
      if (!isAtOnce) {
        if (world.random.chance(0.5)) next.process.kill();
        else next.process.pause(this.#mischief.pauseMs());
        this.#redis.rollBack(copy);
      }
      deposed.continueNow();
    };
    look();
  }

  /** The sender that is running, if there is one. */
  #findSender(): Started | undefined {
    const started = this.#hosts.flatMap(({ running }) => [...running.values()]);
    return started.find(({ process, worker }) => worker.isSender && !process.paused);
  }

  #crashHost(host: Host): void {
    this.#world.note(() => `${host.dir} CRASHES`);
    for (const { process } of [...host.running.values()]) process.kill();
    host.file.crash(() => this.#world.random.chance(0.5));
  }

  /** The host comes back with an empty disk. Nobody knows of what Redis has forgotten by then as well. */
  #loseJournal(host: Host): void {
    if (forgottenIn(this.#redis.ledger.snapshot(), host.file).length > 0) return;
    this.#world.note(() => `${host.dir} loses its DISK`);
    for (const { process } of [...host.running.values()]) process.kill();
    this.#lostFiles.push(host.file);
    host.file = new JournalFile(`${host.file.journalId}-next`);
  }

  /**
   * What the sending rules assume of a Redis that comes back older: every journal that witnesses a lost send can be read,
   * and where hosts have journals of their own, a worker of each runs and has the quarantine to object. Of a journal that
   * is lost as well, the ledger that comes back knows, or another journal has gone on after it.
   */
  #mayForget(kept: LedgerSnapshot | undefined): boolean {
    const forgottenBy = (file: JournalFile): JournalEntry[] => forgottenIn(kept, file);
    const witnesses = this.#hosts.filter(({ file }) => forgottenBy(file).length > 0);
    const newest = Math.max(0, ...witnesses.flatMap(({ file }) => forgottenBy(file).map(({ sends }) => sends)));
    for (const file of this.#lostFiles) {
      const forgotten = forgottenBy(file);
      if (forgotten.length === 0) continue;
      const isFollowed = newest > Math.max(...forgotten.map(({ sends }) => sends));
      if (witnesses.length === 0 || !(isFollowed || kept?.journals.has(file.journalId) === true)) return false;
    }
    if (this.#hosts.length === 1) return true;
    const isAwake = ({ running }: Host): boolean =>
      [...running.values()].some(({ process, worker }) => !process.paused && !worker.isStopping);
    if (!witnesses.every(isAwake)) return false;
    this.#world.calmUntil = this.#world.now + this.#plan.settings.quarantineMs;
    return true;
  }

  #endFaults(): void {
    this.#world.note(() => 'no more faults');
    this.#world.faultsOn = false;
    this.#world.calmUntil = 0;
    this.#redis.comeBack();
    for (const { running } of this.#hosts) for (const { process } of running.values()) process.continueNow();
  }

  #describeStuck(): string {
    const states = this.#redis.ledger.payouts().map(({ payoutId, state }) => `${payoutId} ${state}`);
    return `stuck: not drained after faults ended: ${states.join(', ')}`;
  }

  /** What the ledger says in the end must agree with what the gateway did. */
  #findLie(): string | undefined {
    for (const { payoutId, state, txhash } of this.#redis.ledger.payouts()) {
      const paid = this.#gateway.paymentTo(walletOf(payoutId));
      const isTrue = paid === undefined ? state !== 'in_progress' : state === 'unknown' || txhash === paid;
      if (!isTrue) return `lost: ${payoutId} is ${state} ${txhash ?? ''}, the gateway has ${paid ?? 'no payment'}`;
    }
    return undefined;
  }
}

/** What a journal witnesses that a copy of the ledger does not know. */
function forgottenIn(copy: LedgerSnapshot | undefined, file: JournalFile): JournalEntry[] {
  return file
    .items()
    .filter((entry) => 'payoutId' in entry)
    .filter((entry) => wasSent(entry) && !knows(copy?.book.get(entry.payoutId), entry.attempt, entry.token));
}

/** Runs one seed. */
export async function runSeed(seed: number, options: RunOptions = {}): Promise<RunResult> {
  const simulation = new Simulation(seed, options);
  const broken = await simulation.run();
  const { result } = simulation;
  simulation.close();
  return { seed, broken, ...result };
}

function tracingLogger(world: World, name: string): Logger {
  const note = (fields: object, message: string): void => {
    world.note(() => `${name} ${message} ${JSON.stringify(fields)}`);
  };
  return { debug: () => undefined, info: note, warn: note, error: note, child: () => tracingLogger(world, name) };
}

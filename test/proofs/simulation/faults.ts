import type { JournalEntry } from '../../../src/journal/journal-line.js';
import { wasSent } from '../../../src/journal/journal-view.js';
import { isQuiet, type LinkedRedis } from '../../world/ledger-link.js';
import type { RedisSnapshot } from '../../world/memory-redis.js';
import type { WorldLedger } from '../../world/world-ledger.js';
import type { WorldProcess } from '../../world/world.js';
import type { Host } from './hosts.js';
import { JournalFile } from './journal-file.js';
import { nearBoundary } from './plan.js';
import type { Simulation } from './simulation.js';

type Moment = 'asked' | 'executed' | 'journal' | 'before the write' | 'after the write' | 'response';

const QUIET = new Set(['readSender', 'renewLease', 'queued']);

export class FaultInjector {
  readonly #run: Pick<Simulation, 'world' | 'plan'>;

  constructor(run: Pick<Simulation, 'world' | 'plan'>) {
    this.#run = run;
  }

  strike(process: WorldProcess, moment: Moment, what: string): void {
    const { world, plan } = this.#run;
    const share = QUIET.has(what) ? 0.02 : 1;
    const isStopped = world.fault(plan.faults.pause * share);
    if (!isStopped && !world.fault(plan.faults.kill * share)) return;
    world.note(() => `(${moment} ${what})`);
    if (isStopped) process.stop(this.pauseMs());
    else process.kill();
  }

  hangMs(): number {
    const { random } = this.#run.world.hangs;
    const { leaseMs, quarantineMs } = this.#run.plan.settings;
    return (
      random.pick([500, 4_999, 5_001, leaseMs + 5_000, 2 * (leaseMs + quarantineMs) + 10_000]) + random.between(0, 500)
    );
  }

  /** Mostly around the boundaries; sometimes so long that operators have decided in the meantime. */
  pauseMs(): number {
    const { random } = this.#run.world;
    const { settings } = this.#run.plan;
    if (!random.chance(0.2)) return nearBoundary(random, settings);
    return random.between(1, 3) * (settings.leaseMs + settings.quarantineMs + 2 * settings.inFlightMaxMs + 10_000);
  }
}

export class ScheduledFaults {
  readonly #lostFiles: JournalFile[] = [];
  readonly #run: Simulation;
  #deposalsLeft: number;

  constructor(run: Simulation) {
    this.#run = run;
    const { world, plan, redis, hosts } = run;
    const { times, faults, faultsForMs, settings } = plan;
    const { random } = world;
    this.#deposalsLeft = times.deposed;
    const sometimes = (count: number, strike: () => void) => {
      for (let number = 0; number < count; number += 1) {
        world.after(random.between(0, faultsForMs), () => {
          if (world.mayFail) strike();
        });
      }
    };
    sometimes(times.redisAway, () => {
      redis.goAway(nearBoundary(random, settings));
    });
    sometimes(times.rollback, () => {
      redis.rollBack();
    });
    sometimes(times.flush, () => {
      redis.flush();
    });
    sometimes(times.journalLost, () => {
      this.#loseJournal(random.pick(hosts.all));
    });
    sometimes(times.deposed, () => {
      this.depose(hosts.findSender()?.process);
    });
    sometimes(times.atRandom, () => {
      this.#strikeAtRandom();
    });
    sometimes(random.chance(faults.hostCrash) ? 1 : 0, () => {
      this.#crashHost(random.pick(hosts.all));
    });
  }

  #strikeAtRandom() {
    const { world, plan, hosts, injector, control, policy } = this.#run;
    const { random } = world;
    const { faults } = plan;
    const { running } = random.pick(hosts.all);
    if (running.size === 0) return;
    const { process, worker } = random.pick([...running.values()]);
    if (random.chance(faults.wallJump)) {
      const offsetMs = process.wallOffsetMs + random.pick([-3_600_000, -1_000, 1_000, 3_600_000]);
      process.wallOffsetMs = (policy ?? control)?.withinTolerance(offsetMs) ?? offsetMs;
      world.situations.wallClockJumped(process.name);
    } else if (random.chance(faults.stopCleanly)) {
      world.note(() => `${process.name} is asked to end`);
      process.after(0, () => {
        worker.stop();
      });
    } else if (faults.pause > 0 && random.chance(0.5)) process.stop(injector.pauseMs());
    else if (faults.kill > 0) process.kill();
  }

  /**
   * Stops the sender for so long that another takes over, often right when a send begins. Redis comes back older: at once,
   * as it was before the sender had the lease, so that the other gets a lease of the same epoch; or once the other has sent,
   * as it was when the first was stopped, so that the ledger says that the first still has the lease. Then the first continues.
   */
  depose(deposed: WorldProcess | undefined): void {
    const { world, plan, redis, hosts, injector } = this.#run;
    if (deposed === undefined || this.#deposalsLeft === 0) return;
    this.#deposalsLeft -= 1;
    const { beforeLease } = redis;
    const before = redis.ledger.snapshot();
    deposed.stop(plan.faultsForMs);
    const isAtOnce = beforeLease !== undefined && world.random.chance(0.5);
    const copy = isAtOnce ? beforeLease : before;
    if (isAtOnce) redis.rollBack(copy);
    const check = () => {
      if (!world.faultsOn || !deposed.isStopped) return;
      const next = hosts.findSender();
      if (next === undefined || redis.ledger.sendCount === redis.ledger.at(copy).sendCount) {
        world.after(world.random.between(50, 500), check);
        return;
      }
      if (!isAtOnce) {
        if (world.random.chance(0.5)) next.process.kill();
        else next.process.stop(injector.pauseMs());
        redis.rollBack(copy);
      }
      deposed.continueNow();
    };
    check();
  }

  #crashHost(host: Host) {
    const { world } = this.#run;
    world.note(() => `${host.dir} CRASHES`);
    for (const { process } of [...host.running.values()]) process.kill();
    host.file.crash(() => world.random.chance(0.5));
  }

  /** The host comes back with an empty disk. It keeps its disk where Redis has forgotten sends that only this disk has. */
  #loseJournal(host: Host) {
    const { world, redis, control } = this.#run;
    if (forgottenIn(redis.ledger, host.file).length > 0) return;
    world.note(() => `${host.dir} loses its DISK`);
    for (const { process } of [...host.running.values()]) process.kill();
    this.#lostFiles.push(host.file);
    host.file = new JournalFile(`${host.file.journalId}-next`, control?.wallNow);
  }

  /**
   * What the sending rules assume of a Redis that comes back older: every journal that has a lost send can be read,
   * and where hosts have journals of their own, a worker of each runs and has the quarantine to object. Of a journal that
   * is lost as well, the ledger that comes back knows, or another journal has gone on after it.
   */
  mayForget(kept: WorldLedger | undefined): boolean {
    const { world, plan, hosts } = this.#run;
    const holders = hosts.all.filter(({ file }) => forgottenIn(kept, file).length > 0);
    const newest = Math.max(0, ...holders.flatMap(({ file }) => forgottenIn(kept, file).map(({ sends }) => sends)));
    for (const file of this.#lostFiles) {
      const forgotten = forgottenIn(kept, file);
      if (forgotten.length === 0) continue;
      const isFollowed = newest > Math.max(...forgotten.map(({ sends }) => sends));
      if (holders.length === 0 || !(isFollowed || kept?.hasJournal(file.journalId) === true)) return false;
    }
    if (hosts.all.length === 1) return true;
    const isAwake = ({ running, file }: Host) =>
      file.hangsUntil <= world.now &&
      [...running.values()].some(({ process, worker }) => !process.isStopped && !worker.isStopping && worker.isOpen);
    if (!holders.every(isAwake)) return false;
    world.calmUntil = world.now + plan.settings.quarantineMs;
    return true;
  }
}

function forgottenIn(copy: WorldLedger | undefined, file: JournalFile): JournalEntry[] {
  const entries = file.items().filter((entry) => 'payoutId' in entry);
  return entries.filter((entry) => wasSent(entry) && copy?.knows(entry) !== true);
}

const KEPT_SNAPSHOTS = 4;

/** The simulated Redis: one ledger, that goes down, hangs, comes back older, or comes back empty. */
export class SimRedis implements LinkedRedis {
  readonly ledger: WorldLedger;
  readonly #run: Pick<Simulation, 'world' | 'plan' | 'injector'>;
  #mode: 'up' | 'refuses' | 'hangs' = 'up';
  #waiting: (() => Promise<void>)[] = [];
  /** The newest last: an older one gives more out again. */
  #snapshots: RedisSnapshot[];
  #rollbacksLeft: number;
  #sendersToLose: number;
  generation = 0;
  beforeLease: RedisSnapshot | undefined;
  mayForget: (kept: RedisSnapshot | undefined) => boolean = () => true;
  onExecuted: (name: string) => void = () => undefined;

  constructor(run: Pick<Simulation, 'world' | 'plan' | 'injector'>, ledger: WorldLedger) {
    this.#run = run;
    this.ledger = ledger;
    this.#snapshots = [ledger.snapshot()];
    const { times } = run.plan;
    this.#rollbacksLeft = times.rollback + times.deposed;
    this.#sendersToLose = times.senderLost;
  }

  get isUp(): boolean {
    return this.#mode === 'up';
  }

  get refuses(): boolean {
    return this.#mode === 'refuses';
  }

  take(run: () => Promise<void>): void {
    if (this.#mode === 'hangs') this.#waiting.push(run);
    else void run();
  }

  before(name: string): void {
    if (name === 'acquireLease') this.beforeLease = this.ledger.snapshot();
  }

  executed(process: WorldProcess, name: string, about: string): void {
    const { world, plan, injector } = this.#run;
    const { random } = world;
    world.situations.executed(process.name, name, about, this.ledger.lease);
    injector.strike(process, 'executed', name);
    this.onExecuted(name);
    if (name === 'beginSend' && this.#sendersToLose > 0 && world.fault(0.5)) this.#loseSender();
    if (this.#rollbacksLeft === 0) return;
    if (random.chance(isQuiet(name) ? 0.005 : 0.1)) {
      this.#snapshots = [...this.#snapshots, this.ledger.snapshot()].slice(-KEPT_SNAPSHOTS);
      world.note(() => 'redis: snapshot taken');
    }
    if (!isQuiet(name) && world.fault(plan.rollbackAtOnce)) this.rollBack();
  }

  goAway(forMs: number): void {
    const { world } = this.#run;
    this.#mode = world.random.pick(['refuses', 'hangs']);
    world.note(() => `redis ${this.#mode} for ${forMs.toFixed(1)}`);
    world.after(forMs, () => {
      void this.comeBack();
    });
  }

  async comeBack(): Promise<void> {
    if (this.#mode === 'up') return;
    this.#run.world.note(() => 'redis is back');
    this.#mode = 'up';
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const run of waiting) await run();
  }

  /** Restarts with one of the last snapshots, or with the one given. What was committed since then is lost. */
  rollBack(snapshot = this.#pickSnapshot()): void {
    const { world } = this.#run;
    if (this.#rollbacksLeft === 0 || !this.mayForget(snapshot)) return;
    this.#rollbacksLeft -= 1;
    world.situations.rolledBack();
    world.note(() => `redis: ROLLED BACK to ${this.ledger.at(snapshot).sendCount} sends`);
    this.#restart();
    this.ledger.restore(snapshot);
  }

  #pickSnapshot(): RedisSnapshot {
    const { random } = this.#run.world;
    const newest = this.#snapshots.at(-1);
    return newest !== undefined && random.chance(0.5) ? newest : random.pick(this.#snapshots);
  }

  flush(): void {
    if (!this.mayForget(undefined)) return;
    this.#run.world.note(() => 'redis: FLUSHED');
    this.#restart();
    this.ledger.flush();
    this.#snapshots = [this.ledger.snapshot()];
  }

  #loseSender() {
    const { world } = this.#run;
    this.#sendersToLose -= 1;
    world.note(() => 'redis: the sender key is LOST');
    world.situations.senderLost();
    this.ledger.loseSender();
  }

  #restart() {
    this.generation += 1;
    this.#waiting = [];
    this.#mode = 'up';
  }
}

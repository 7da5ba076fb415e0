import type { FaultInjector } from './fault-injector.js';
import { forgottenIn } from './forgetting.js';
import { JournalFile } from './journal-file.js';
import { nearBoundary, type Plan } from './plan.js';
import type { Host, SimHosts } from './sim-hosts.js';
import type { SimPolicy } from './policed/sim-policy.js';
import type { SimControl } from './signed/sim-control.js';
import type { SimProcess } from './sim-process.js';
import type { SimRedis } from './sim-redis.js';
import type { World } from './world.js';

export interface ScheduledFaultsOptions {
  readonly world: World;
  readonly plan: Plan;
  readonly injector: FaultInjector;
  readonly redis: SimRedis;
  readonly hosts: SimHosts;
  /** In signed mode. */
  readonly control?: SimControl | undefined;
  readonly policy?: Pick<SimPolicy, 'withinTolerance'> | undefined;
}

/** Faults that come at some time, rather than with some command. */
export class ScheduledFaults {
  /** Journals of disks that are gone. */
  readonly lostFiles: JournalFile[] = [];
  readonly #options: ScheduledFaultsOptions;
  readonly #world: World;
  #deposalsLeft: number;

  constructor(options: ScheduledFaultsOptions) {
    this.#options = options;
    this.#world = options.world;
    this.#deposalsLeft = options.plan.times.deposed;
    this.#schedule();
  }

  /** Schedules all faults of the plan. */
  #schedule(): void {
    const { plan, redis, hosts } = this.#options;
    const { times, faults, faultsForMs, settings } = plan;
    const { random } = this.#world;
    const sometimes = (count: number, run: () => void): void => {
      for (let number = 0; number < count; number += 1) {
        this.#world.after(random.between(0, faultsForMs), () => {
          if (this.#world.mayFail) run();
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

  #strikeAtRandom(): void {
    const { random } = this.#world;
    const { plan, hosts, injector } = this.#options;
    const { faults } = plan;
    const running = random.pick(hosts.all).running;
    if (running.size === 0) return;
    const { process, worker } = random.pick([...running.values()]);
    if (random.chance(faults.wallJump)) {
      const jumpMs = random.pick([-3_600_000, -1_000, 1_000, 3_600_000]);
      const { control, policy } = this.#options;
      const offsetMs = process.wallOffsetMs + jumpMs;
      process.wallOffsetMs = (policy ?? control)?.withinTolerance(offsetMs) ?? offsetMs;
      this.#world.situations.wallClockJumped(process.name);
    } else if (random.chance(faults.stopCleanly)) {
      this.#world.note(() => `${process.name} is asked to end`);
      process.deliver(() => {
        worker.stop();
      });
    } else if (faults.pause > 0 && random.chance(0.5)) process.pause(injector.pauseMs());
    else if (faults.kill > 0) process.kill();
  }

  /**
   * Stops the sender for so long that another takes over, often right when a send begins. Redis comes back older: at once,
   * as it was before the sender had the lease, so that the other gets a lease of the same epoch; or once the other has sent,
   * as it was when the first was stopped, so that the ledger says that the first still has the lease. Then the first continues.
   */
  depose(deposed: SimProcess | undefined): void {
    const { world, plan, redis, hosts, injector } = this.#options;
    if (deposed === undefined || this.#deposalsLeft === 0) return;
    this.#deposalsLeft -= 1;
    const { beforeLease } = redis;
    const before = redis.ledger.snapshot();
    deposed.pause(plan.faultsForMs);
    const isAtOnce = beforeLease !== undefined && world.random.chance(0.5);
    const copy = isAtOnce ? beforeLease : before;
    if (isAtOnce) redis.rollBack(copy);
    const check = (): void => {
      if (!world.faultsOn || !deposed.paused) return;
      const next = hosts.findSender();
      if (next === undefined || redis.ledger.sendCount === redis.ledger.at(copy).sendCount) {
        world.after(world.random.between(50, 500), check);
        return;
      }
      if (!isAtOnce) {
        if (world.random.chance(0.5)) next.process.kill();
        else next.process.pause(injector.pauseMs());
        redis.rollBack(copy);
      }
      deposed.continueNow();
    };
    check();
  }

  #crashHost(host: Host): void {
    this.#world.note(() => `${host.dir} CRASHES`);
    for (const { process } of [...host.running.values()]) process.kill();
    host.file.crash(() => this.#world.random.chance(0.5));
  }

  /** The host comes back with an empty disk. It keeps its disk where Redis has forgotten sends that only this disk has. */
  #loseJournal(host: Host): void {
    if (forgottenIn(this.#options.redis.ledger, host.file).length > 0) return;
    this.#world.note(() => `${host.dir} loses its DISK`);
    for (const { process } of [...host.running.values()]) process.kill();
    this.lostFiles.push(host.file);
    host.file = new JournalFile(`${host.file.journalId}-next`, this.#options.control?.wallNow);
  }
}

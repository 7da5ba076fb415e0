import { wasSent } from '../../../src/journal/journal-view.js';
import { isQuiet } from '../../world/links.js';
import type { RedisSnapshot } from '../../world/memory-redis.js';
import type { WorldLedger } from '../../world/world-ledger.js';
import type { WorldProcess } from '../../world/world.js';
import type { Host } from './hosts.js';
import { JournalFile } from './journal-file.js';
import { inFlightOf, nearBoundary } from './plan.js';
import type { Simulation } from './simulation.js';

type Moment = 'asked' | 'executed' | 'journal' | 'before the write' | 'after the write' | 'response';

const QUIET = new Set(['readSender', 'renewLease', 'queued']);

export type FaultInjector = ReturnType<typeof makeInjector>;

export function makeInjector({ world, plan }: Pick<Simulation, 'world' | 'plan'>) {
  const { settings, faults } = plan;
  const { leaseMs, quarantineMs } = settings;
  const { random, hangs } = world;
  const pauseMs = () =>
    random.chance(0.2)
      ? random.between(1, 3) * (leaseMs + quarantineMs + 2 * inFlightOf(settings) + 10_000)
      : nearBoundary(random, settings);
  return {
    pauseMs,
    hangMs: () =>
      hangs.random.pick([500, 4_999, 5_001, leaseMs + 5_000, 2 * (leaseMs + quarantineMs) + 10_000]) +
      hangs.random.between(0, 500),
    strike(process: WorldProcess, moment: Moment, what: string) {
      const share = QUIET.has(what) ? 0.02 : 1;
      const isStopped = world.fault(faults.pause * share);
      if (!isStopped && !world.fault(faults.kill * share)) return;
      world.note(() => `(${moment} ${what})`);
      if (isStopped) process.stop(pauseMs());
      else process.kill();
    },
  };
}

export function scheduleFaults(run: Simulation) {
  const { world, plan, redis, hosts, injector, control } = run;
  const { times, faults, faultsForMs, settings } = plan;
  const { random } = world;
  const lostFiles: JournalFile[] = [];
  let deposalsLeft = times.deposed;

  const strikeAtRandom = () => {
    const { running } = random.pick(hosts.all);
    if (running.size === 0) return;
    const { process, worker } = random.pick([...running.values()]);
    if (random.chance(faults.wallJump)) {
      const jumpMs = random.pick([-3_600_000, -1_000, 1_000, 3_600_000]);
      process.wallOffsetMs = run.tolerated(process.wallOffsetMs + jumpMs);
      world.situations.wallClockJumped(process.name);
    } else if (random.chance(faults.stopCleanly)) {
      world.note(() => `${process.name} is asked to end`);
      process.after(0, () => {
        worker.stop();
      });
    } else if (faults.pause > 0 && random.chance(0.5)) process.stop(injector.pauseMs());
    else if (faults.kill > 0) process.kill();
  };

  /**
   * Stops the sender for so long that another takes over, often right when a send begins. Redis comes back older: at once,
   * as it was before the sender had the lease, so that the other gets a lease of the same epoch; or once the other has sent,
   * as it was when the first was stopped, so that the ledger says that the first still has the lease. Then the first continues.
   */
  const depose = (deposed: WorldProcess | undefined) => {
    if (deposed === undefined || deposalsLeft === 0) return;
    deposalsLeft -= 1;
    const { beforeLease } = redis;
    const before = redis.ledger.snapshot();
    deposed.stop(faultsForMs);
    const isAtOnce = beforeLease !== undefined && random.chance(0.5);
    const copy = isAtOnce ? beforeLease : before;
    if (isAtOnce) redis.rollBack(copy);
    const check = () => {
      if (!world.faultsOn || !deposed.isStopped) return;
      const next = hosts.findSender();
      if (next === undefined || redis.ledger.sendCount === redis.ledger.at(copy).sendCount) {
        world.after(random.between(50, 500), check);
        return;
      }
      if (!isAtOnce) {
        if (random.chance(0.5)) next.process.kill();
        else next.process.stop(injector.pauseMs());
        redis.rollBack(copy);
      }
      deposed.continueNow();
    };
    check();
  };

  const killAll = ({ dir, running }: Host, why: string) => {
    world.note(() => `${dir} ${why}`);
    for (const { process } of [...running.values()]) process.kill();
  };

  /** The host comes back with an empty disk. It keeps its disk where Redis has forgotten sends that only this disk has. */
  const loseJournal = (host: Host) => {
    if (forgottenIn(redis.ledger, host.file).length > 0) return;
    killAll(host, 'loses its DISK');
    world.actions?.emptied();
    lostFiles.push(host.file);
    host.file = new JournalFile(`${host.file.journalId}-next`, control && world.wallNow());
  };

  /**
   * What the sending rules assume of a Redis that comes back older: every journal that has a lost send can be read,
   * and where hosts have journals of their own, a worker of each runs and has the quarantine to object. Of a journal that
   * is lost as well, the ledger that comes back knows, or another journal has gone on after it.
   */
  const mayForget = (kept: WorldLedger | undefined) => {
    const newestOf = (file: JournalFile) => Math.max(0, ...forgottenIn(kept, file).map(({ sends }) => sends));
    const holders = hosts.all.filter(({ file }) => forgottenIn(kept, file).length > 0);
    const newest = Math.max(0, ...holders.map(({ file }) => newestOf(file)));
    for (const file of lostFiles.filter((lost) => forgottenIn(kept, lost).length > 0)) {
      const isFollowed = newest > newestOf(file);
      if (holders.length === 0 || !(isFollowed || kept?.hasJournal(file.journalId) === true)) return false;
    }
    if (hosts.all.length === 1) return true;
    const isAwake = ({ running, file }: Host) =>
      file.hangsUntil <= world.now &&
      [...running.values()].some(({ process, worker }) => !process.isStopped && !worker.isStopping && worker.isOpen);
    if (!holders.every(isAwake)) return false;
    world.calmUntil = world.now + settings.quarantineMs;
    return true;
  };

  const crashHost = (host: Host) => {
    killAll(host, 'CRASHES');
    world.actions?.end('a host crashes');
    host.file.crash(() => random.chance(0.5));
  };

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
  sometimes(times.rollback, redis.rollBack);
  sometimes(times.flush, redis.flush);
  sometimes(times.journalLost, () => {
    loseJournal(random.pick(hosts.all));
  });
  sometimes(times.deposed, () => {
    depose(hosts.findSender()?.process);
  });
  sometimes(times.atRandom, strikeAtRandom);
  sometimes(random.chance(faults.hostCrash) ? 1 : 0, () => {
    crashHost(random.pick(hosts.all));
  });
  return { depose, mayForget };
}

function forgottenIn(copy: WorldLedger | undefined, file: JournalFile) {
  const entries = file.items().filter((entry) => 'payoutId' in entry);
  return entries.filter((entry) => wasSent(entry) && copy?.knows(entry) !== true);
}

const KEPT_SNAPSHOTS = 4;

export type SimRedis = ReturnType<typeof openRedis>;

export function openRedis(
  { world, plan, injector, replication }: Pick<Simulation, 'world' | 'plan' | 'injector' | 'replication'>,
  ledger: WorldLedger,
) {
  const { random, situations } = world;
  const { times } = plan;
  let mode: 'up' | 'refuses' | 'hangs' = 'up';
  let waiting: (() => Promise<void>)[] = [];
  let snapshots = [ledger.snapshot()];
  let rollbacksLeft = times.rollback + times.deposed;
  let sendersToLose = times.senderLost;

  const restart = () => {
    redis.generation += 1;
    waiting = [];
    mode = 'up';
  };
  const pickSnapshot = () => {
    const newest = snapshots.at(-1);
    return newest !== undefined && random.chance(0.5) ? newest : random.pick(snapshots);
  };

  const redis = {
    ledger,
    generation: 0,
    beforeLease: undefined as RedisSnapshot | undefined,
    mayForget: (() => true) as (kept: RedisSnapshot | undefined) => boolean,
    onExecuted: (() => undefined) as (name: string) => void,

    get isUp() {
      return mode === 'up';
    },

    get refuses() {
      return mode === 'refuses' || replication?.isLeaderless === true;
    },

    take(run: () => Promise<void>) {
      if (mode === 'hangs') waiting.push(run);
      else void run();
    },

    before(name: string) {
      if (name === 'acquireLease') redis.beforeLease = ledger.snapshot();
    },

    executed(process: WorldProcess, name: string, about: string) {
      situations.executed(process.name, name, about, ledger.lease);
      injector.strike(process, 'executed', name);
      redis.onExecuted(name);
      if (name === 'beginSend' && sendersToLose > 0 && world.fault(0.5)) {
        sendersToLose -= 1;
        world.note(() => 'redis: the sender key is LOST');
        situations.senderLost();
        world.actions?.end('Redis loses the lease');
        ledger.loseSender();
      }
      if (rollbacksLeft === 0) return;
      if (random.chance(isQuiet(name) ? 0.005 : 0.1)) {
        snapshots = [...snapshots, ledger.snapshot()].slice(-KEPT_SNAPSHOTS);
        world.note(() => 'redis: snapshot taken');
      }
      if (!isQuiet(name) && world.fault(plan.rollbackAtOnce)) redis.rollBack();
    },

    goAway(forMs: number) {
      mode = random.pick(['refuses', 'hangs']);
      world.note(() => `redis ${mode} for ${forMs.toFixed(1)}`);
      world.after(forMs, () => {
        void redis.comeBack();
      });
    },

    async comeBack() {
      if (mode === 'up') return;
      world.note(() => 'redis is back');
      mode = 'up';
      for (const run of waiting.splice(0)) await run();
    },

    rollBack: (snapshot = pickSnapshot()) => {
      if (rollbacksLeft === 0 || !redis.mayForget(snapshot)) return;
      rollbacksLeft -= 1;
      situations.rolledBack();
      world.actions?.end('Redis comes back older');
      world.note(() => `redis: ROLLED BACK to ${ledger.at(snapshot).sendCount} sends`);
      restart();
      ledger.restore(snapshot);
    },

    flush: () => {
      if (!redis.mayForget(undefined)) return;
      world.note(() => 'redis: FLUSHED');
      world.actions?.end('Redis is emptied');
      restart();
      ledger.flush();
      snapshots = [ledger.snapshot()];
    },
  };
  return redis;
}

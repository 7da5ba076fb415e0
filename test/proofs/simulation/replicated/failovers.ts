import type { Simulation } from '../simulation.js';
import type { Replication, Server, Side } from './replication.js';

const TIMES = [2, 4, 8] as const;

/** Cuts, crashes, restarts, failovers: what may come to servers and processes at the same time. */
export function scheduleFailovers(run: Simulation, replication: Replication) {
  const { world, plan, hosts } = run;
  const { random } = replication;
  const isBusy = () => replication.cutOff !== undefined || replication.isLeaderless;

  const later = (delayMs: number, then: () => void) => {
    world.after(delayMs, () => {
      if (world.mayFail) then();
    });
  };

  const followLater = (server: Server, side: Side, withinMs: number) => {
    world.after(random.between(50, withinMs), () => {
      const isThere = side === replication.main || side === replication.cutOff;
      if (isThere && server.kept !== undefined && !server.isDown && isOn(side, server)) side.attach(server);
    });
  };
  const isOn = (side: Side, { host }: Server) => {
    const { cutOff } = replication;
    return cutOff === undefined || (host === cutOff.master.host) === (side === cutOff);
  };
  const allFollowLater = (withinMs: number) => {
    for (const side of [replication.main, replication.cutOff]) {
      if (side === undefined) continue;
      for (const server of replication.servers) if (server !== side.master) followLater(server, side, withinMs);
    }
  };

  const restartProcesses = (host: number) => {
    const { running } = hosts.all[host] ?? { running: new Map<string, never>() };
    if (replication.main.followers.size < replication.replicas)
      world.situations.meet('a process is restarted while replicas are missing');
    for (const { process } of [...running.values()]) process.kill();
  };

  const stall = () => {
    const { main } = replication;
    if (main.followers.size === 0) return;
    const server = random.pick([...main.followers]);
    world.note(() => `redis: ${server.name} is out of reach`);
    main.detach(server);
    followLater(server, main, random.pick([1_000, 5_000, 20_000]));
  };

  const electLater = (next: Server, isCutOff: boolean) => {
    replication.promote(next, isCutOff);
    replication.isLeaderless = true;
    world.after(random.between(300, 6_000), () => {
      replication.isLeaderless = false;
      allFollowLater(random.pick([200, 3_000]));
    });
  };

  /** Any may be promoted, also one that lacks what the others have. */
  const crash = () => {
    const { master } = replication.main;
    const living = replication.servers.filter((server) => server !== master && !server.isDown);
    if (isBusy() || living.length === 0) return;
    world.note(() => `redis: ${master.name} CRASHES`);
    electLater(random.pick(living), false);
    master.isDown = true;
    if (random.chance(0.5)) restartProcesses(master.host);
    world.after(random.between(200, 25_000), () => {
      master.isDown = false;
      followLater(master, replication.main, 2_000);
    });
  };

  const failOver = () => {
    const { main } = replication;
    if (isBusy() || main.followers.size === 0) return;
    replication.promote(random.pick([...main.followers]), false);
    allFollowLater(1_000);
  };

  const split = () => {
    const { master } = replication.main;
    const others = replication.servers.filter(({ host, isDown }) => host !== master.host && !isDown);
    if (isBusy() || others.length === 0) return;
    world.note(() => `redis: host ${master.host} is CUT OFF with ${master.name}`);
    world.situations.meet('a master is cut off with its host');
    electLater(random.pick(others), true);
    const forMs = random.between(3_000, 60_000);
    for (const host of [0, 1])
      if (random.chance(0.5))
        later(random.between(0, forMs), () => {
          restartProcesses(host);
        });
    const restarted = () => (random.chance(0.5) ? replication.cutOff : replication.main);
    if (random.chance(0.5))
      later(random.between(0, forMs), () => {
        restart(restarted());
      });
    world.after(forMs, () => {
      if (replication.cutOff === undefined) return;
      replication.heal();
      allFollowLater(random.pick([500, 5_000]));
    });
  };

  const restart = (side: Side | undefined = replication.main) => {
    if (replication.isLeaderless && side === replication.main) return;
    replication.restart(side);
    allFollowLater(random.pick([500, 10_000]));
  };

  const slow = () => {
    for (const server of replication.servers) server.lagMs = replication.drawLag();
  };

  const restartSome = () => {
    restartProcesses(random.whole(0, 1));
  };

  const STRIKES = [stall, crash, failOver, split, split, split, restart, slow, restartSome];
  const count = random.pick(TIMES);
  for (let number = 0; number < count; number += 1) {
    const strike = random.pick(STRIKES);
    later(random.between(0, plan.faultsForMs), () => {
      if (replication.isKnown) strike();
    });
  }

  return {
    /** All is whole, and fast. */
    end() {
      replication.isLeaderless = false;
      replication.heal();
      for (const server of replication.servers) {
        server.isDown = false;
        server.lagMs = 0.5;
        if (server !== replication.main.master) replication.main.attach(server);
      }
    },
  };
}

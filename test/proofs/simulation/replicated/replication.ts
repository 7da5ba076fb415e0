import type { ReplicasSeen } from '../../../../src/ledger/sender-ledger.js';
import { Random } from '../../../doubles/random.js';
import type { LinkedRedis } from '../../../world/links.js';
import type { RedisSnapshot } from '../../../world/memory-redis.js';
import type { WorldLedger } from '../../../world/world-ledger.js';
import type { SimRedis } from '../faults.js';
import type { Simulation } from '../simulation.js';

const LAGS_MS = [0.5, 0.5, 2, 20, 300, 1_200] as const;
/** Longer than any lag: what replicas may still lack. */
const LOGGED_MS = 2_000;
const WAIT_MS = 1_000;

export interface Server {
  readonly name: string;
  readonly host: number;
  lagMs: number;
  /** What it has while it follows no master. */
  kept: RedisSnapshot | undefined;
  isDown: boolean;
}

type Write = Readonly<{ at: number; then: RedisSnapshot }>;

/** A master with the replicas that follow it. Each has the writes that are older than its lag. */
export class Side {
  readonly ledger: WorldLedger;
  readonly master: Server;
  readonly followers = new Set<Server>();
  replicationId: string;
  #log: Write[];
  readonly #now: () => number;

  constructor(ledger: WorldLedger, master: Server, replicationId: string, now: () => number) {
    this.ledger = ledger;
    this.master = master;
    this.replicationId = replicationId;
    this.#now = now;
    this.#log = [{ at: now(), then: ledger.snapshot() }];
    master.kept = undefined;
  }

  /** Call it after a write, and before anything that asks what replicas have. @returns when the last write was */
  note(): number {
    const now = this.#now();
    const last = this.#log.at(-1)?.at ?? now;
    if (this.#log.length > 1 && last === now) this.#log.pop();
    this.#log.push({ at: now, then: this.ledger.snapshot() });
    const old = this.#log.findLastIndex(({ at }) => at <= now - LOGGED_MS);
    if (old > 0) this.#log = this.#log.slice(old);
    return now;
  }

  copyOf(server: Server): RedisSnapshot {
    if (server.kept !== undefined) return server.kept;
    const has = this.#log.findLast(({ at }) => at <= this.#now() - server.lagMs) ?? this.#log[0];
    if (has === undefined) throw new Error('a master without a state');
    return has.then;
  }

  attach(server: Server) {
    server.kept = undefined;
    this.followers.add(server);
  }

  detach(server: Server) {
    if (!this.followers.has(server)) return;
    this.note();
    server.kept = this.copyOf(server);
    this.followers.delete(server);
  }

  acknowledged(writtenAt: number): number {
    return [...this.followers].filter(({ lagMs }) => writtenAt <= this.#now() - lagMs).length;
  }
}

/**
 * A master and its replicas. A write is on the master alone at first; who is promoted has forgotten what it lacks. A cut
 * leaves a second master to the processes of its host.
 */
export class Replication {
  readonly random: Random;
  readonly servers: readonly Server[];
  /** Sentinel or the cluster lists replicas that are down, too; otherwise a master shows those that follow alone. */
  readonly isListed: boolean;
  readonly acknowledged = new Set<string>();
  main: Side;
  cutOff: Side | undefined;
  isLeaderless = false;
  readonly #run: Pick<Simulation, 'world' | 'pieces'>;
  #ids = 0;
  #generation = 0;

  constructor(seed: number, run: Pick<Simulation, 'world' | 'pieces'>, ledger: WorldLedger) {
    this.random = new Random(seed ^ 0x7265_706c);
    const { random } = this;
    this.#run = run;
    this.isListed = random.chance(0.3);
    this.servers = Array.from({ length: random.pick([2, 3, 3, 4]) }, (_, number) => ({
      ...{ name: `r${number}`, host: number < 2 ? number : random.whole(0, 1), lagMs: this.drawLag() },
      ...{ kept: undefined, isDown: false },
    }));
    const [master, ...replicas] = this.servers;
    if (master === undefined) throw new Error('no server');
    this.main = this.#lead(ledger, master);
    for (const replica of replicas) this.main.attach(replica);
  }

  get replicas() {
    return this.servers.length - 1;
  }

  /** Sees that what was acknowledged is never paid. */
  get watcher() {
    return {
      paid: ({ addressTo }: Readonly<{ addressTo: string }>) => {
        if (this.acknowledged.has(addressTo))
          this.#run.world.fail(`revived: ${addressTo} is paid, although its cancellation was acknowledged`);
      },
    };
  }

  /** How many times connections ended. */
  get generation() {
    return this.#generation;
  }

  drawLag() {
    return this.random.pick(LAGS_MS);
  }

  sideOf(host: number): Side {
    return this.cutOff?.master.host === host ? this.cutOff : this.main;
  }

  see({ followers, master }: Side): ReplicasSeen {
    const seen = this.isListed ? this.servers.filter((server) => server !== master) : [...followers];
    return { count: seen.length, names: seen.map(({ name }) => name) };
  }

  /** Redis as a process of a host reaches it. */
  linkOf(host: number, redis: SimRedis): LinkedRedis {
    const reaches = () => !(this.isLeaderless && this.sideOf(host) === this.main);
    const generation = () => redis.generation + this.#generation;
    return {
      get generation() {
        return generation();
      },
      get refuses() {
        return false;
      },
      get isUp() {
        return redis.isUp && reaches();
      },
      take: (run) => {
        if (reaches()) redis.take(run);
      },
      before: (name) => {
        redis.before(name);
      },
      executed: (...about) => {
        this.sideOf(host).note();
        redis.executed(...about);
      },
    };
  }

  /** The ledger that a host's processes reach at the moment of each call. */
  ledgerOf(host: number): WorldLedger {
    return new Proxy(this.main.ledger, {
      get: (_, name) => {
        const { ledger } = this.sideOf(host);
        const value: unknown = Reflect.get(ledger, name);
        return typeof value === 'function' ? (value as () => unknown).bind(ledger) : value;
      },
    });
  }

  /** WAIT. @returns how many acknowledged; undefined if the server has ended meanwhile */
  async wait(host: number, count: number): Promise<number | undefined> {
    const { world } = this.#run;
    const side = this.sideOf(host);
    const writtenAt = side.note();
    const until = world.now + WAIT_MS;
    const generation = this.#generation;
    for (;;) {
      if (generation !== this.#generation) return undefined;
      const acknowledged = side.acknowledged(writtenAt);
      if (acknowledged >= count || world.now >= until) return acknowledged;
      const times = [...side.followers].map(({ lagMs }) => writtenAt + lagMs).filter((at) => at > world.now);
      const next = Math.min(until, ...times);
      await new Promise<void>((resolve) => world.after(next - world.now, resolve, { kind: 'mark', label: 'WAIT' }));
    }
  }

  /** Whether the account's first contact is over: from then on its number is known, whatever happens. */
  get isKnown() {
    const copies = this.servers.map((server) =>
      server === this.main.master ? this.main.ledger : this.main.ledger.at(this.main.copyOf(server)),
    );
    return copies.every((copy) => Number(copy.ofLedger('replicas') ?? 0) >= this.replicas);
  }

  /** The master of `main` is gone, or is left to its host; another server leads with what it has. */
  promote(next: Server, isCutOff: boolean) {
    const { world } = this.#run;
    const { main } = this;
    main.note();
    for (const server of [...main.followers]) if (!isCutOff || server.host !== main.master.host) main.detach(server);
    const before = main.ledger.snapshot();
    const copy = main.copyOf(next);
    if (isCutOff) {
      const ledger = this.#run.pieces.makeLedger({ clock: world });
      ledger.restore(before);
      this.cutOff = this.#lead(ledger, main.master);
      for (const server of main.followers) this.cutOff.attach(server);
    } else main.master.kept = before;
    const sends = main.ledger.sendCount;
    main.ledger.restore(copy);
    if (main.ledger.sendCount < sends) world.situations.meet('a failover forgets that a send began');
    this.main = this.#lead(main.ledger, next);
    this.endConnections();
    world.note(() => `redis: ${next.name} LEADS with ${main.ledger.sendCount} of ${sends} sends`);
  }

  /** The cut-off master forgets what it took, and follows. */
  heal() {
    const { cutOff } = this;
    if (cutOff === undefined) return;
    this.#run.world.note(() => 'redis: the network is WHOLE');
    for (const server of [cutOff.master, ...cutOff.followers]) server.kept = cutOff.ledger.snapshot();
    this.cutOff = undefined;
    this.endConnections();
  }

  /** It keeps what it has; it counts its history from here. */
  restart(side: Side) {
    this.#run.world.note(() => `redis: ${side.master.name} is RESTARTED`);
    for (const server of [...side.followers]) side.detach(server);
    side.replicationId = this.#nextId();
    this.endConnections();
  }

  endConnections() {
    this.#generation += 1;
  }

  #lead(ledger: WorldLedger, master: Server) {
    return new Side(ledger, master, this.#nextId(), () => this.#run.world.now);
  }

  #nextId() {
    return `history-${(this.#ids += 1)}`;
  }
}

import type { Redis } from 'ioredis';
import { type Clock, every } from '../base/clock.js';
import { findServer, listServers } from '../ledger/redis-durability.js';
import type { Logger } from '../base/logger.js';
import type { RedisClient } from '../base/redis.js';

interface RedisClocksOptions {
  readonly redis: RedisClient;
  readonly clock: Clock;
  readonly logger: Logger;
}

const READ_EVERY_MS = 1_000;

/**
 * Reads the wall clocks of the Redis servers: one command a second for each, whatever the number of accounts of the
 * process. BullMQ's keys expire by them.
 */
export class RedisClocks {
  readonly #options: RedisClocksOptions;
  readonly #readings = new WeakMap<Redis, ClockReading>();
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: RedisClocksOptions) {
    this.#options = options;
  }

  /** The last reading of the server that has a key; undefined where it could not be read yet. */
  readingOf(key: string): ClockReading | undefined {
    const server = findServer(this.#options.redis, key);
    return server && this.#readings.get(server);
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Safe to call twice, and before start. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { redis, clock, logger } = this.#options;
    const readAll = (): void => {
      // One that does not reply holds up no other.
      for (const server of listServers(redis)) void this.#read(server);
    };
    const onError = ({ message }: Error): void => {
      logger.debug({ error: message }, 'the clocks of Redis cannot be read');
    };
    await every(READ_EVERY_MS, readAll, { clock, signal: this.#stop.signal, onError });
  }

  async #read(server: Redis): Promise<void> {
    if (server.status !== 'ready') return;
    const { clock } = this.#options;
    const before = clock.now();
    try {
      const [seconds, microseconds] = await server.time();
      const time = Number(seconds) * 1_000 + Number(microseconds) / 1_000;
      this.#readings.set(server, { low: time - clock.now(), high: time - before });
    } catch {
      // The connection says so itself; the next reading shows what the clock did meanwhile.
    }
  }
}

/** How far a wall clock is ahead of this process's monotonic clock, in ms: not below `low` and not above `high`. */
export interface ClockReading {
  readonly low: number;
  readonly high: number;
}

/** A smaller step lengthens a wait of BullMQ by no more than this, in ms, and is not worth a repair. */
const TOLERATED_MS = 200;

/** Reads the wall clock of this machine. */
export function readLocalClock(clock: Pick<Clock, 'now' | 'wallNow'>): ClockReading {
  const offset = clock.wallNow() - clock.now();
  return { low: offset, high: offset };
}

/**
 * Notices that a wall clock was put back. A clock that runs a little slow is noticed in the end as well, which costs a
 * repair that finds nothing.
 */
export class ClockStepDetector {
  #known: ClockReading | undefined;

  /** @returns whether the clock was put back since an earlier reading */
  note(reading: ClockReading): boolean {
    const known = this.#known;
    if (known !== undefined && reading.high < known.low - TOLERATED_MS) {
      this.#known = reading;
      return true;
    }
    const mayBeSame = known !== undefined && reading.low <= known.high;
    // A reading that took long says little: the bounds that were known before still hold.
    this.#known = mayBeSame
      ? { low: Math.max(known.low, reading.low), high: Math.min(known.high, reading.high) }
      : reading;
    return false;
  }
}

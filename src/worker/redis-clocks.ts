import type { Redis } from 'ioredis';
import { type Clock, every } from '../base/clock.js';
import { findServer, listServers } from '../ledger/redis-servers.js';
import type { Logger } from '../base/logger.js';
import type { RedisClient } from '../base/redis.js';

const READ_EVERY_MS = 1_000;

/**
 * Reads the Redis servers' wall clocks, by which BullMQ's keys expire. Each costs one command a second, whatever the
 * number of accounts.
 */
export class RedisClocks {
  readonly #redis: RedisClient;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #readings = new WeakMap<Redis, ClockReading>();
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  constructor(redis: RedisClient, clock: Clock, logger: Logger) {
    this.#redis = redis;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** The last reading of this key's server, if any. */
  readingOf(key: string): ClockReading | undefined {
    const server = findServer(this.#redis, key);
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
    const readAll = (): void => {
      // A server that does not reply delays no other.
      for (const server of listServers(this.#redis)) void this.#read(server);
    };
    const onError = ({ message }: Error): void => {
      this.#logger.debug({ error: message }, 'the clocks of Redis cannot be read');
    };
    await every(READ_EVERY_MS, readAll, { clock: this.#clock, signal: this.#stop.signal, onError });
  }

  async #read(server: Redis): Promise<void> {
    if (server.status !== 'ready') return;
    const before = this.#clock.now();
    try {
      const [seconds, microseconds] = await server.time();
      const time = Number(seconds) * 1_000 + Number(microseconds) / 1_000;
      this.#readings.set(server, { low: time - this.#clock.now(), high: time - before });
    } catch {
      // The connection reports it. The next reading shows the clock's change.
    }
  }
}

/** How far a wall clock is ahead of this process's monotonic clock, in ms: `low` to `high`. */
export interface ClockReading {
  readonly low: number;
  readonly high: number;
}

/** A smaller step lengthens a wait of BullMQ by at most this, in ms, so it needs no repair. */
const TOLERATED_MS = 200;

export function readLocalClock(clock: Pick<Clock, 'now' | 'wallNow'>): ClockReading {
  const offset = clock.wallNow() - clock.now();
  return { low: offset, high: offset };
}

/**
 * Detects that a wall clock was set back. A slow clock is detected in the end too; that costs a repair that finds
 * nothing.
 */
export class ClockStepDetector {
  #known: ClockReading | undefined;

  /** @returns whether the clock was set back since an earlier reading */
  note(reading: ClockReading): boolean {
    const known = this.#known;
    if (known !== undefined && reading.high < known.low - TOLERATED_MS) {
      this.#known = reading;
      return true;
    }
    const mayBeSame = known !== undefined && reading.low <= known.high;
    // A slow reading says little, so the earlier bounds stay.
    this.#known = mayBeSame
      ? { low: Math.max(known.low, reading.low), high: Math.min(known.high, reading.high) }
      : reading;
    return false;
  }
}

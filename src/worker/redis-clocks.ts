import type { Redis } from 'ioredis';
import { isAborted, type Clock } from '../clock.js';
import { findServer, listServers } from '../ledger/find-server.js';
import type { RedisClient } from '../redis.js';
import type { ClockReading } from './clock-reading.js';

export interface RedisClocksOptions {
  readonly redis: RedisClient;
  readonly clock: Clock;
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
    const { redis, clock } = this.#options;
    while (!isAborted(this.#stop.signal)) {
      // One that does not reply holds up no other.
      for (const server of listServers(redis)) void this.#read(server);
      await clock.sleep(READ_EVERY_MS, this.#stop.signal);
    }
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

import type { Redis } from 'ioredis';
import { GUARD_MS } from '../account-settings.js';
import { RedisUnavailableError } from '../errors.js';
import { toRedisError, type RedisClient } from '../redis.js';
import { findServer } from './find-server.js';
import type { KnownReplicas } from './known-replicas.js';
import { checkServer, type ServerReport } from './redis-durability.js';
import { SharedWait } from './shared-wait.js';

/**
 * How a write is known to be kept. `reply`: the reply of Redis is enough, for those who only read, and where an operator
 * has accepted a Redis that may forget.
 */
export type Confirmation = 'reply' | WriteConfirmer;

/** A write that is about to be made. */
export interface PreparedWrite {
  /**
   * Call it once Redis has replied. Resolves when disk and replicas keep the write.
   * @throws RedisUnavailableError when they do not say so in time; the write may or may not be kept
   */
  confirm(): Promise<void>;
}

const KEPT_BY_REPLY: PreparedWrite = { confirm: async () => Promise.resolve() };

/**
 * Makes sure, before a write, that it can be confirmed after it.
 * @param key - any key of the write: in a cluster it says which server is asked
 * @throws RedisUnavailableError; nothing was written
 */
export async function prepareWrite(confirmation: Confirmation, key: string): Promise<PreparedWrite> {
  return confirmation === 'reply' ? KEPT_BY_REPLY : confirmation.prepare(key);
}

type Stream = Redis['stream'];

/** What came of asking a server whether all that was written before is kept. */
interface Kept {
  /** `unsaid` where the server cannot tell. */
  readonly onDisk: 'yes' | 'late' | 'unsaid';
  readonly replicas: number;
  readonly required: number;
}

export interface WriteConfirmerOptions {
  readonly redis: RedisClient;
  /** Of the same servers; what one connection learns of their replicas holds for all of a process. */
  readonly known: KnownReplicas;
  /** Whether a server that cannot say what is on its disk confirms nothing. Else its replicas are enough. */
  readonly needsDisk?: boolean;
  /** Told when a server did not confirm a write, and has to be checked before the next. */
  readonly onDoubt?: (server: Redis) => void;
}

/**
 * Confirms the writes of one connection. What is known of a server is known of the connection to it: after it broke, the
 * server behind the same address may be another one, or have other settings.
 */
export class WriteConfirmer {
  readonly #redis: RedisClient;
  readonly #known: KnownReplicas;
  readonly #needsDisk: boolean;
  readonly #onDoubt: (server: Redis) => void;
  readonly #reports = new WeakMap<Stream, ServerReport>();
  readonly #waits = new WeakMap<Stream, SharedWait<Kept>>();

  constructor({ redis, known, needsDisk = false, onDoubt = () => undefined }: WriteConfirmerOptions) {
    this.#redis = redis;
    this.#known = known;
    this.#needsDisk = needsDisk;
    this.#onDoubt = onDoubt;
  }

  /**
   * Asks a server for its settings and its replicas.
   * @throws RedisUnavailableError, or what ioredis throws
   */
  async check(server: Redis): Promise<ServerReport> {
    if (server.status !== 'ready') await server.ping();
    const { stream } = server;
    const before = this.#reports.get(stream);
    // It was asked for its disk before, which takes up to a second; each write asks again.
    const syncs = before?.durability === 'waitaof' && before.problems.length === 0;
    const report = await checkServer(server, syncs);
    if (server.stream !== stream) throw new RedisUnavailableError('The connection to Redis ended while it was checked');
    this.#known.note(report.replication);
    this.#reports.set(stream, report);
    return report;
  }

  /**
   * Asks a server that was checked whether all that was written on this connection is kept.
   * @throws RedisUnavailableError when it was not checked, or what ioredis throws
   */
  async askIfKept(server: Redis): Promise<Kept> {
    const { stream } = server;
    const wait = this.#waits.get(stream) ?? new SharedWait(async () => this.#wait(server));
    this.#waits.set(stream, wait);
    return wait.join();
  }

  async prepare(key: string): Promise<PreparedWrite> {
    const server = await this.#reach(key);
    const { stream } = server;
    return {
      confirm: async () => {
        try {
          this.#requireSame(server, stream, key);
          const kept = await this.askIfKept(server);
          this.#requireSame(server, stream, key);
          this.#requireKept(kept);
        } catch (error) {
          this.#reports.delete(stream);
          this.#onDoubt(server);
          throw toUnconfirmed(error);
        }
      },
    };
  }

  /** The server that has the key, connected and checked. */
  async #reach(key: string): Promise<Redis> {
    const known = findServer(this.#redis, key);
    if (known?.status === 'ready' && this.#reports.has(known.stream)) return known;
    try {
      await this.#redis.exists(key);
      const server = findServer(this.#redis, key);
      if (server === undefined) throw new RedisUnavailableError('Redis unavailable (no server has the key)');
      await this.check(server);
      return server;
    } catch (error) {
      throw toRedisError(error);
    }
  }

  #requireKept({ onDisk, replicas, required }: Kept): void {
    const within = `within ${GUARD_MS} ms`;
    if (onDisk === 'late' || (onDisk === 'unsaid' && this.#needsDisk)) {
      throw new RedisUnavailableError(`it was not on disk ${within}`);
    }
    if (replicas >= required) return;
    throw new RedisUnavailableError(`only ${replicas} of ${required} replicas acknowledged it ${within}`);
  }

  /** WAIT speaks of what was written on the same connection: a reply of another says nothing. */
  #requireSame(server: Redis, stream: Stream, key: string): void {
    if (server.stream === stream && findServer(this.#redis, key) === server) return;
    throw new RedisUnavailableError('the connection changed meanwhile');
  }

  async #wait(server: Redis): Promise<Kept> {
    const report = this.#reports.get(server.stream);
    if (report === undefined) throw new RedisUnavailableError('the server has to be checked again');
    const required = this.#known.required(report.replication);
    if (report.durability === 'waitaof') {
      const [here, replicas] = (await server.call('WAITAOF', 1, required, GUARD_MS)) as [number, number];
      return { onDisk: here >= 1 ? 'yes' : 'late', replicas, required };
    }
    const onDisk = report.durability === 'reply' ? 'yes' : 'unsaid';
    if (required === 0) return { onDisk, replicas: 0, required };
    return { onDisk, replicas: Number(await server.call('WAIT', required, GUARD_MS)), required };
  }
}

function toUnconfirmed(error: unknown): unknown {
  const known = toRedisError(error);
  if (!(known instanceof RedisUnavailableError) && (known as Error).name !== 'ReplyError') return known;
  return new RedisUnavailableError(
    `Redis did not confirm the write (${(error as Error).message}): it may or may not be kept; asking again is safe`,
    { cause: error },
  );
}

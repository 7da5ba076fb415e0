import type { Redis } from 'ioredis';
import { RedisUnavailableError } from '../base/errors.js';
import type { RedisClient } from '../base/redis.js';
import { toRedisError } from '../base/redis-errors.js';
import { GUARD_MS } from '../base/settings.js';
import { checkServer, findServer, type KnownReplicas, type ServerReport } from './redis-durability.js';

/** `reply`: Redis's reply suffices, for readers, or if an operator has accepted a Redis that may forget. */
export type Confirmation = 'reply' | WriteConfirmer;

interface PreparedWrite {
  /**
   * Call it after Redis's reply. Resolves when disk and replicas keep the write.
   * @throws RedisUnavailableError if they do not confirm in time; the write may or may not be kept
   */
  confirm(): Promise<void>;
}

const KEPT_BY_REPLY: PreparedWrite = { confirm: async () => Promise.resolve() };

/**
 * Makes sure, before a write, that it can be confirmed after it.
 * @param key - any key of the write; in a cluster it selects the server
 * @throws RedisUnavailableError; nothing was written
 */
export async function prepareWrite(confirmation: Confirmation, key: string): Promise<PreparedWrite> {
  return confirmation === 'reply' ? KEPT_BY_REPLY : confirmation.prepare(key);
}

type Stream = Redis['stream'];

interface Kept {
  /** `unsaid` if the server cannot tell. */
  readonly onDisk: 'yes' | 'late' | 'unsaid';
  readonly replicas: number;
  readonly required: number;
}

interface WriteConfirmerOptions {
  readonly redis: RedisClient;
  /** Of the same servers, shared by all connections of the process. */
  readonly known: KnownReplicas;
  /** If true, a server that cannot report its disk confirms nothing; otherwise its replicas suffice. */
  readonly needsDisk?: boolean;
  /** Called if a server did not confirm a write; it must be checked before the next. */
  readonly onDoubt?: (server: Redis) => void;
}

/**
 * Confirms the writes of one connection. A new connection to the same address may lead to another server, or to other
 * settings.
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

  /** @throws RedisUnavailableError, or the error of ioredis */
  async check(server: Redis): Promise<ServerReport> {
    if (server.status !== 'ready') await server.ping();
    const { stream } = server;
    const before = this.#reports.get(stream);
    // The disk check takes up to a second and has passed before; each write repeats it.
    const syncs = before?.durability === 'waitaof' && before.problems.length === 0;
    const report = await checkServer(server, syncs);
    if (server.stream !== stream) throw new RedisUnavailableError('The connection to Redis ended while it was checked');
    this.#known.note(report.replication);
    this.#reports.set(stream, report);
    return report;
  }

  /** Asks a checked server whether all writes on this connection are kept. @throws as {@link check} */
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

  /** WAIT covers the writes of its own connection only. */
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

/**
 * Lets concurrent callers share one wait, which covers everything before it. Callers during a wait share the next one.
 */
export class SharedWait<Reply> {
  readonly #wait: () => Promise<Reply>;
  #running: Promise<Reply> | undefined;
  #next: Promise<Reply> | undefined;

  constructor(wait: () => Promise<Reply>) {
    this.#wait = wait;
  }

  async join(): Promise<Reply> {
    if (this.#running === undefined) return this.#start();
    this.#next ??= this.#startAfter(this.#running);
    return this.#next;
  }

  async #startAfter(running: Promise<Reply>): Promise<Reply> {
    await running.catch(() => undefined);
    this.#next = undefined;
    return this.#start();
  }

  async #start(): Promise<Reply> {
    const running = this.#wait();
    this.#running = running;
    try {
      return await running;
    } finally {
      if (this.#running === running) this.#running = undefined;
    }
  }
}

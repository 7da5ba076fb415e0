import type { Redis } from 'ioredis';
import { RedisUnavailableError } from '../base/errors.js';
import type { RedisClient } from '../base/redis.js';
import { toRedisError } from '../base/redis-errors.js';
import { GUARD_MS } from '../base/settings.js';
import { type AccountReplicas, type KnownReplicas, MAX_REPLICAS } from './known-replicas.js';
import type { LedgerConnection } from './ledger-connection.js';
import { checkServer, replicasSeen, type ServerReport } from './redis-durability.js';
import { findServer } from './redis-servers.js';

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
 * Makes sure, before a write of an account, that it can be confirmed after it.
 * @throws RedisUnavailableError; nothing was written
 */
export async function prepareWrite(confirmation: Confirmation, connection: LedgerConnection): Promise<PreparedWrite> {
  return confirmation === 'reply' ? KEPT_BY_REPLY : confirmation.prepare(connection);
}

type Stream = Redis['stream'];

/** Accepting payouts reads an account's number from its ledger again after so long; other writes read it each time. */
const READ_AGAIN_MS = 1_000;

/** A server is checked again for a write after so long: replicas come and go. */
const CHECK_AGAIN_MS = 60_000;

interface Checked extends ServerReport {
  /** Monotonic, ms. */
  readonly at: number;
  /** The accounts that have taken its replicas. Once each: an old report must not undo what an operator lowered. */
  readonly seenBy: Set<AccountReplicas>;
}

interface Kept {
  /** `unsaid` if the server cannot tell. */
  readonly onDisk: 'yes' | 'late' | 'unsaid';
  /** That acknowledged. */
  readonly replicas: number;
  /** How many were waited for: all that any of the accounts needs. */
  readonly asked: number;
}

interface WriteConfirmerOptions {
  readonly redis: RedisClient;
  /** Of the same servers, shared by all connections of the process. */
  readonly known: KnownReplicas;
  /** If true, a server that cannot report its disk confirms nothing; otherwise its replicas suffice. */
  readonly needsDisk?: boolean;
  /** Called if a server did not confirm a write; it must be checked before the next. */
  readonly onUnconfirmed?: (server: Redis) => void;
}

/**
 * Confirms the writes of one connection. A new connection to the same address may lead to another server, or to other
 * settings.
 */
export class WriteConfirmer {
  readonly #redis: RedisClient;
  readonly #known: KnownReplicas;
  readonly #needsDisk: boolean;
  readonly #onUnconfirmed: (server: Redis) => void;
  readonly #reports = new WeakMap<Stream, Checked>();
  /** Whose writes the next wait is for. */
  readonly #joined = new WeakMap<Stream, Set<AccountReplicas>>();
  /** When an account's number was last read from its ledger, monotonic, ms. */
  readonly #readAt = new WeakMap<AccountReplicas, number>();
  readonly #waits = new WeakMap<Stream, SharedWait<Kept>>();

  constructor({ redis, known, needsDisk = false, onUnconfirmed = () => undefined }: WriteConfirmerOptions) {
    this.#redis = redis;
    this.#known = known;
    this.#needsDisk = needsDisk;
    this.#onUnconfirmed = onUnconfirmed;
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
    this.#reports.set(stream, { ...report, at: performance.now(), seenBy: new Set() });
    return report;
  }

  /**
   * Asks a checked server whether all writes on this connection are kept. Callers of one moment share a wait.
   * @param accounts - whose replicas are waited for; what was seen of them is in their ledgers then
   * @throws as {@link check}, or RedisUnavailableError
   */
  async askIfKept(server: Redis, accounts: readonly AccountReplicas[]): Promise<Kept> {
    const { stream } = server;
    const joined = this.#joined.get(stream) ?? new Set();
    this.#joined.set(stream, joined);
    for (const account of accounts) joined.add(account);
    const wait = this.#waits.get(stream) ?? new SharedWait(async () => this.#wait(server));
    this.#waits.set(stream, wait);
    return wait.join();
  }

  async prepare(connection: LedgerConnection): Promise<PreparedWrite> {
    const account = this.#known.of(connection);
    const { key } = account;
    const server = await this.#reach(key);
    const { stream } = server;
    return {
      confirm: async () => {
        try {
          this.#requireSame(server, stream, key);
          const kept = await this.askIfKept(server, [account]);
          this.#requireSame(server, stream, key);
          this.#requireKept(kept, account);
        } catch (error) {
          this.#reports.delete(stream);
          this.#onUnconfirmed(server);
          throw toUnconfirmed(error);
        }
      },
    };
  }

  /** As {@link prepare}, for payouts that are accepted: without a known replica, Redis's reply suffices. */
  async prepareAcceptance(connection: LedgerConnection): Promise<PreparedWrite> {
    const account = this.#known.of(connection);
    const write = await this.prepare(connection);
    const server = findServer(this.#redis, account.key);
    const report = server && this.#reports.get(server.stream);
    if (server === undefined || report === undefined) return write;
    const isRecent = performance.now() - (this.#readAt.get(account) ?? -Infinity) < READ_AGAIN_MS;
    if (!isRecent || !report.seenBy.has(account)) {
      try {
        await this.#refresh(report, [account]);
      } catch (error) {
        throw toRedisError(error);
      }
    }
    return account.required === 0 ? KEPT_BY_REPLY : write;
  }

  async #reach(key: string): Promise<Redis> {
    const known = findServer(this.#redis, key);
    const checkedAt = (known && this.#reports.get(known.stream)?.at) ?? -Infinity;
    if (known?.status === 'ready' && performance.now() - checkedAt < CHECK_AGAIN_MS) return known;
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

  #requireKept({ onDisk, replicas }: Kept, { required }: AccountReplicas): void {
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
    const { stream } = server;
    const accounts = [...(this.#joined.get(stream) ?? [])];
    this.#joined.delete(stream);
    const report = this.#reports.get(stream);
    if (report === undefined) throw new RedisUnavailableError('the server has to be checked again');
    // Before the wait, which then covers the number itself.
    await this.#refresh(report, accounts);
    // An absurd number lets nothing be confirmed, as `required` says; Redis itself takes no larger one.
    const asked = Math.min(MAX_REPLICAS, Math.max(0, ...accounts.map(({ required }) => required)));
    if (report.durability === 'waitaof') {
      const [here, replicas] = (await server.call('WAITAOF', 1, asked, GUARD_MS)) as [number, number];
      return { onDisk: here >= 1 ? 'yes' : 'late', replicas, asked };
    }
    const onDisk = report.durability === 'reply' ? 'yes' : 'unsaid';
    if (asked === 0) return { onDisk, replicas: 0, asked };
    return { onDisk, replicas: Number(await server.call('WAIT', asked, GUARD_MS)), asked };
  }

  /** Reads each account's number from its ledger, and raises it to what was seen. */
  async #refresh(report: Checked, accounts: readonly AccountReplicas[]): Promise<void> {
    await Promise.all(
      accounts.map(async (account) => {
        await account.read(this.#redis);
        this.#readAt.set(account, performance.now());
        if (!report.seenBy.has(account)) account.see(replicasSeen(report));
        report.seenBy.add(account);
        await account.save();
      }),
    );
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

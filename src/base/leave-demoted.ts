import { Redis, type RedisOptions } from 'ioredis';
import type { Logger } from './logger.js';
import { replyCode } from './redis-errors.js';

/**
 * After a failover behind one address, an open connection stays with the demoted master: only a new connection reaches
 * the new one. So a connection leaves a server that refuses writes as a replica, or that loads its data.
 */

const DEMOTED: ReadonlySet<string | undefined> = new Set(['READONLY', 'LOADING', 'MASTERDOWN', 'UNBLOCKED']);

/** The words of Redis 6.2 for a write in a script. */
const READONLY_IN_SCRIPT = /^ERR .*READONLY You can't write against a read only/;

/** Between two connections to a server that refuses, in ms. The address may still lead to the former master. */
const AGAIN_AFTER_MS = 500;

/** A server that still loads after this time, in ms, is left, too. */
const LOADS_WITHIN_MS = 5_000;

const WARN_EVERY_MS = 60_000;

type OwnOptions = Omit<RedisOptions, 'replyMapping'>;

/** Options of a connection, and of its copies. No command is sent again. */
export function leaveDemoted(
  retryDelay: (attempt: number) => number | null,
  logger: Logger,
): Pick<OwnOptions, 'reconnectOnError' | 'retryStrategy' | 'maxLoadingRetryTime'> {
  let refusedAt = -Infinity;
  let warnedAt = -Infinity;
  return {
    reconnectOnError: (error) => {
      if (!DEMOTED.has(replyCode(error)) && !READONLY_IN_SCRIPT.test(error.message)) return false;
      refusedAt = performance.now();
      if (refusedAt - warnedAt >= WARN_EVERY_MS) {
        warnedAt = refusedAt;
        logger.warn({ error: error.message }, 'this Redis is not the master now, reconnecting');
      }
      return true;
    },
    retryStrategy: (attempt) => {
      const delayMs = retryDelay(attempt);
      const isRefused = performance.now() - refusedAt < AGAIN_AFTER_MS;
      return delayMs !== null && isRefused ? Math.max(delayMs, AGAIN_AFTER_MS) : delayMs;
    },
    maxLoadingRetryTime: AGAIN_AFTER_MS,
  };
}

/** ioredis would go on with database 0: perhaps another environment's. */
const NO_DATABASE = /^ERR (DB index is out of range|invalid DB index)/;

/**
 * A connection that gives up a server that loads for long, or that lacks its database, as do the copies that BullMQ makes
 * of it.
 */
export class SteadyRedis extends Redis {
  /** Why it is not ready. */
  #trouble: Error | undefined;

  constructor(options: OwnOptions) {
    super(options);
    this.on('error', (error: Error) => {
      this.#trouble = error;
      // Before it is ready, so no command has left.
      if (NO_DATABASE.test(error.message)) this.disconnect(true);
    });
    this.on('ready', () => {
      this.#trouble = undefined;
    });
    let timer: NodeJS.Timeout | undefined;
    this.on('connect', () => {
      timer = setTimeout(() => {
        if (this.status === 'connect') this.disconnect(true);
      }, LOADS_WITHIN_MS);
    });
    for (const event of ['ready', 'close', 'end']) {
      this.on(event, () => {
        clearTimeout(timer);
      });
    }
  }

  /** ioredis says of a command that found no connection how often it tried, and not why. */
  override sendCommand(...args: Parameters<Redis['sendCommand']>): unknown {
    const reply = super.sendCommand(...args);
    if (this.status === 'ready') return reply;
    args[0].promise.catch((error: unknown) => {
      if (error instanceof Error && error !== this.#trouble) error.cause ??= this.#trouble;
    });
    return reply;
  }

  override duplicate: Redis['duplicate'] = (override) =>
    new SteadyRedis({ ...(this.options as OwnOptions), ...override }) as never;
}

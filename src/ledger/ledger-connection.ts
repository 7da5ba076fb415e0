import { type ChainableCommander, Cluster } from 'ioredis';
import { type Clock, systemClock } from '../base/clock.js';
import { UnreadableRecordError } from '../base/errors.js';
import type { RedisClient } from '../base/redis.js';
import { toRedisError } from '../base/redis-errors.js';
import { otherFormat, STORED_FORMAT } from '../base/stored-format.js';
import { LedgerKeys } from './keys.js';
import { prepareScripts, type RunScript } from './ledger-scripts.js';

/**
 * One account's keys on one connection. Every function that takes it throws RedisUnavailableError if Redis is
 * unavailable.
 */
export interface LedgerConnection {
  readonly platformId: number;
  readonly redis: RedisClient;
  readonly keys: LedgerKeys;
  readonly clock: Clock;
  readonly run: RunScript;
}

export function connectLedger(redis: RedisClient, platformId: number, clock: Clock = systemClock): LedgerConnection {
  const keys = new LedgerKeys(platformId);
  return { platformId, redis, keys, clock, run: prepareScripts(redis, keys) };
}

/**
 * Sends several commands in one round trip, but not in a cluster. There a pipeline goes to one server as a whole: while
 * a slot moves to it, keys that have not moved yet read as absent.
 * @throws the first error of a command
 */
export async function pipelined(
  { redis }: Pick<LedgerConnection, 'redis'>,
  fill: (pipeline: ChainableCommander) => void,
): Promise<unknown[]> {
  const results = await settle(redis, record(fill));
  return results.map(({ error, reply }) => {
    if (error !== undefined) throw error;
    return reply;
  });
}

interface ReadableReplies {
  /** Undefined for a key of another type. */
  readonly replies: unknown[];
  /** The keys of another type, each once. */
  readonly unreadable: readonly string[];
}

/** As {@link pipelined}, but what cannot be read hides nothing beside it. */
export async function pipelinedReadable(
  { redis }: Pick<LedgerConnection, 'redis'>,
  fill: (pipeline: ChainableCommander) => void,
): Promise<ReadableReplies> {
  const commands = record(fill);
  const results = await settle(redis, commands);
  const unreadable = new Set<string>();
  const replies = results.map(({ error, reply }, index) => {
    if (error === undefined) return reply;
    if (!(error instanceof UnreadableRecordError)) throw error;
    unreadable.add(commands[index]?.key ?? '');
    return undefined;
  });
  return { replies, unreadable: [...unreadable] };
}

interface Settled {
  readonly error?: Error;
  readonly reply?: unknown;
}

async function settle(redis: RedisClient, commands: readonly Command[]): Promise<Settled[]> {
  // A single command avoids the pipeline, which copies every script of the connection.
  if (redis instanceof Cluster || commands.length === 1) {
    const settled = await Promise.allSettled(commands.map(({ run }) => run(redis)));
    return settled.map((each) =>
      each.status === 'fulfilled' ? { reply: each.value } : { error: toRedisError(each.reason) as Error },
    );
  }
  const pipeline = redis.pipeline();
  for (const { run } of commands) void run(pipeline);
  try {
    const results = await pipeline.exec();
    return (results ?? []).map(([error, reply]) =>
      error === null ? { reply } : { error: toRedisError(error) as Error },
    );
  } catch (error) {
    throw toRedisError(error);
  }
}

interface Command {
  readonly key: string;
  readonly run: (target: RedisClient | ChainableCommander) => unknown;
}

function record(fill: (pipeline: ChainableCommander) => void): Command[] {
  const commands: Command[] = [];
  const recorder: ChainableCommander = new Proxy({} as ChainableCommander, {
    get:
      (_, name: 'get') =>
      (...args: [string]): ChainableCommander => {
        commands.push({ key: args[0], run: (target) => target[name](...args) });
        return recorder;
      },
  });
  fill(recorder);
  return commands;
}

/** Turns an unavailable Redis into RedisUnavailableError. */
export async function ask<Reply>(command: Promise<Reply>): Promise<Reply> {
  try {
    return await command;
  } catch (error) {
    throw toRedisError(error);
  }
}

/** As {@link ask}, for a key that may be deleted at any time: one of another type is read as absent. */
export async function askReadable<Reply>(command: Promise<Reply>, absent: Reply): Promise<Reply> {
  try {
    return await ask(command);
  } catch (error) {
    if (error instanceof UnreadableRecordError) return absent;
    throw error;
  }
}

/** @throws UnsupportedFormatError if a ledger's format, as in its hash, is another one than this program's */
export function checkFormat(format: string | null | undefined): void {
  if (format != null && format !== String(STORED_FORMAT)) throw otherFormat('ledger in Redis', format);
}

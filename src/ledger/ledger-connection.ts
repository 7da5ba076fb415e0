import { Cluster, type ChainableCommander } from 'ioredis';
import { systemClock, type Clock } from '../clock.js';
import { toRedisError, type RedisClient } from '../redis.js';
import { LedgerKeys } from './keys.js';
import { prepareScripts, type RunScript } from './scripts.js';

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
  const commands = record(fill);
  try {
    // A single command avoids the pipeline, which copies every script of the connection.
    if (redis instanceof Cluster || commands.length === 1) {
      return await Promise.all(commands.map((command) => command(redis)));
    }
    const pipeline = redis.pipeline();
    for (const command of commands) void command(pipeline);
    const results = await pipeline.exec();
    return (results ?? []).map(([error, reply]) => {
      if (error !== null) throw error;
      return reply;
    });
  } catch (error) {
    throw toRedisError(error);
  }
}

type Command = (target: RedisClient | ChainableCommander) => unknown;

function record(fill: (pipeline: ChainableCommander) => void): Command[] {
  const commands: Command[] = [];
  const recorder: ChainableCommander = new Proxy({} as ChainableCommander, {
    get:
      (_, name: 'get') =>
      (...args: [string]): ChainableCommander => {
        commands.push((target) => target[name](...args));
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

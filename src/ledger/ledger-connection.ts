import { Cluster, type ChainableCommander } from 'ioredis';
import { systemClock, type Clock } from '../clock.js';
import { toRedisError, type RedisClient } from '../redis.js';
import { LedgerKeys } from './keys.js';
import { prepareScripts, type RunScript } from './scripts.js';

/** What every part of the ledger works with: one account's keys on one connection. */
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
 * Sends several commands in one round trip. In a cluster each goes its own way: while a slot moves, a pipeline would be sent
 * to the server that gets it as a whole, where keys that have yet to move read as absent.
 * @returns their replies in order
 * @throws RedisUnavailableError when Redis is unavailable; the first error of a command otherwise
 */
export async function pipelined(
  { redis }: Pick<LedgerConnection, 'redis'>,
  fill: (pipeline: ChainableCommander) => void,
): Promise<unknown[]> {
  const commands = record(fill);
  try {
    // For one command no pipeline: making it copies every script that the connection knows.
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

/** The commands that would go into a pipeline. */
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

/** Runs one command of a connection, with this project's error when Redis is unavailable. */
export async function ask<Reply>(command: Promise<Reply>): Promise<Reply> {
  try {
    return await command;
  } catch (error) {
    throw toRedisError(error);
  }
}

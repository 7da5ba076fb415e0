import { randomUUID } from 'node:crypto';
import type { ChainableCommander } from 'ioredis';
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
  return { platformId, redis, keys, clock, run: prepareScripts(redis, keys.ledger) };
}

/**
 * Sends several commands in one round trip.
 * @returns their replies in order
 * @throws RedisUnavailableError when Redis is away; the first error of a command otherwise
 */
export async function pipelined(
  { redis }: LedgerConnection,
  fill: (pipeline: ChainableCommander) => void,
): Promise<unknown[]> {
  const pipeline = redis.pipeline();
  fill(pipeline);
  try {
    const results = await pipeline.exec();
    return (results ?? []).map(([error, reply]) => {
      if (error !== null) throw error;
      return reply;
    });
  } catch (error) {
    throw toRedisError(error);
  }
}

/** Runs one command of a connection, with this project's error when Redis is away. */
export async function ask<Reply>(command: Promise<Reply>): Promise<Reply> {
  try {
    return await command;
  } catch (error) {
    throw toRedisError(error);
  }
}

/**
 * Reads the ledger's own id, a random value in Redis that is made once (a Redis that was flushed or exchanged has
 * another), and why the account is paused, if it is.
 */
export async function readLedger(
  connection: LedgerConnection,
): Promise<{ ledgerId: string; pausedReason: string | undefined }> {
  const { ledger } = connection.keys;
  const replies = await pipelined(connection, (pipeline) =>
    pipeline.hsetnx(ledger, 'id', randomUUID()).hmget(ledger, 'id', 'pausedReason'),
  );
  const [ledgerId, pausedReason] = replies[1] as [string, string | null];
  return { ledgerId, pausedReason: pausedReason ?? undefined };
}

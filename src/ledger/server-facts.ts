import type { Redis } from 'ioredis';
import { replyCode } from '../redis.js';

/** From CONFIG GET. */
export type RedisSettings = Readonly<Record<string, string>>;

/** All sections together. */
export type RedisInfo = Readonly<Record<string, string>>;

const ASKED = [
  'appendonly',
  'appendfsync',
  'no-appendfsync-on-rewrite',
  'aof-load-truncated',
  'maxmemory-policy',
  'min-replicas-to-write',
  'min-replicas-max-lag',
  // Redis 7 calls it `listpack`, earlier versions `ziplist`.
  'hash-max-*-value',
] as const;

/** The server's settings that matter to payouts; undefined if it forbids CONFIG. @throws the error of ioredis */
export async function readSettings(server: Redis): Promise<RedisSettings | undefined> {
  // Redis 6.2 takes one pattern at a time.
  const replies = await Promise.all(ASKED.map(async (name) => unlessForbidden(server.config('GET', name))));
  const pairs = replies.flatMap((reply) => reply ?? []);
  if (pairs.length === 0) return undefined;
  return Object.fromEntries(pairs.flatMap((name, index) => (index % 2 === 0 ? [[name, pairs[index + 1] ?? '']] : [])));
}

/** @returns undefined if the server forbids INFO @throws the error of ioredis */
export async function readInfo(server: Redis): Promise<RedisInfo | undefined> {
  // Without a section: Redis 6.2 takes one section at a time.
  const text = await unlessForbidden(server.info());
  if (text === undefined) return undefined;
  return Object.fromEntries(
    text.split(/\r?\n/).flatMap((line) => {
      const [, name, value] = /^([^#:]+):(.*)$/.exec(line) ?? [];
      return name === undefined ? [] : [[name, value]];
    }),
  ) as RedisInfo;
}

async function unlessForbidden<Reply>(asked: Promise<Reply>): Promise<Reply | undefined> {
  try {
    return await asked;
  } catch (error) {
    const code = replyCode(error);
    if (code === undefined || code === 'LOADING') throw error;
    return undefined;
  }
}

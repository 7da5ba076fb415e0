import type { RedisClient } from '../../src/base/redis.js';
import type { MemoryRedis, Reply } from './memory-redis.js';

const COMMANDS = [
  ...['exists', 'del', 'hget', 'hmget', 'hgetall', 'hset', 'hdel', 'hlen', 'smembers', 'srem', 'zcard', 'zrange'],
  ...['zscore', 'zadd', 'zrem', 'xadd', 'xlen', 'xrange', 'xrevrange'],
];

type Method = (...args: (string | number)[]) => Promise<unknown>;

export function makeMemoryClient(redis: MemoryRedis): RedisClient {
  const client: Record<string, unknown> = Object.fromEntries(
    COMMANDS.map((name) => [
      name,
      async (...args: (string | number)[]) => Promise.resolve(toIoredis(name, redis.call(name.toUpperCase(), args.flat().map(String)))),
    ]),
  );
  client['pipeline'] = () => makePipeline(client as Record<string, Method>);
  return client as unknown as RedisClient;
}

function makePipeline(client: Readonly<Record<string, Method>>): unknown {
  const replies: Promise<readonly [Error | null, unknown]>[] = [];
  const pipeline: Record<string, unknown> = { exec: async () => Promise.all(replies) };
  for (const name of COMMANDS) {
    pipeline[name] = (...args: string[]) => {
      const reply = client[name]?.(...args) ?? Promise.resolve();
      replies.push(
        reply.then(
          (value) => [null, value] as const,
          (error: unknown) => [error as Error, null] as const,
        ),
      );
      return pipeline;
    };
  }
  return pipeline;
}

function toIoredis(name: string, reply: Reply): unknown {
  if (name !== 'hgetall') return reply;
  const pairs = reply as readonly string[];
  const record: Record<string, string> = {};
  for (let index = 0; index < pairs.length; index += 2) record[pairs[index] ?? ''] = pairs[index + 1] ?? '';
  return record;
}

import { Redis } from 'ioredis';
import { crc16 } from '../base/crc16.js';
import type { RedisClient } from '../base/redis.js';

const SLOTS = 16_384;

/** Sentinels locate the master and fail over to a replica. */
export function isWatchedBySentinels(redis: RedisClient): boolean {
  return redis instanceof Redis && (redis.options.sentinels?.length ?? 0) > 0;
}

/** As far as this connection knows them; all masters of a cluster. */
export function listServers(redis: RedisClient): Redis[] {
  return redis instanceof Redis ? [redis] : redis.nodes('master');
}

/** Undefined while unknown. */
export function findServer(redis: RedisClient, key: string): Redis | undefined {
  if (redis instanceof Redis) return redis;
  const [address] = redis.slots[slotOf(key)] ?? [];
  return redis.nodes('all').find(({ options }) => `${options.host ?? ''}:${options.port ?? ''}` === address);
}

/** CRC-16 of the text between the key's first braces. */
export function slotOf(key: string): number {
  const [, tag = ''] = /\{([^}]*)\}/.exec(key) ?? [];
  return crc16(Buffer.from(tag === '' ? key : tag)) % SLOTS;
}

import type { Redis } from 'ioredis';
import type { ForgedAccount } from './forged-account.js';

/** Every key of an account as it was, for an attacker who puts it back. */
export type KeyCopy = ReadonlyMap<string, Buffer>;

export async function copyKeys({ redis, keys }: ForgedAccount): Promise<KeyCopy> {
  const names = await redis.keys(`${keys.prefix}:*`);
  const dumps = await Promise.all(names.map(async (name) => ({ name, value: await findDump(redis, name) })));
  return new Map(dumps.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]])));
}

/** BullMQ's limiter expires: a key that was listed may be gone. */
async function findDump(redis: Redis, name: string): Promise<Buffer | undefined> {
  const value = (await redis.dumpBuffer(name)) as Buffer | null;
  return value ?? undefined;
}

/** Puts keys back, those whose name matches. */
export async function restore({ redis }: ForgedAccount, copy: KeyCopy, names = /./): Promise<void> {
  for (const [name, value] of copy) if (names.test(name)) await redis.restore(name, 0, value, 'REPLACE');
}

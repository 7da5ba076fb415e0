import type { ForgedAccount } from './forged-account.js';

/** Every key of an account as it was, for an attacker who puts it back. */
export type KeyCopy = ReadonlyMap<string, Buffer>;

export async function copyKeys({ redis, keys }: ForgedAccount): Promise<KeyCopy> {
  const names = await redis.keys(`${keys.prefix}:*`);
  return new Map(await Promise.all(names.map(async (name) => [name, await redis.dumpBuffer(name)] as const)));
}

/** Puts keys back, those whose name matches. */
export async function restore({ redis }: ForgedAccount, copy: KeyCopy, names = /./): Promise<void> {
  for (const [name, value] of copy) if (names.test(name)) await redis.restore(name, 0, value, 'REPLACE');
}

import { readFile } from 'node:fs/promises';
import type { TestAccount } from './test-account.js';

/** A hash (texts), a sorted set (scores), or the entries of a stream, as `id|field|value|…`. */
type Content = Readonly<Record<string, string | number>> | string[];

/** Puts a ledger of `test/ledger/fixtures` into Redis, as an account's. */
export async function loadLedger({ redis, connection }: TestAccount, name: string): Promise<void> {
  const text = await readFile(new URL(`../fixtures/${name}.json`, import.meta.url), 'utf8');
  for (const [key, content] of Object.entries(JSON.parse(text) as Record<string, Content>)) {
    const to = `${connection.keys.prefix}:${key}`;
    if (Array.isArray(content)) {
      for (const entry of content) {
        const [id = '', ...fields] = entry.split('|');
        await redis.xadd(to, id, ...fields);
      }
      continue;
    }
    for (const [member, value] of Object.entries(content)) {
      if (typeof value === 'number') await redis.zadd(to, value, member);
      else await redis.hset(to, member, value);
    }
  }
}

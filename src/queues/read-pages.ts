import { isAborted } from '../clock.js';
import { ask } from '../ledger/ledger-connection.js';
import type { RedisClient } from '../redis.js';

/** Entries per command: 1,000 take Redis 0.2 ms. */
const STEP = 1_000;
/** Each page overlaps the previous one, because removed entries shift those behind them. */
const OVERLAP = 100;

export interface Page {
  readonly start: number;
  readonly entries: readonly string[];
}

/**
 * Reads a long list from its head, where BullMQ adds jobs; it takes them from the tail.
 * @param signal - ends the reading between two pages
 */
export function readList(redis: RedisClient, key: string, signal: AbortSignal): AsyncGenerator<Page> {
  return readPages(async (start, stop) => ask(redis.lrange(key, start, stop)), signal);
}

/** Reads a large sorted set from its highest score, because most members leave at the lowest. */
export function readSortedSet(redis: RedisClient, key: string, signal: AbortSignal): AsyncGenerator<Page> {
  return readPages(async (start, stop) => ask(redis.zrange(key, start, String(stop), 'REV')), signal);
}

async function* readPages(
  read: (start: number, stop: number) => Promise<string[]>,
  signal: AbortSignal,
): AsyncGenerator<Page> {
  for (let start = 0; !isAborted(signal); start += STEP - OVERLAP) {
    const entries = await read(start, start + STEP - 1);
    yield { start, entries };
    if (entries.length < STEP) return;
  }
}

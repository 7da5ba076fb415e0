import type { Queue } from 'bullmq';
import { pipelined, type LedgerConnection } from '../ledger/ledger-connection.js';

/** The limiters of both queues count within a second. A key with a longer TTL was set by hand. */
const LIMITER_LIVES_MS = 2_000;

/**
 * A setting in Redis that no worker made and that stops a queue or overrides its limits, with the redis-cli command
 * that removes it.
 */
export interface ForeignSetting {
  readonly detail: string;
  readonly command: string;
}

export async function findForeignSettings(connection: LedgerConnection, queue: Queue): Promise<ForeignSetting[]> {
  const [metaKey, limiterKey] = [queue.toKey('meta'), queue.toKey('limiter')];
  const [meta, limiterLivesMs] = (await pipelined(connection, (pipeline) => {
    pipeline.hgetall(metaKey).pttl(limiterKey);
  })) as [Record<string, string>, number];
  return [...judgeMeta(metaKey, meta), ...judgeLimiter(limiterKey, limiterLivesMs)];
}

function judgeMeta(key: string, meta: Readonly<Record<string, string>>): ForeignSetting[] {
  const { paused, concurrency, max, duration } = meta;
  const found: ForeignSetting[] = [];
  const remove = (...fields: string[]): string => `HDEL '${key}' ${fields.join(' ')}`;
  if (paused !== undefined) {
    found.push({ detail: 'paused in BullMQ, so no job runs', command: remove('paused') });
  }
  if (concurrency !== undefined) {
    found.push({ detail: `global concurrency of ${concurrency}`, command: remove('concurrency') });
  }
  if (max !== undefined || duration !== undefined) {
    found.push({
      detail: `global rate limit (${max ?? '?'} in ${duration ?? '?'} ms), which overrides that of the worker`,
      command: remove('max', 'duration'),
    });
  }
  return found;
}

function judgeLimiter(key: string, livesMs: number): ForeignSetting[] {
  const command = `DEL '${key}'`;
  if (livesMs === -1) return [{ detail: 'the limiter key never expires, so the limiter does not work', command }];
  if (livesMs <= LIMITER_LIVES_MS) return [];
  return [{ detail: `rate limited by hand for another ${Math.ceil(livesMs / 1_000)} s`, command }];
}

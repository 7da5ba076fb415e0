import type { Queue } from 'bullmq';
import { ask } from '../ledger/ledger-connection.js';
import type { RedisClient } from '../redis.js';
import { CompactMap } from './compact-map.js';
import { readList, readSortedSet } from './read-pages.js';

/** BullMQ's structures of jobs to run, in the order in which a job passes them. `paused` is from older versions. */
export const JOB_STRUCTURES = [
  { name: 'active', type: 'list' },
  { name: 'delayed', type: 'sorted set' },
  { name: 'prioritized', type: 'sorted set' },
  { name: 'wait', type: 'list' },
  { name: 'paused', type: 'list' },
] as const;

export interface JobPlace {
  readonly structure: (typeof JOB_STRUCTURES)[number]['name'];
  /** The nearer end of the list; meaningless in a sorted set. */
  readonly near: 'head' | 'tail';
}

export type JobPlaces = Pick<CompactMap<JobPlace>, 'get'>;

/**
 * Reads the place of every job of a queue, page by page. Jobs move meanwhile: a job in the map was there a moment ago.
 * A missing one may have moved between two pages.
 */
export async function readJobPlaces(redis: RedisClient, queue: Queue, signal: AbortSignal): Promise<JobPlaces> {
  const places = new CompactMap<JobPlace>();
  for (const { name: structure, type } of JOB_STRUCTURES) {
    const key = queue.toKey(structure);
    const half = type === 'list' ? (await ask(redis.llen(key))) / 2 : 0;
    const [head, tail] = [{ structure, near: 'head' } as const, { structure, near: 'tail' } as const];
    for await (const { start, entries } of type === 'list'
      ? readList(redis, key, signal)
      : readSortedSet(redis, key, signal)) {
      for (const jobId of entries) places.set(jobId, start < half ? head : tail);
    }
  }
  return places;
}

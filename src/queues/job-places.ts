import type { Queue } from 'bullmq';
import { ask } from '../ledger/ledger-connection.js';
import type { RedisClient } from '../redis.js';
import { CompactMap } from './compact-map.js';
import { readList, readSortedSet } from './read-pages.js';

/** BullMQ's structures of jobs that will be run, in the order in which a job passes through them. `paused` is that of older versions. */
export const JOB_STRUCTURES = [
  { name: 'active', type: 'list' },
  { name: 'delayed', type: 'sorted set' },
  { name: 'prioritized', type: 'sorted set' },
  { name: 'wait', type: 'list' },
  { name: 'paused', type: 'list' },
] as const;

/** Where a job stands in its queue. */
export interface JobPlace {
  readonly structure: (typeof JOB_STRUCTURES)[number]['name'];
  /** The end of the list from which it is nearer; of no meaning in a sorted set. */
  readonly near: 'head' | 'tail';
}

/** Where jobs stand, by their ids. */
export type JobPlaces = Pick<CompactMap<JobPlace>, 'get'>;

/**
 * Reads where every job of a queue stands, page by page. Jobs move meanwhile: one that is in the map was there a moment ago;
 * one that is not may have changed its place between two pages.
 * @returns the place by job id
 * @throws RedisUnavailableError
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

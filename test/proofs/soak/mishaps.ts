import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '../../doubles/random.js';
import type { RedisServer } from '../chaos/redis-server.js';
import type { WorkerHost } from '../chaos/worker-host.js';

export interface MishapOptions {
  readonly workers: readonly WorkerHost[];
  readonly redis: RedisServer;
  readonly random: Random;
  readonly note: (text: string) => void;
  readonly end: AbortSignal;
}

const MINUTE_MS = 60_000;
const DOWN_MS = 5_000;
/** Longer than the lease: another worker takes over. */
const STOPPED_MS = 25_000;
const REDIS_DOWN_MS = 3_000;

/** Every few minutes a worker is killed, stopped or ended, until the signal is aborted. The first one is never ended. */
export async function troubleWorkers({ workers, random, note, end }: MishapOptions): Promise<void> {
  while (await passes(random.between(2 * MINUTE_MS, 4 * MINUTE_MS), end)) {
    const kind = random.pick(['kill', 'stop', 'end'] as const);
    const victims = kind === 'stop' ? workers : workers.slice(1);
    const worker = random.pick(victims);
    note(`${kind} ${worker.name}`);
    if (kind === 'stop') {
      worker.stop();
      await passes(STOPPED_MS, end);
      worker.continue();
    } else {
      await (kind === 'kill' ? worker.kill() : worker.endInGoodOrder());
      await passes(DOWN_MS, end);
      worker.startAgain();
    }
  }
}

/** Every ten to twenty minutes Redis is killed, and started again. */
export async function troubleRedis({ redis, random, note, end }: MishapOptions): Promise<void> {
  while (await passes(random.between(10 * MINUTE_MS, 20 * MINUTE_MS), end)) {
    note('kill Redis');
    await redis.killFor(REDIS_DOWN_MS);
  }
}

/** @returns false when the signal was aborted meanwhile */
export async function passes(ms: number, end: AbortSignal): Promise<boolean> {
  try {
    await delay(ms, undefined, { signal: end });
    return true;
  } catch {
    return false;
  }
}

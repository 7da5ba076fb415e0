import { readdir, readFile } from 'node:fs/promises';
import type { Redis } from 'ioredis';

/** What a worker process takes. */
export interface WorkerSample {
  readonly name: string;
  readonly rssMb: number;
  readonly fileDescriptors: number;
}

export interface Sample {
  /** Seconds since the start. */
  readonly at: number;
  readonly workers: readonly WorkerSample[];
  readonly redisMb: number;
  readonly keys: number;
}

const PAGE_BYTES = 4_096;
const MB = 1_048_576;

/** @returns undefined where the process has ended, or the system has no /proc */
export async function sampleWorker(name: string, pid: number | undefined): Promise<WorkerSample | undefined> {
  try {
    const [statm, fds] = await Promise.all([
      readFile(`/proc/${pid ?? 0}/statm`, 'utf8'),
      readdir(`/proc/${pid ?? 0}/fd`),
    ]);
    const pages = Number(statm.split(' ')[1]);
    return { name, rssMb: Math.round(((pages * PAGE_BYTES) / MB) * 10) / 10, fileDescriptors: fds.length };
  } catch {
    return undefined;
  }
}

/** @returns undefined while Redis is down */
export async function sampleRedis(client: Redis): Promise<Pick<Sample, 'redisMb' | 'keys'> | undefined> {
  try {
    const [info, keys] = await Promise.all([client.info('memory'), client.dbsize()]);
    return { redisMb: Math.round((Number(/used_memory:(\d+)/.exec(info)?.[1]) / MB) * 10) / 10, keys };
  } catch {
    return undefined;
  }
}

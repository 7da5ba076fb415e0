import { spawnSync } from 'node:child_process';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createFakeClock } from './fake-clock.js';

const MAX_PID = 32_768;
const TAKEN = 10;

let dir: string;
let taken: string[];
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'fake-clock-'));
  taken = [];
});
afterEach(async () => {
  for (const path of [dir, ...taken]) await rm(path, { recursive: true, force: true });
});

/** Leaves behind what commands with the next process ids would have, had they been killed. */
async function takeNextIds(): Promise<void> {
  const { pid } = spawnSync('true');
  for (let id = pid + 1; id <= Math.min(pid + TAKEN, MAX_PID); id += 1) {
    const path = `/dev/shm/faketime_shm_${id}`;
    const file = await open(path, 'wx').catch(() => undefined);
    await file?.close();
    // The command that refuses leaves its semaphore behind.
    if (file !== undefined) taken.push(path, `/dev/shm/sem.faketime_sem_${id}`);
  }
}

describe('a fake clock', () => {
  it('is made where killed processes left their shared memory behind', async () => {
    const run = () => spawnSync('faketime', ['-m', '-f', '+0', 'true']);
    // Other processes take ids too, so one try may miss.
    do await takeNextIds();
    while (run().status === 0);
    const { environment } = await createFakeClock(dir, 'clock');
    expect(environment['LD_PRELOAD']).toMatch(/libfaketime/);
  }, 60_000);
});

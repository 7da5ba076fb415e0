import { execFileSync } from 'node:child_process';
import { open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, it } from '@jest/globals';
import { until } from '../support/until.js';
import {
  expectPromisesKept,
  untilLeased,
  untilSettled,
  worldOfTest,
  type PayoutWorld,
} from './support/payout-world.js';
import type { WorkerProcess } from './support/worker-process.js';

/** A disk that does not answer: a system call of the worker does not return. */

const AILING_DISK = new URL('../told/ailing-disk.mjs', import.meta.url).href;

let world: PayoutWorld;
let control: string;
/** Has sent a payout, and its disk hangs. */
let worker: WorkerProcess;
beforeEach(async () => {
  world = await worldOfTest();
  control = join(world.dir, 'disk');
  await writeFile(control, 'well');
  execFileSync('mkfifo', [`${control}.pipe`]);
  worker = world.startWorker({ environment: { NODE_OPTIONS: `--import=${AILING_DISK}`, AILING_DISK: control } });
  await untilLeased(worker);
  await world.enqueue(1, 'FIRST');
  await untilSettled(world, 1);
  await writeFile(control, 'hang');
});

it('a host with a disk that answers sends the payout, and the line that is written late is no send', async () => {
  await world.enqueue(2);
  await worker.said('giving up the lease');
  const other = world.startWorker({ journalDir: join(world.dir, 'other-journal') });
  await untilSettled(world, 3);
  expect(await world.producer.stats()).toMatchObject({ completed: 3, unknown: 0 });
  expect((await world.producer.get('P-1'))?.attempt).toBe(2);

  // The system calls that hang return.
  await writeFile(control, 'well');
  await (await open(`${control}.pipe`, 'w')).close();
  const journal = join(world.dir, 'journal', `${world.platformId}.journal`);
  await until('what came of it stands behind it', async () => (await readFile(journal, 'utf8')).includes('not_sent'));
  await other.end();
  await world.enqueue(1, 'LAST');
  await untilSettled(world, 4);
  expect(await world.producer.stats()).toMatchObject({ completed: 4, unknown: 0, objections: [] });
  await expectPromisesKept(world);
});

it('SIGTERM ends a worker whose disk hangs', async () => {
  await world.enqueue(1);
  await until('it begins', async () => (await world.producer.get('P-1'))?.state === 'sending');
  worker.kill('SIGTERM');
  expect(await worker.ended).toBe('SIGTERM');
  expect(worker.log()).toContain('worker stopped');
  expect((await world.producer.get('P-1'))?.state).toBe('queued');
});

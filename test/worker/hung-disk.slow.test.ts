import { execFileSync } from 'node:child_process';
import { open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { until } from '../support/until.js';
import { expectPromisesKept, openWorld, untilSettled, type PayoutWorld } from './support/payout-world.js';
import { endAllWorkers, type WorkerProcess } from './support/worker-process.js';

/** A disk that does not answer: a system call of the worker does not return. */

const AILING_DISK = new URL('../told/support/ailing-disk.mjs', import.meta.url).href;

let world: PayoutWorld;
let control: string;
beforeEach(async () => {
  world = await openWorld();
  control = join(world.dir, 'disk');
  await writeFile(control, 'well');
  execFileSync('mkfifo', [`${control}.pipe`]);
});
afterEach(async () => {
  await endAllWorkers();
  await world.close();
});

async function startOnAilingDisk(): Promise<WorkerProcess> {
  const worker = world.startWorker({
    environment: { NODE_OPTIONS: `--import=${AILING_DISK}`, AILING_DISK: control },
  });
  await until('it is the sender', () => worker.log().includes('acquired sender lease'));
  await world.enqueue(1, 'FIRST');
  await untilSettled(world, 1);
  return worker;
}

/** The system calls that hang return. */
async function release(): Promise<void> {
  await writeFile(control, 'well');
  await (await open(`${control}.pipe`, 'w')).close();
}

it('a host with a disk that answers sends the payout, and the line that is written late is no send', async () => {
  const worker = await startOnAilingDisk();
  await writeFile(control, 'hang');
  await world.enqueue(2);
  await until('it gives the lease up', () => worker.log().includes('giving up the lease'));
  const other = world.startWorker({ journalDir: join(world.dir, 'other-journal') });
  await untilSettled(world, 3);
  expect(await world.producer.stats()).toMatchObject({ completed: 3, unknown: 0 });
  const attempts = (await world.producer.get('P-1'))?.attempt;
  expect(attempts).toBe(2);

  await release();
  const journal = join(world.dir, 'journal', `${world.platformId}.journal`);
  await until('what came of it stands behind it', async () => (await readFile(journal, 'utf8')).includes('not_sent'));
  await other.end();
  await world.enqueue(1, 'LAST');
  await untilSettled(world, 4);
  expect(await world.producer.stats()).toMatchObject({ completed: 4, unknown: 0, objections: [] });
  await expectPromisesKept(world);
}, 120_000);

it('SIGTERM ends a worker whose disk hangs', async () => {
  const worker = await startOnAilingDisk();
  await writeFile(control, 'hang');
  await world.enqueue(1);
  await until('it begins', async () => (await world.producer.get('P-1'))?.state === 'sending');
  worker.kill('SIGTERM');
  expect(await worker.ended).toBe('SIGTERM');
  expect(worker.log()).toContain('worker stopped');
  expect((await world.producer.get('P-1'))?.state).toBe('queued');
}, 60_000);

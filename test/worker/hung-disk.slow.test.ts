import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { until } from '../support/until.js';
import { untilLeased, untilSettled, worldOfTest } from './support/payout-world.js';

const AILING_DISK = new URL('../told/ailing-disk.mjs', import.meta.url).href;

it('SIGTERM ends a worker whose disk does not answer; a host with another disk sends its payout', async () => {
  const world = await worldOfTest();
  const control = join(world.dir, 'disk');
  await writeFile(control, 'well');
  execFileSync('mkfifo', [`${control}.pipe`]);
  const environment = { NODE_OPTIONS: `--import=${AILING_DISK}`, AILING_DISK: control };
  const worker = world.startWorker({ environment });
  await untilLeased(worker);
  await world.enqueue(1, 'FIRST');
  await untilSettled(world, 1);
  await writeFile(control, 'hang');
  await world.enqueue(2);
  await until('it begins', async () => (await world.producer.get('P-1'))?.state === 'sending');
  worker.kill('SIGTERM');
  expect(await worker.ended).toBe('SIGTERM');
  expect(worker.log()).toContain('worker stopped');
  expect((await world.producer.get('P-1'))?.state).toBe('queued');
  world.startWorker({ journalDir: join(world.dir, 'other-journal') });
  await untilSettled(world, 3);
  expect(await world.producer.stats()).toMatchObject({ completed: 3, unknown: 0 });
  expect((await world.producer.get('P-1'))?.attempt).toBe(2);
});

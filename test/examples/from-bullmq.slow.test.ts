import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { Queue, Worker } from 'bullmq';
import { findBuiltProgram } from '../support/built-program.js';
import { until } from '../support/until.js';
import { textWith } from '../cli/support/cli-rig.js';
import { closeAfterTest } from '../worker/support/close-after-test.js';
import { worldOfTest } from '../worker/support/payout-world.js';

const EXAMPLE = fileURLToPath(new URL('../../examples/from-bullmq.ts', import.meta.url));
const WALLET = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';

it("a BullMQ queue's waiting withdrawals become payouts once, and those that may be sent are named", async () => {
  findBuiltProgram();
  const { env, producer, redisUrl } = await worldOfTest();
  const name = `withdrawals-${randomUUID()}`;
  const connection = { url: redisUrl };
  const queue = closeAfterTest(new Queue(name, { connection }));
  const about = { currency: 6, amount: '12.5', wallet: WALLET };
  const add = async (orderId: string, wallet = WALLET, delay = 0) =>
    queue.add('withdraw', { ...about, orderId, wallet }, { delay });
  const move = () => {
    const all = { ...process.env, ...env, OLD_QUEUE: name };
    const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', 'tsx', EXAMPLE], {
      env: all,
      encoding: 'utf8',
    });
    return { status, stdout, stderr };
  };

  await add('order-tried');
  const backoff = { type: 'fixed', delay: 3_600_000 };
  await queue.add('withdraw', { orderId: 'order-again', ...about }, { attempts: 2, backoff });
  const worker = new Worker(name, async () => Promise.reject(new Error('socket hang up')), { connection });
  await until('both failed', async () => (await queue.getFailedCount()) + (await queue.getDelayedCount()) === 2);
  expect(move()).toMatchObject({ status: 1, stderr: textWith(/still has 1 workers/) });
  await worker.close();
  expect(move()).toMatchObject({ status: 1, stderr: textWith(/pause withdrawals-/) });
  await queue.pause();

  for (const orderId of ['order-1', 'order-2']) await add(orderId);
  await add('order-later', WALLET, 3_600_000);
  await add('order-wrong', 'undefined');
  // Accepted by a run that ended before it removed the job.
  await producer.enqueue({ payoutId: 'order-1', paymentId: 6, amount: '12.5', addressTo: WALLET });
  const { status, stdout } = move();
  expect({ status, stdout }).toEqual({ status: 0, stdout: textWith(/3 moved\n/) });
  expect(stdout).toMatch(/^order-wrong: .*addressTo/m);
  expect(stdout).toContain('order-again: was tried 1 times\n');
  expect(stdout).toContain('order-tried: failed, or was under way\nLook for these in the records of the gateway.');
  expect(move().stdout).toContain('0 moved\n');

  expect(await producer.get('order-2')).toMatchObject({ state: 'queued', amount: '12.5', addressTo: WALLET });
  const { notBefore = '' } = (await producer.get('order-later')) ?? {};
  expect(Date.parse(notBefore)).toBeGreaterThan(Date.now() + 3_000_000);
  expect(await producer.get('order-tried')).toBeUndefined();
  await queue.obliterate({ force: true });
});

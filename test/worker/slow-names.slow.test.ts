import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { until } from '../support/until.js';
import { expectPromisesKept, openWorld, SECRET_KEY, untilSettled, type PayoutWorld } from './support/payout-world.js';
import { endAllWorkers, type WorkerProcess } from './support/worker-process.js';

/** Five accounts whose gateways' names take ten seconds to look up, and one in the same process that is well. */

const SLOW_NAMES = new URL('support/slow-names.mjs', import.meta.url).href;

let world: PayoutWorld;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(async () => {
  await endAllWorkers();
  await world.close();
});

async function startWorker(slow: readonly number[]): Promise<WorkerProcess> {
  const accounts = [
    ...slow.map((platformId) => ({ platformId, baseUrl: `https://g${platformId}.slow:1` })),
    { platformId: world.platformId, baseUrl: world.sandbox.url.replace('127.0.0.1', 'localhost') },
  ].map((account) => ({ ...account, secretKeyFile: 'key' }));
  const file = join(world.dir, 'accounts.json');
  await writeFile(join(world.dir, 'key'), SECRET_KEY, { mode: 0o600 });
  await writeFile(file, JSON.stringify(accounts));
  return world.startWorker({
    environment: {
      PAYOUT_ACCOUNTS_FILE: file,
      NODE_OPTIONS: `--import=${SLOW_NAMES}`,
      BALANCE_EVERY_MS: '0',
      CURRENCIES_EVERY_MS: '0',
    },
  });
}

it('pays at its pace although their look-ups came first, and each warning names the account’s own gateway', async () => {
  const slow = Array.from({ length: 5 }, (_, index) => world.platformId + (index + 1) * 1_000_000_000);
  const producers = slow.map((platformId) => new PayoutProducer({ redisUrl: world.redisUrl, platformId }));
  try {
    for (const producer of producers) {
      await producer.enqueue({
        payoutId: 'P-1',
        paymentId: 1,
        amount: '0.01',
        addressTo: 'wallet-slow',
      });
    }
    const worker = await startWorker(slow);
    await until('each has waited in vain', () => slow.every((id) => worker.log().includes(`//g${id}.slow`)));
    const startedAt = performance.now();
    await world.enqueue(5);
    await untilSettled(world, 5);
    // The pace takes five seconds of it. Behind one look-up that is slow it would be ten more.
    expect(performance.now() - startedAt).toBeLessThan(15_000);
    await expectPromisesKept(world);
    for (const id of slow) expect(worker.log()).toContain(`the name g${id}.slow was not resolved`);
    expect(worker.log()).not.toMatch(/localhost[^"]* was not resolved/);
  } finally {
    for (const producer of producers) await producer.close();
  }
}, 120_000);

import { open } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { expectPromisesKept, openWorld, untilSettled, type PayoutWorld } from './support/payout-world.js';
import { readMetric } from './support/watched-worker.js';
import { endAllWorkers, type WorkerProcessOptions } from './support/worker-process.js';

let world: PayoutWorld;

beforeEach(async () => {
  world = await openWorld();
});

afterEach(async () => {
  await endAllWorkers();
  await world.close();
});

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function expectAllPaid(stderr: NonNullable<WorkerProcessOptions['stderr']>): Promise<void> {
  const port = await findFreePort();
  const payoutIds = await world.enqueue(2);
  const worker = world.startWorker({ stderr, environment: { HEALTH_PORT: String(port) } });
  await untilSettled(world, payoutIds.length);
  for (const payoutId of payoutIds) {
    const payout = await world.producer.get(payoutId);
    expect(payout).toMatchObject({ state: 'completed', txhash: expect.stringMatching(/^[0-9a-f]{64}$/) });
  }
  await expectPromisesKept(world);
  expect((await world.producer.stats()).sender?.epoch).toBe(1);

  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  expect(readMetric(metrics, 'payouts_log_failures_total')).toBeGreaterThan(0);
  worker.kill('SIGTERM');
  expect(await worker.ended).toBe(0);
}

it('a worker whose log goes to a full disk pays, records every txhash, counts the lost lines and ends with 0', async () => {
  const full = await open('/dev/full', 'w');
  try {
    await expectAllPaid(full.fd);
  } finally {
    await full.close();
  }
});

it('and so does one whose log nobody reads any more', async () => {
  await expectAllPaid('broken-pipe');
});

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { until } from '../support/until.js';
import { closeAfterTest } from './support/close-after-test.js';
import { startOwnRedis } from './support/own-redis.js';
import { worldOfTest, type PayoutWorld } from './support/payout-world.js';

const PAYOUTS = 12;
const INTERVAL_MS = 1_010;

it('one process works for several accounts, and the trouble of some does not slow another', async () => {
  const redis = closeAfterTest(await startOwnRedis());
  const worlds = await Promise.all([1, 2, 3, 4, 5].map(async (id) => worldOfTest({ redis, platformIds: [id] })));
  const [well, blocked, hanging] = worlds as [PayoutWorld, PayoutWorld, PayoutWorld];
  blocked.sandbox.addFaults([{ kind: 'block', times: 1 }]);
  hanging.sandbox.addFaults([{ kind: 'hang' }]);
  await writeFile(join(well.dir, 'wrong.key'), 'k-wrong-0123456789', { mode: 0o600 });
  const nowhere = { baseUrl: `http://127.0.0.1:${await findFreePort()}` };
  const environment = await well.writeAccounts(
    worlds.map(({ platformId, sandbox }) => ({
      ...{ platformId, baseUrl: sandbox.url, intervalMs: INTERVAL_MS, withdrawTimeoutMs: 3_000, timeoutMs: 1_000 },
      ...(platformId === 4 && nowhere),
      ...(platformId === 5 && { secretKeyFile: 'wrong.key' }),
    })),
  );
  await Promise.all(worlds.map(async (world) => world.enqueue(PAYOUTS)));
  well.startWorker({ environment });
  await until('all of the well account are final', async () => (await well.producer.stats()).completed === PAYOUTS);
  await until('the hanging one has stopped', async () => (await hanging.producer.stats()).paused);
  const [first, last] = [0, -1].map((at) => well.sandbox.arrivals().at(at)?.atMs ?? NaN) as [number, number];
  expect((last - first) / (PAYOUTS - 1)).toBeLessThan(INTERVAL_MS * 1.1);
  expect(well.sandbox.stats().smallestGapMs).toBeGreaterThanOrEqual(1_000);
  expect(await Promise.all(worlds.slice(1).map(async ({ producer }) => producer.stats()))).toMatchObject([
    { paused: true, rejected: 1, queued: PAYOUTS - 1 },
    { paused: true, unknown: 2, queued: PAYOUTS - 2 },
    { queued: PAYOUTS, unknown: 0 },
    { paused: true, completed: 0, unknown: 0 },
  ]);
}, 120_000);

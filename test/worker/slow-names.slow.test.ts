import { expect, it } from '@jest/globals';
import { until } from '../support/until.js';
import { cents, expectPromisesKept, untilSettled, worldOfTest } from './support/payout-world.js';

/** Five accounts whose gateways' names take ten seconds to look up, and one in the same process that is well. */

it('pays at its pace although their look-ups came first, and each warning names the account’s own gateway', async () => {
  const world = await worldOfTest();
  const slow = Array.from({ length: 5 }, (_, index) => world.platformId + (index + 1) * 1_000_000_000);
  const accounts = [
    ...slow.map((platformId) => ({ platformId, baseUrl: `https://g${platformId}.slow:1` })),
    { platformId: world.platformId, baseUrl: world.sandbox.url.replace('127.0.0.1', 'localhost') },
  ];
  const accountsFile = await world.writeAccounts(accounts);
  for (const platformId of slow) await world.producerOf(platformId).enqueueMany(cents(['P-1']));
  const preload = `--import=${new URL('support/slow-names.mjs', import.meta.url).href}`;
  const never = { BALANCE_EVERY_MS: '0', CURRENCIES_EVERY_MS: '0' };
  const worker = world.startWorker({ environment: { ...accountsFile, NODE_OPTIONS: preload, ...never } });
  await until('each has waited in vain', () => slow.every((id) => worker.log().includes(`//g${id}.slow`)));
  const startedAt = performance.now();
  await world.enqueue(5);
  await untilSettled(world, 5);
  // The pace takes five seconds of it. Behind one look-up that is slow it would be ten more.
  expect(performance.now() - startedAt).toBeLessThan(15_000);
  await expectPromisesKept(world);
  for (const id of slow) expect(worker.log()).toContain(`the name g${id}.slow was not resolved`);
  expect(worker.log()).not.toMatch(/localhost[^"]* was not resolved/);
}, 120_000);

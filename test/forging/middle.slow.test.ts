import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { until } from '../support/until.js';
import { HONEST_ADDRESS, MIDDLE } from './attacks/middle.js';
import { ForgingWorld } from './support/forging-world.js';
import { startForgingProxy, type ForgingProxy } from './support/forging-proxy.js';
import { enqueueHonest, judgeBook } from './support/run-attacks.js';

/** A man in the middle of the worker's connection: Redis itself is honest, what the worker reads is not. */

let world: ForgingWorld;
const proxies: ForgingProxy[] = [];

beforeAll(async () => {
  world = await ForgingWorld.open(MIDDLE.length);
}, 60_000);

afterAll(async () => {
  for (const proxy of proxies) proxy.alter = (reply) => reply;
  await world.close();
  await Promise.all(proxies.map(async (proxy) => proxy.close()));
});

it.each(MIDDLE.map((row, index) => ({ ...row, index })))('$name: nothing but what was signed is paid', async (row) => {
  const account = world.account(row.index);
  const isPaidBefore = row.expect === 'paid once';
  await account.enqueue({ payoutId: 'P', paymentId: 6, amount: '12.5', addressTo: HONEST_ADDRESS });
  const proxy = await startForgingProxy(world.redis.port);
  proxies.push(proxy);
  if (!isPaidBefore) proxy.alter = row.alter;
  const worker = await world.startWorker({ redisUrl: proxy.url }, {}, [account]);
  if (row.expect === 'paid once') {
    await until('it is paid', async () => (await account.payout('P')).state === 'completed');
    proxy.alter = row.alter;
    await account.ring('P');
    await until('the worker was told', () => proxy.altered > 0);
    await delay(3_000);
    proxy.alter = (reply) => reply;
  } else {
    await until('it is held', async () => (await account.payout('P')).state === 'held');
    expect((await account.payout('P')).held?.reason).toBe(row.expect.held);
    expect((await account.tamperings()).map(({ payoutId }) => payoutId)).toEqual(['P']);
    expect(proxy.altered).toBeGreaterThan(0);
    proxy.alter = (reply) => reply;
    await enqueueHonest([account]);
    await until('the honest payout is paid', async () => (await account.payout('honest')).state === 'completed');
  }
  judgeBook(world, account);
  const paid = world.sandbox.payments(account.platformId).filter(({ addressTo }) => addressTo === HONEST_ADDRESS);
  expect(paid).toHaveLength(isPaidBefore ? 1 : 0);
  await worker.stop();
});

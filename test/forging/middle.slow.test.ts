import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { until } from '../support/until.js';
import { ForgingWorld } from './support/forging-world.js';
import { bulk, startForgingProxy, type ForgingProxy } from './support/forging-proxy.js';
import { enqueueHonest, judgeBook } from './support/run-attacks.js';

/** A man in the middle of the worker's connection: Redis itself is honest, what the worker reads is not. */

const ROWS: readonly {
  readonly name: string;
  readonly alter: (reply: string) => string;
  /** When it begins: with the payout queued, or once it is paid. */
  readonly paidBefore?: true;
  readonly reason?: string;
}[] = [
  {
    name: 'address replaced by one of the same length',
    alter: (reply) => reply.replaceAll('bc1qhonest0', 'bc1qthief00'),
    reason: 'bad_signature',
  },
  {
    name: 'amount replaced by one of the same length',
    alter: (reply) => reply.replaceAll(bulk('amount') + bulk('12.5'), bulk('amount') + bulk('99.5')),
    reason: 'bad_signature',
  },
  {
    name: 'payment id replaced by one of the same length',
    alter: (reply) => reply.replaceAll(bulk('paymentId') + bulk('6'), bulk('paymentId') + bulk('1')),
    reason: 'bad_signature',
  },
  {
    name: 'state completed told as queued',
    paidBefore: true,
    alter: (reply) => reply.replaceAll(bulk('state') + bulk('completed'), bulk('state') + bulk('queued')),
  },
  {
    name: 'state completed told as queued, attempt as 0',
    paidBefore: true,
    alter: (reply) =>
      reply
        .replaceAll(bulk('state') + bulk('completed'), bulk('state') + bulk('queued'))
        .replaceAll(bulk('attempt') + bulk('1'), bulk('attempt') + bulk('0')),
  },
];

let world: ForgingWorld;
const proxies: ForgingProxy[] = [];

beforeAll(async () => {
  world = await ForgingWorld.open(ROWS.length);
}, 60_000);

afterAll(async () => {
  for (const proxy of proxies) proxy.alter = (reply) => reply;
  await world.close();
  await Promise.all(proxies.map(async (proxy) => proxy.close()));
});

it.each(ROWS.map((row, index) => ({ ...row, index })))('$name: nothing but what was signed is paid', async (row) => {
  const account = world.account(row.index);
  const { platformId } = account;
  await account.enqueue({ payoutId: 'P', paymentId: 6, amount: '12.5', addressTo: 'bc1qhonest0' });
  const proxy = await startForgingProxy(world.redis.port);
  proxies.push(proxy);
  if (row.paidBefore === undefined) proxy.alter = row.alter;
  const worker = await world.startWorker({ redisUrl: proxy.url }, {}, [account]);
  if (row.paidBefore === true) {
    await until('it is paid', async () => (await account.payout('P')).state === 'completed');
    proxy.alter = row.alter;
    await account.ring('P');
    await until('the worker was told', () => proxy.altered > 0);
    await delay(3_000);
    proxy.alter = (reply) => reply;
  } else {
    await until('it is held', async () => (await account.payout('P')).state === 'held');
    expect((await account.payout('P')).held?.reason).toBe(row.reason);
    expect(proxy.altered).toBeGreaterThan(0);
    proxy.alter = (reply) => reply;
    await enqueueHonest([account]);
    await until('the honest payout is paid', async () => (await account.payout('honest')).state === 'completed');
  }
  judgeBook(world, account);
  const paid = world.sandbox.payments(platformId).filter(({ addressTo }) => addressTo === 'bc1qhonest0');
  expect(paid).toHaveLength(row.paidBefore === true ? 1 : 0);
  await worker.stop();
});

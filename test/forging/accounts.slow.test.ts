import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { until } from '../support/until.js';
import { endRepeated, JOBS, LEDGERS, PAUSES } from './attacks/accounts.js';
import { HONEST_ADDRESS, MIDDLE } from './attacks/middle.js';
import { startForgingProxy, type ForgingProxy } from './support/forging-proxy.js';
import { ForgingWorld } from './support/forging-world.js';
import { enqueueHonest, judgeBook } from './support/run-attacks.js';

describe('what the account itself keeps in Redis, under a running worker: each in an account of its own', () => {
  const ATTACKS = [...PAUSES, ...LEDGERS, ...JOBS];
  /** Longer than a lease, its takeover and a send: what has not been sent then was stopped. */
  const QUIET_MS = 6_000;
  // Before the world closes, which is registered next.
  afterAll(endRepeated);
  const used = ForgingWorld.use(ATTACKS.length * 2);
  const failures = new Map<number, Error>();

  beforeAll(async () => {
    const { world } = used;
    await enqueueHonest(world.accounts, 'first');
    await world.startWorker();
    await until('all have sent', async () =>
      (await Promise.all(world.accounts.map(async (account) => account.isIn('completed', 'first')))).every(Boolean),
    );
    await Promise.all(
      ATTACKS.map(async (row, index) => {
        try {
          await row.attack({ world, account: world.account(index), other: world.account(ATTACKS.length + index) });
        } catch (error) {
          failures.set(index, error as Error);
        }
      }),
    );
    // A ledger that was forged takes no payout: then there is none to be sent.
    const attacked = world.accounts.slice(0, ATTACKS.length);
    await Promise.allSettled(attacked.map(async (account) => enqueueHonest([account], 'after')));
    await delay(QUIET_MS);
  }, 120_000);

  it.each(ATTACKS.map(({ name, expect: expected }, index) => ({ name, expected, index })))(
    '$name: $expected',
    async ({ expected, index }) => {
      const { world } = used;
      const account = world.account(index);
      const failure = failures.get(index);
      if (failure !== undefined) throw failure;
      const countAfter = (): number =>
        world.sandbox.payments(account.platformId).filter(({ addressTo }) => addressTo.startsWith('wallet-after'))
          .length;
      if (expected === 'continues') await until('what is signed is paid', () => countAfter() === 1, 30_000);
      if (expected === 'stopped') expect(countAfter()).toBe(0);
      judgeBook(world, account);
      const refusal = ATTACKS[index]?.refusal;
      if (refusal === undefined) return;
      expect(world.refusals).toContainEqual({ platformId: account.platformId, reason: refusal, isTampering: true });
    },
  );

  it('nothing else was paid in any account', () => {
    for (const account of used.world.accounts) judgeBook(used.world, account);
  });
});

describe('replies that a man in the middle alters: Redis is honest, what the worker reads is not', () => {
  const proxies: ForgingProxy[] = [];
  const used = ForgingWorld.use(MIDDLE.length);
  afterAll(() => {
    for (const proxy of proxies) proxy.alter = (reply) => reply;
  });
  afterAll(async () => {
    await Promise.all(proxies.map(async (proxy) => proxy.close()));
  });

  it.each(MIDDLE.map((row, index) => ({ ...row, index })))(
    '$name: nothing but what was signed is paid',
    async (row) => {
      const { world } = used;
      const account = world.account(row.index);
      await account.enqueue({ payoutId: 'P', paymentId: 6, amount: '12.5', addressTo: HONEST_ADDRESS });
      const proxy = await startForgingProxy(world.redis.port);
      proxies.push(proxy);
      if (row.expect !== 'paid once') proxy.alter = row.alter;
      const worker = await world.startWorker({ redisUrl: proxy.url }, {}, [account]);
      if (row.expect === 'paid once') {
        await until('it is paid', async () => account.isIn('completed', 'P'));
        proxy.alter = row.alter;
        await account.ring('P');
        await until('the worker was told', () => proxy.altered > 0);
        await delay(3_000);
        proxy.alter = (reply) => reply;
      } else {
        await until('it is held', async () => account.isIn('held', 'P'));
        expect((await account.payout('P')).held?.reason).toBe(row.expect.held);
        expect((await account.tamperings()).map(({ payoutId }) => payoutId)).toEqual(['P']);
        expect(proxy.altered).toBeGreaterThan(0);
        proxy.alter = (reply) => reply;
        await enqueueHonest([account]);
        await until('the honest payout is paid', async () => account.isIn('completed', 'honest'));
      }
      judgeBook(world, account);
      const paid = world.sandbox.payments(account.platformId).filter(({ addressTo }) => addressTo === HONEST_ADDRESS);
      expect(paid).toHaveLength(row.expect === 'paid once' ? 1 : 0);
      await worker.stop();
    },
  );
});

import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { until } from '../support/until.js';
import { endRepeated, JOBS, LEDGERS, PAUSES } from './attacks/accounts.js';
import { MIDDLE } from './attacks/middle.js';
import { startForgingProxy, type ForgingProxy } from './support/forging-proxy.js';
import { ForgingWorld } from './support/forging-world.js';
import { enqueueHonest } from './support/run-attacks.js';

describe('what the account itself keeps in Redis, under a running worker: each in an account of its own', () => {
  const ATTACKS = [...PAUSES, ...LEDGERS, ...JOBS];
  /** Longer than a lease, its takeover and a send: what has not been sent then was stopped. */
  const QUIET_MS = 6_000;
  // Before the world closes, which is registered next.
  afterAll(endRepeated);
  const used = ForgingWorld.use(ATTACKS.length + 1);
  let carriedOut: readonly PromiseSettledResult<unknown>[] = [];

  beforeAll(async () => {
    const { world } = used;
    await enqueueHonest(world.accounts, 'first');
    await world.startWorker();
    await Promise.all(world.accounts.map(async (account) => world.untilIn('completed', account, 'first')));
    carriedOut = await Promise.allSettled(
      world.accounts.map(async (account, index) => ATTACKS[index]?.attack({ world, account })),
    );
    // A ledger that was forged takes no payout: then there is none to be sent.
    await Promise.allSettled(world.accounts.map(async (account) => enqueueHonest([account], 'after')));
    await delay(QUIET_MS);
  }, 120_000);

  const rows = ATTACKS.map((row, index) => ({ ...row, index }));
  it.each(rows)('$name: $expect', async ({ expect: expected, refusal: reason, index }) => {
    const { world } = used;
    const account = world.account(index);
    expect(carriedOut[index]).toMatchObject({ status: 'fulfilled' });
    const countAfter = (): number =>
      world.paidTo(account).filter((address) => address.startsWith('wallet-after')).length;
    if (expected === 'continues') await until('what is signed is paid', () => countAfter() === 1, 30_000);
    if (expected === 'stopped') expect(countAfter()).toBe(0);
    world.judge(account);
    const { platformId } = account;
    if (reason !== undefined) expect(world.refusals).toContainEqual({ platformId, reason, isTampering: true });
  });

  it('nothing else was paid in any account', () => {
    for (const account of used.world.accounts) used.world.judge(account);
  });
});

describe('replies that a man in the middle alters: Redis is honest, what the worker reads is not', () => {
  const proxies: ForgingProxy[] = [];
  const used = ForgingWorld.use(MIDDLE.length);
  afterAll(async () => Promise.all(proxies.map(async (proxy) => proxy.close())));

  it.each(MIDDLE.map((row, index) => ({ ...row, index })))(
    '$name: held, or paid once',
    async ({ alter, index, isPaid }) => {
      const { world } = used;
      const account = world.account(index);
      const address = await account.order('P', '12.5');
      const proxy = await startForgingProxy(world.redis.port);
      proxies.push(proxy);
      if (!isPaid) proxy.alter = alter;
      const worker = await world.startWorker({ redisUrl: proxy.url }, {}, [account]);
      if (isPaid) {
        await world.untilIn('completed', account, 'P');
        proxy.alter = alter;
        await account.ring('P');
        await until('the worker was told', () => proxy.altered > 0);
        await delay(3_000);
      } else {
        await world.untilIn('held', account, 'P');
        expect((await account.payout('P')).held?.reason).toBe('bad_signature');
        expect((await account.tamperings()).map(({ payoutId }) => payoutId)).toEqual(['P']);
        proxy.alter = (reply) => reply;
        await enqueueHonest([account]);
        await world.untilIn('completed', account, 'honest');
      }
      world.judge(account);
      expect(world.paidTo(account).filter((paid) => paid === address)).toHaveLength(isPaid ? 1 : 0);
      await worker.stop();
    },
  );
});

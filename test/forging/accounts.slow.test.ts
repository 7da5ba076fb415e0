import { readdir, rename, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { FileSendJournal } from '../../src/journal/file-send-journal.js';
import { DAY_MS } from '../control/support/signed.js';
import { until } from '../support/until.js';
import { endRepeated, JOBS, LEDGERS, MIDDLE, PAUSES, RESTARTS } from './attacks/accounts.js';
import { isTampering } from './support/attack.js';
import type { ForgedAccount } from './support/forged-account.js';
import { enqueueHonest, type ForgingProxy, ForgingWorld, startForgingProxy } from './support/forging-world.js';

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
    const countAfter = () => world.paidTo(account).filter((address) => address.startsWith('wallet-after')).length;
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

describe('between two runs: Redis flushed and put back as it was, journals that began new files, clocks', () => {
  const LIFETIME_MS = 20_000;
  const used = ForgingWorld.use(RESTARTS.length);

  async function rotate({ platformId }: ForgedAccount, times: number) {
    const dir = used.world.journalDir;
    const path = join(dir, `${platformId}.journal`);
    for (let number = 1; number <= times; number += 1) {
      await rename(path, `${path}.${number}`);
      await (await FileSendJournal.open({ dir, platformId })).close();
    }
  }

  beforeAll(async () => {
    const { world } = used;
    const { accounts } = world;
    const all = async (state: 'completed' | 'held', of = accounts): Promise<unknown> =>
      Promise.all(of.map(async (account) => world.untilIn(state, account, 'P')));
    const expiring = accounts.filter((_, index) => RESTARTS[index]?.clock !== undefined);
    const startedAt = Date.now();
    for (const account of accounts) {
      const payout = { payoutId: 'P', paymentId: 6, amount: '12.5', addressTo: `wallet-${account.platformId}` };
      await account.enqueue(payout, expiring.includes(account) ? { days: [0, LIFETIME_MS / DAY_MS] } : {});
    }
    const copy = async () => Promise.all(accounts.map(async (account) => account.copyKeys()));
    const old = await copy();
    const first = await world.startWorker();
    await all('completed');
    await first.stop();
    const paid = await copy();
    await world.attacker.flushall();
    for (const [index, row] of RESTARTS.entries()) {
      const account = world.account(index);
      await rotate(account, row.rotations ?? 0);
      await row.attack(account, old[index] ?? new Map(), paid[index] ?? new Map());
      if (row.expect === 'stopped') await account.ring('P');
    }
    await delay(Math.max(0, startedAt + LIFETIME_MS + 3_000 - Date.now()));
    const second = await world.startWorker();
    await all('held', expiring);
    await delay(4_000);
    await second.stop();
    // What had expired counts again by this clock, but was sent.
    const account = world.account(RESTARTS.findIndex(({ clock }) => clock === 'expired, then set back'));
    expect((await account.payout('P')).held?.reason).toBe('expired');
    await account.revive('P');
    await world.startWorker({ clock: { ...systemClock, wallNow: () => Date.now() - 60_000 } }, {}, [account]);
    await world.untilIn('held', account, 'P');
  }, 120_000);

  it.each(RESTARTS.map((row, index) => ({ ...row, index })))('$name: $expect', async ({ index, expect: expected }) => {
    const { world } = used;
    const account = world.account(index);
    world.judge(account);
    expect(world.paidTo(account)).toHaveLength(1);
    const { state, held } = await account.payout('P');
    expect([state, held?.reason]).toEqual(expected === 'stopped' ? ['queued', undefined] : ['held', expected]);
    const isTold = (await account.tamperings()).some(({ payoutId }) => payoutId === 'P');
    expect(isTold).toBe(isTampering(expected));
  });
});

/** The file with the send is gone, and the wall clock is set back to when the intent still counted. */
describe('after retention', () => {
  const realNow = Date.now.bind(Date);
  let offsetMs = -9 * DAY_MS;
  beforeAll(() => {
    jest.spyOn(Date, 'now').mockImplementation(() => realNow() + offsetMs);
  });
  const used = ForgingWorld.use(1);
  afterAll(() => {
    jest.restoreAllMocks();
  });

  it('a paid payout whose journal file was removed, with the clock set back to when it counted: held', async () => {
    const { world } = used;
    const account = world.account(0);
    const path = join(world.journalDir, `${account.platformId}.journal`);
    const start = async () => world.startWorker({ journalDays: 1 });
    for (const [file, payoutId] of ['old', 'newer'].entries()) {
      await account.order(payoutId, '12.5');
      const worker = await start();
      await world.untilIn('completed', account, payoutId);
      await worker.stop();
      await rename(path, `${path}.${file + 1}`);
      const at = new Date(Date.now());
      await utimes(`${path}.${file + 1}`, at, at);
    }
    offsetMs = 0;
    const worker = await start();
    const isKept = async () => (await readdir(world.journalDir)).some((name) => name.endsWith('.1'));
    await until('the oldest file is gone', async () => !(await isKept()));
    await worker.stop();

    // The intent of `old` counts for another hour.
    offsetMs = (-8 - 1 / 24) * DAY_MS;
    await account.revive('old');
    await start();
    await world.untilIn('held', account, 'old');
    expect((await account.payout('old')).held?.reason).toBe('forgotten');
    expect(await account.tamperings()).toEqual([]);
    world.judge(account);
    expect(world.paidTo(account)).toHaveLength(2);
  }, 120_000);
});

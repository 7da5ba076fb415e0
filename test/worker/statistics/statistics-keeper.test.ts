import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { untilAborted } from '../../../src/base/clock.js';
import { removePayouts } from '../../../src/ledger/remove-payouts.js';
import { readStatistics } from '../../../src/ledger/reads/statistics.js';
import { silentLogger } from '../../../src/base/logger.js';
import { StatisticsKeeper } from '../../../src/worker/statistics/statistics-keeper.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { openTestAccount, type TestAccount } from '../../ledger/support/test-account.js';
import {
  Bustle,
  catchUp,
  compare,
  intercepted,
  keptBatches,
  losing,
  NEVER,
  openKeeper,
  realTime,
  sumPayouts,
} from './support/statistics-rig.js';

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

async function expectTrue(): Promise<void> {
  const sums = await sumPayouts(account);
  // Before the count from the beginning, which would put them right.
  await catchUp(openKeeper(realTime(account)));
  await expectBatches();
  const statistics = await compare(account);
  expect(statistics.told.sums).toEqual(sums);
  expect(statistics.told).toEqual(statistics.true);
  await expectBatches();
}

async function expectBatches(): Promise<void> {
  const some = (sums: object): object =>
    Object.fromEntries(Object.entries(sums).filter(([, list]) => (list as unknown[]).length > 0));
  for (const [batch, sums] of Object.entries(await keptBatches(account))) {
    expect(some(sums)).toEqual(some(await sumPayouts(account, batch)));
  }
}

describe('the statistics of an account', () => {
  it('are empty before there is anything to count', async () => {
    await catchUp(openKeeper(realTime(account)));
    expect(await readStatistics(realTime(account))).toMatchObject({
      asOf: undefined,
      minutes: [],
      lastSendAt: undefined,
    });
    await expectTrue();
  });

  it.each([1, 2, 3])(
    'are those of the ledger after any changes, also where each is counted at once (%d)',
    async (seed) => {
      const keeper = openKeeper(realTime(account));
      const bustle = new Bustle(account, seed);
      for (let round = 0; round < 40; round += 1) {
        await bustle.run(5);
        await catchUp(keeper);
      }
      expect(Object.keys(await keptBatches(account)).sort()).toEqual(['b', 'c']);
      await expectBatches();
      await expectTrue();
    },
  );

  it('have the gaps that this process measured, which a count from the beginning keeps', async () => {
    const connection = realTime(account);
    const gaps = [{ at: Date.now(), gapMs: 1_011, hadToWait: true }];
    const keeper = new StatisticsKeeper(connection, silentLogger, () => gaps.splice(0));
    await account.ledger.enqueue([aPayout('p')]);
    await catchUp(keeper);
    gaps.push({ at: Date.now(), gapMs: 2_500, hadToWait: false });
    await catchUp(keeper);
    const told = async () => (await readStatistics(connection)).minutes.map((minute) => minute.smallestGapMs);
    expect((await told()).filter((gapMs) => gapMs !== undefined)).toContain(1_011);
    // Events were lost: the keeper counts all of them again.
    await account.redis.del(account.connection.keys.events);
    await account.ledger.enqueue([aPayout('q')]);
    await catchUp(keeper);
    expect((await told()).filter((gapMs) => gapMs !== undefined)).toContain(1_011);
    expect((await readStatistics(connection)).pace).toEqual([1_011]);
  });

  it('are exact to the last digit', async () => {
    await catchUp(openKeeper(realTime(account)));
    const amounts = ['999999999999999999999999999999.000000000000000001', '0.000000000000000001', '0.1', '0.2'];
    await account.ledger.enqueue(amounts.map((amount, index) => aPayout(`p-${index}`, { amount })));
    const { told } = await compare(account);
    expect(told.sums.queued).toEqual([
      { paymentId: 7, count: 4, amount: '999999999999999999999999999999.300000000000000002' },
    ]);
  });

  it('are counted by two keepers at once, each event by one of them', async () => {
    const keepers = [openKeeper(realTime(account)), openKeeper(realTime(account))];
    const bustle = new Bustle(account, 4);
    for (let round = 0; round < 30; round += 1) {
      await Promise.all([bustle.run(10), ...keepers.map(async (keeper) => keeper.step(NEVER))]);
    }
    await expectTrue();
  });

  it('are not written by a keeper that is late', async () => {
    await account.ledger.enqueue([aPayout('p'), aPayout('q')]);
    const gate = { held: Promise.resolve() };
    const slow = openKeeper(
      intercepted(realTime(account), async (work, name) => {
        if (name === 'write-statistics') await gate.held;
        return work();
      }),
    );
    await catchUp(slow);
    await account.ledger.enqueue([aPayout('r')]);
    const hold = new AbortController();
    gate.held = untilAborted(hold.signal);
    const late = slow.step(NEVER);
    await delay(50);
    await account.ledger.change({ payoutId: 'p', from: 'queued', to: 'sending' });
    await account.ledger.change({ payoutId: 'p', from: 'sending', to: 'rejected' });
    await catchUp(openKeeper(realTime(account)));
    hold.abort();
    await late;
    await expectTrue();
  });

  it.each(['before', 'after'] as const)(
    'count nothing twice and lose nothing when the keeper ends %s any of its steps',
    async (side) => {
      const bustle = new Bustle(account, 5);
      await bustle.run(20);
      await catchUp(openKeeper(realTime(account)));
      for (let at = 1, reached = true; reached; at += 1) {
        await bustle.run(6);
        const lost = losing(realTime(account), at, side);
        const keeper = openKeeper(lost.connection);
        await catchUp(keeper).catch(() => undefined);
        reached = lost.steps() >= at;
        await catchUp(openKeeper(realTime(account)));
        expect((await readStatistics(realTime(account))).sums).toEqual(await sumPayouts(account));
      }
      await expectTrue();
    },
  );

  it.each(['before', 'after'] as const)(
    'are counted from the beginning when the first count ended %s any of its steps',
    async (side) => {
      const bustle = new Bustle(account, 6);
      for (let at = 1, reached = true; reached; at += 1) {
        await bustle.run(6);
        await account.redis.del(account.connection.keys.statistics);
        const lost = losing(realTime(account), at, side);
        await catchUp(openKeeper(lost.connection)).catch(() => undefined);
        reached = lost.steps() >= at;
        await catchUp(openKeeper(realTime(account)));
        expect((await readStatistics(realTime(account))).sums).toEqual(await sumPayouts(account));
      }
    },
  );

  it('continue where the keeper lost its connection for a while', async () => {
    const bustle = new Bustle(account, 7);
    await bustle.run(30);
    const flaky = losing(realTime(account), 4, 'after');
    const keeper = openKeeper(flaky.connection);
    await expect(catchUp(keeper)).rejects.toThrow('lost');
    await expectTrue();
  });

  it('are right after a first count beside which payouts change', async () => {
    const before = new Bustle(account, 8);
    await before.run(300);
    for (let round = 0; round < 3; round += 1) {
      await account.redis.del(account.connection.keys.statistics);
      await Promise.all([
        catchUp(openKeeper(realTime(account))),
        before.run(60),
        new Bustle(account, 9, `n${round}`).run(60),
      ]);
    }
    await expectTrue();
  });
});

describe('when Redis does not have what was counted', () => {
  it('the events behind the position were trimmed: the payouts are counted again, the minutes stay', async () => {
    const bustle = new Bustle(account, 10);
    await bustle.run(50);
    const keeper = openKeeper(realTime(account));
    await catchUp(keeper);
    const { minutes } = await readStatistics(realTime(account));
    await bustle.run(50);
    await account.redis.xtrim(account.connection.keys.events, 'MAXLEN', 5);
    await catchUp(keeper);
    const statistics = await readStatistics(realTime(account));
    expect(statistics.sums).toEqual(await sumPayouts(account));
    expect(statistics.minutes.map(({ at }) => at)).toEqual(expect.arrayContaining(minutes.map(({ at }) => at)));
  });

  it('an event tells of a payout that retention removed: the payouts are counted again', async () => {
    const keeper = openKeeper(realTime(account));
    await catchUp(keeper);
    await account.ledger.enqueue([aPayout('gone'), aPayout('p')]);
    await catchUp(keeper);
    await account.ledger.change({ payoutId: 'gone', from: 'queued', to: 'cancelled' });
    await removePayouts(account.connection, 'cancelled', account.clock.wallNow() + 1, 10);
    await account.redis.del(account.connection.keys.payout('gone'));
    const other = openKeeper(realTime(account));
    await catchUp(other);
    await other.step(NEVER);
    await catchUp(other);
    await expectTrue();
  });

  it('it came back older: position and counters came back together', async () => {
    const bustle = new Bustle(account, 11);
    await bustle.run(40);
    const keeper = openKeeper(realTime(account));
    await catchUp(keeper);
    const copy = await account.dump();
    await bustle.run(40);
    await catchUp(keeper);
    await account.redis.del(...Object.keys(await account.dump()));
    for (const [key, content] of Object.entries(copy)) await account.redis.restore(key, 0, Buffer.from(content, 'hex'));
    await new Bustle(account, 12, 'later').run(40);
    await catchUp(keeper);
    await catchUp(keeper);
    await expectTrue();
  });

  it('it was flushed', async () => {
    const keeper = openKeeper(realTime(account));
    await new Bustle(account, 13).run(40);
    await catchUp(keeper);
    await account.redis.del(...Object.keys(await account.dump()));
    await new Bustle(account, 14).run(20);
    await catchUp(keeper);
    await catchUp(keeper);
    await expectTrue();
  });

  it('they are of another version', async () => {
    const keeper = openKeeper(realTime(account));
    await new Bustle(account, 15).run(40);
    await catchUp(keeper);
    await account.redis.hset(account.connection.keys.statistics, 'version', '99', 'sums', '{}', 'other', '1');
    await expectTrue();
  });
});

describe('payouts that retention removes', () => {
  it('leave the sums, also while they are counted for the first time', async () => {
    // With this seed none of the removed ones was rejected today: a count from the beginning could not sum it any more.
    await new Bustle(account, 17).run(200);
    const keeper = openKeeper(realTime(account));
    const remove = async (): Promise<number> =>
      keeper.countRemoval('cancelled', async () =>
        removePayouts(account.connection, 'cancelled', account.clock.wallNow() + 1, 2),
      );
    const removing = delay(60).then(remove);
    await catchUp(keeper);
    expect(await removing).toBe(2);
    expect(await remove()).toBe(2);
    expect((await readStatistics(realTime(account))).sums).toEqual(await sumPayouts(account));
    await expectTrue();
  });
});

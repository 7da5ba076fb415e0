import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readStatistics, saveStatistics } from '../../../src/ledger/reads/statistics.js';
import { toFields } from '../../../src/worker/statistics/counters.js';
import { recount } from '../../../src/worker/statistics/recount.js';
import { openTestAccount, type TestAccount } from '../../ledger/support/test-account.js';
import { Bustle, catchUp, intercepted, NEVER, openKeeper, realTime, sumPayouts } from './support/statistics-rig.js';

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

describe('a count of the whole ledger', () => {
  it.each([1, 2, 3, 4, 5])('fits at once although payouts change between any two of its steps (%d)', async (seed) => {
    const bustle = new Bustle(account, seed);
    bustle.adopts = false;
    await bustle.run(200);
    const moving = intercepted(realTime(account), async (work) => {
      await bustle.run(10);
      return work();
    });
    const counters = await recount(moving, undefined, true, NEVER);
    if (counters === undefined) throw new Error('it did not fit');
    await saveStatistics(realTime(account), { revision: '', statistics: {}, batches: {} }, toFields(counters));
    await catchUp(openKeeper(realTime(account)));
    expect((await readStatistics(realTime(account))).sums).toEqual(await sumPayouts(account));
  });

  it('does not fit an index that names a payout without a record, and need not where that is allowed', async () => {
    await new Bustle(account, 6).run(30);
    await account.redis.zadd(account.connection.keys.state('queued'), 1.5, 'nobody');
    expect(await recount(realTime(account), undefined, true, NEVER)).toBeUndefined();
    expect(await recount(realTime(account), undefined, false, NEVER)).toBeDefined();
  });

  it('ends when it is stopped', async () => {
    await new Bustle(account, 7).run(30);
    const stop = new AbortController();
    stop.abort();
    expect(await recount(realTime(account), undefined, true, stop.signal)).toBeUndefined();
  });
});

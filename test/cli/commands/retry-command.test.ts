import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';

let account: AccountCli;

beforeEach(() => {
  account = openAccountCli();
});

afterEach(async () => {
  await account.close();
});

describe('payouts retry', () => {
  it('puts a rejected payout back with a job of its own', async () => {
    await account.enqueue('p-1');
    await account.force('p-1', 'rejected');
    const result = await account.runProcess('retry', 'p-1', '--reason', 'topped up', '--by', 'ann', '--json');
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(result.stdout)).toMatchObject({ payoutId: 'p-1', state: 'queued', requeueCount: 1 });
    const { redis, keys } = account.ledger.connection;
    expect(await redis.lrange(`${keys.prefix}:withdraw:wait`, 0, -1)).toEqual(['p-1~1', 'p-1~0']);
    expect(await redis.zcard(keys.outbox)).toBe(0);
  });

  it('refuses what was not rejected, and wants a reason', async () => {
    await account.enqueue('p-1');
    await account.force('p-1', 'unknown');
    const refused = await account.run('retry', 'p-1', '--reason', 'again');
    expect(refused.code).toBe(4);
    expect(refused.stderr).toMatch(/Cannot move payout p-1 from unknown to queued: that needs rejected\. Allowed/);
    expect(await account.run('retry', 'p-1')).toMatchObject({ code: 2 });
    expect((await account.ledger.get('p-1'))?.state).toBe('unknown');
  });
});

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { begin, HOLD, takeLease } from './contract/ledger-rig.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

async function enqueueWith(payoutId: string, attempt: number): Promise<void> {
  await account.ledger.enqueue([aPayout(payoutId)]);
  await account.redis.hset(account.connection.keys.payout(payoutId), 'attempt', attempt);
}

it('a number of attempts that no version writes holds up nothing, begins nothing, and can be held or cancelled', async () => {
  const { ledger, sender } = account;
  await enqueueWith('held', 10 ** 15);
  expect(await sender.holdPayout('held', 10 ** 15, HOLD)).toBe(true);
  await enqueueWith('cancelled', 10 ** 15);
  const lease = await takeLease(sender, 'a');
  await expect(begin(sender, lease, 'cancelled')).rejects.toThrow('is beyond 100000');
  await ledger.change({ payoutId: 'cancelled', from: 'queued', to: 'cancelled' });
  expect((await ledger.get('cancelled'))?.state).toBe('cancelled');
});

it('a payout that was put back ten thousand times can still be sent', async () => {
  await enqueueWith('p', 10_000);
  const { sender } = account;
  const lease = await takeLease(sender, 'a');
  expect(await begin(sender, lease, 'p')).toMatchObject({ attempt: 10_001 });
});

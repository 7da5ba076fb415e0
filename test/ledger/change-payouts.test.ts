import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ConflictError, NotFoundError } from '../../src/base/errors.js';
import { readActivity } from '../../src/ledger/reads/activity.js';
import { changePayouts } from '../../src/ledger/payout-ledger.js';
import { begin, NO_BREAKER, takeLease } from './contract/ledger-rig.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

const ANN = { by: 'ann', reason: 'a wrong\nfile' };

const stateOf = async (payoutId: string): Promise<string | undefined> => (await account.ledger.get(payoutId))?.state;

/** Payouts that the gateway rejected at their first attempt. */
async function reject(...payoutIds: string[]): Promise<void> {
  const { ledger, sender } = account;
  await ledger.enqueue(payoutIds.map((payoutId) => aPayout(payoutId)));
  const lease = await takeLease(sender, 'one');
  for (const payoutId of payoutIds) {
    const rejected = { kind: 'rejected', message: 'no funds' } as const;
    await sender.finishSend(await begin(sender, lease, payoutId), rejected, NO_BREAKER, 0);
  }
}

describe('a decision about many payouts', () => {
  it('moves those that it was made about, and says of each other why it was left', async () => {
    await reject('rejected', 'sent-again');
    await account.ledger.enqueue([aPayout('queued')]);
    const payouts = [
      { payoutId: 'queued', attempt: 0 },
      { payoutId: 'nobody' },
      { payoutId: 'sent-again', attempt: 7 },
      { payoutId: 'rejected', attempt: 1 },
    ];
    const results = await changePayouts(account.ledger, { from: 'rejected', to: 'queued', payouts }, ANN);
    expect(results).toEqual([
      expect.any(ConflictError),
      expect.any(NotFoundError),
      expect.any(ConflictError),
      undefined,
    ]);
    expect(await stateOf('rejected')).toBe('queued');
    expect(await stateOf('sent-again')).toBe('rejected');
    expect(await account.ledger.get('queued')).toMatchObject({ history: [{ to: 'queued' }] });
  });

  it('is in the history of each payout, and in the outbox where it is to be sent', async () => {
    await reject('p', 'q');
    const payouts = [{ payoutId: 'p' }, { payoutId: 'q' }];
    await changePayouts(account.ledger, { from: 'rejected', to: 'queued', payouts }, ANN);
    for (const payoutId of ['p', 'q']) {
      const payout = await account.ledger.get(payoutId);
      expect(payout).toMatchObject({ requeueCount: 1 });
      expect(payout?.history.at(-1)).toMatchObject({ to: 'queued', by: 'ann', reason: 'a wrong file' });
    }
    expect(await account.redis.zcard(account.connection.keys.outbox)).toBeGreaterThanOrEqual(2);
  });

  it('that moves nothing is no act', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    const payouts = [{ payoutId: 'p' }];
    await changePayouts(account.ledger, { from: 'rejected', to: 'cancelled', payouts }, ANN);
    expect(await readActivity(account.connection, { limit: 9 })).toMatchObject({ activities: [] });
  });

  it('changes nothing where it names a payout twice, or a transition that does not exist', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    const before = await account.dump();
    const twice = [{ payoutId: 'p' }, { payoutId: 'p' }];
    const { ledger } = account;
    await expect(changePayouts(ledger, { from: 'queued', to: 'cancelled', payouts: twice }, ANN)).rejects.toThrow(
      'p is named twice',
    );
    await expect(
      changePayouts(ledger, { from: 'queued', to: 'completed', payouts: [{ payoutId: 'p' }] }, ANN),
    ).rejects.toThrow('no transition from queued to completed');
    expect(await account.dump()).toEqual(before);
  });
});

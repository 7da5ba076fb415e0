import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { RedisSenderLedger } from '../../src/ledger/redis-sender-ledger.js';
import { begin, takeLease } from './contract/ledger-rig.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
let sender: RedisSenderLedger;
beforeEach(() => {
  account = openTestAccount();
  sender = new RedisSenderLedger(account.connection, 'reply');
});
afterEach(async () => account.close());

async function readEvents(): Promise<Record<string, string>[]> {
  const entries = await account.redis.xrange(account.connection.keys.events, '-', '+');
  return entries.map(([, fields]) => {
    const pairs = fields.flatMap((field, index) => (index % 2 === 0 ? [[field, fields[index + 1] ?? '']] : []));
    return Object.fromEntries(pairs) as Record<string, string>;
  });
}

const AT = String(Date.parse('2030-01-01T00:00:00Z'));
const STATE = { type: 'state', payoutId: 'p', at: AT, by: '', reason: '' };

describe('the event stream', () => {
  it('tells every change of a payout in order, in the same step', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    const lease = await takeLease(sender, 'one');
    await sender.revertSend(await begin(sender, lease, 'p'), 'no connection');
    const rule = { maxRejectionsInARow: 1, maxUnknownsInARow: 9 };
    await sender.finishSend(await begin(sender, lease, 'p'), { kind: 'rejected', message: 'no funds' }, rule);
    await account.ledger.change({ payoutId: 'p', from: 'rejected', to: 'queued', by: 'ann', reason: 'again' });
    await account.ledger.resume('ann', 'topped up');
    expect(await readEvents()).toEqual([
      { ...STATE, from: '', to: 'queued' },
      { ...STATE, from: 'queued', to: 'sending' },
      { ...STATE, from: 'sending', to: 'queued', reason: 'no connection' },
      { ...STATE, from: 'queued', to: 'sending' },
      { ...STATE, from: 'sending', to: 'rejected', reason: 'no funds' },
      {
        ...STATE,
        type: 'paused',
        payoutId: '',
        from: '',
        to: '',
        by: 'worker',
        reason: '1 rejections in a row, the last: no funds',
      },
      { ...STATE, from: 'rejected', to: 'queued', by: 'ann', reason: 'again' },
      { ...STATE, type: 'resumed', payoutId: '', from: '', to: '', by: 'ann', reason: 'topped up' },
    ]);
  });

  it('tells of a recovery and of an adoption', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    await begin(sender, await takeLease(sender, 'one'), 'p');
    await sender.recoverSends(await takeLease(sender, 'two'), 'the sender ended');
    await account.connection.run('adopt-send', [AT, 'ann', 'forgotten', 'q', 1, 1, 'paymentId', 7]);
    await account.connection.run('adopt-ledger', [AT, 'ann', 'an old copy', 1, 1]);
    expect((await readEvents()).slice(2)).toEqual([
      { ...STATE, from: 'sending', to: 'unknown', reason: 'the sender ended' },
      { ...STATE, payoutId: 'q', from: '', to: 'unknown', by: 'ann', reason: 'forgotten' },
      { ...STATE, type: 'ledger_adopted', payoutId: '', from: '', to: '', by: 'ann', reason: 'an old copy' },
    ]);
  });

  it('says nothing when nothing was changed', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    await account.ledger.enqueue([aPayout('p'), aPayout('p', { amount: '1' })]);
    await account.ledger.change({ payoutId: 'p', from: 'unknown', to: 'queued' }).catch(() => undefined);
    await account.ledger.resume('ann', 'r');
    expect(await readEvents()).toHaveLength(1);
  });
});

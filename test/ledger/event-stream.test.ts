import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { adoptLedger, adoptSends } from '../../src/ledger/adopt-ledger.js';
import { begin, NO_BREAKER, OBJECTION, takeLease } from './contract/ledger-rig.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
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
const NO_JOURNALS = { read: [], givenUp: [] };
const STATE = { type: 'state', payoutId: 'p', at: AT, by: '', reason: '' };

describe('the event stream', () => {
  it('reports every change of a payout in order, in the same step', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    const lease = await takeLease(account.sender, 'one');
    await account.sender.revertSend(await begin(account.sender, lease, 'p'), 'no connection');
    const rule = { maxRejectionsInARow: 1, maxUnknownsInARow: 9 };
    await account.sender.finishSend(
      await begin(account.sender, lease, 'p'),
      { kind: 'rejected', message: 'no funds' },
      rule,
      0,
    );
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

  it('reports a recovery and an adoption', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    const left = await begin(account.sender, await takeLease(account.sender, 'one'), 'p');
    await account.sender.markSendsUnknown(await takeLease(account.sender, 'two'), [left], 'the sender ended', 0);
    const { connection } = account;
    const request = { paymentId: 7, amount: '1', addressTo: 'w' };
    const forgotten = { payoutId: 'q', attempt: 1, token: 't', request };
    await adoptSends(connection, [forgotten], { by: 'ann', reason: 'forgotten', doubtMs: 0 });
    await adoptLedger(connection, { epoch: 1, sendCount: 1 }, 'adopted', NO_JOURNALS, {
      by: 'ann',
      reason: 'an old copy',
    });
    expect((await readEvents()).slice(2)).toEqual([
      { ...STATE, from: 'sending', to: 'unknown', reason: 'the sender ended' },
      { ...STATE, payoutId: 'q', from: '', to: 'unknown', by: 'ann', reason: 'forgotten' },
      { ...STATE, type: 'ledger_adopted', payoutId: '', from: '', to: '', by: 'ann', reason: 'an old copy' },
    ]);
  });

  it('reports an objection once, with its journal, and again when its reason is another', async () => {
    await account.sender.object(OBJECTION);
    await account.sender.object({ ...OBJECTION, at: OBJECTION.at + 5 });
    await account.sender.object({ ...OBJECTION, reason: 'it forgot more', at: OBJECTION.at + 9 });
    const told = { ...STATE, type: 'objection', payoutId: '', from: '', to: '', by: 'j-two' };
    expect(await readEvents()).toEqual([
      { ...told, reason: 'it forgot a send' },
      { ...told, reason: 'it forgot more', at: String(OBJECTION.at + 9) },
    ]);
  });

  it('reports a payment that was proved too late, once', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    const attempt = await begin(account.sender, await takeLease(account.sender, 'one'), 'p');
    await account.sender.finishSend(attempt, { kind: 'unknown', reason: 'silence' }, NO_BREAKER, 0);
    await account.ledger.change({ payoutId: 'p', from: 'unknown', to: 'cancelled', by: 'ann', reason: 'settled' });
    for (let times = 0; times < 2; times += 1) {
      await account.sender.finishSend(attempt, { kind: 'accepted', txhash: 'h' }, NO_BREAKER, 0);
    }
    expect((await readEvents()).slice(4)).toEqual([
      { ...STATE, type: 'late_payment', from: '', to: 'cancelled', reason: 'paid as h' },
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

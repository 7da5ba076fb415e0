import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ConflictError, NotFoundError } from '../../src/base/errors.js';
import { readActivity } from '../../src/ledger/reads/activity.js';
import { begin, NO_BREAKER, takeLease } from './contract/ledger-rig.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

const ANN = { by: 'ann', reason: 'a wrong\nfile' };

const DECIDED = { isOneAct: true, ...ANN };

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
    const results = await account.ledger.changeMany({
      from: 'rejected',
      to: 'queued',
      payouts,
      ...DECIDED,
    });
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
    await account.ledger.changeMany({ from: 'rejected', to: 'queued', payouts, ...DECIDED });
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
    await account.ledger.changeMany({ from: 'rejected', to: 'cancelled', payouts, ...DECIDED });
    expect(await readActivity(account.connection, 9)).toMatchObject({ activities: [] });
  });

  it('changes nothing where it names a payout twice, or a transition that does not exist', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    const before = await account.dump();
    const twice = [{ payoutId: 'p' }, { payoutId: 'p' }];
    const { ledger } = account;
    await expect(ledger.changeMany({ from: 'queued', to: 'cancelled', payouts: twice, ...DECIDED })).rejects.toThrow(
      'p is named twice',
    );
    await expect(
      ledger.changeMany({ from: 'queued', to: 'completed', payouts: [{ payoutId: 'p' }], ...DECIDED }),
    ).rejects.toThrow('no transition from queued to completed');
    expect(await account.dump()).toEqual(before);
  });

  it('changes nothing more when it is repeated, and is no second act', async () => {
    await reject('p', 'q');
    const change = { from: 'rejected', to: 'cancelled', payouts: [{ payoutId: 'p' }, { payoutId: 'q' }] } as const;
    expect(await account.ledger.changeMany({ ...change, ...DECIDED })).toEqual([undefined, undefined]);
    const before = await account.dump();
    expect(await account.ledger.changeMany({ ...change, ...DECIDED })).toEqual([undefined, undefined]);
    expect(await account.dump()).toEqual(before);
    const { activities } = await readActivity(account.connection, 9);
    expect(activities).toMatchObject([{ payoutId: undefined, count: 2 }]);
  });

  it('queues again none whose request may be on its way, or that was paid late', async () => {
    const { ledger, sender, redis, connection } = account;
    await ledger.enqueue([aPayout('doubted')]);
    const attempt = await begin(sender, await takeLease(sender, 'one'), 'doubted');
    await sender.finishSend(attempt, { kind: 'unknown', reason: 'timeout' }, NO_BREAKER, 60_000);
    await enter('unknown', 'late', 'p');
    await redis.hset(connection.keys.payout('late'), 'lateTxhash', 'hash-1');
    const payouts = ['doubted', 'late', 'p'].map((payoutId) => ({ payoutId }));
    const errors = await ledger.changeMany({ from: 'unknown', to: 'queued', payouts, ...DECIDED });
    expect(errors.map((error) => error?.message)).toEqual([
      expect.stringMatching(/^The request of payout doubted may still be on its way to the gateway for (59|60) s/),
      expect.stringMatching(/^Payout late was paid as hash-1/),
      undefined,
    ]);
    // Not to be sent again is possible at any time.
    const left = payouts.slice(0, 2);
    expect(await ledger.changeMany({ from: 'unknown', to: 'cancelled', payouts: left, ...DECIDED })).toEqual([
      undefined,
      undefined,
    ]);
  });

  it('is an act for each payout if it is not one act', async () => {
    await account.ledger.enqueue([aPayout('p'), aPayout('q')]);
    const payouts = [{ payoutId: 'p' }, { payoutId: 'q' }];
    await account.ledger.changeMany({ from: 'queued', to: 'cancelled', payouts, isOneAct: false, ...ANN });
    expect(await readActivity(account.connection, 9)).toMatchObject({
      activities: [
        { payoutId: 'q', count: 1 },
        { payoutId: 'p', count: 1 },
      ],
    });
  });

  it('gives each payout what is its own', async () => {
    await enter('in_progress', 'p', 'q', 'r');
    const payouts = [
      { payoutId: 'p', fee: '0.1', message: 'two\nlines' },
      { payoutId: 'q' },
      { payoutId: 'r', fee: '0.3' },
    ];
    await account.ledger.changeMany({ from: 'in_progress', to: 'completed', payouts, ...DECIDED });
    expect(await account.ledger.get('p')).toMatchObject({ state: 'completed', fee: '0.1', message: 'two lines' });
    expect(await account.ledger.get('r')).toMatchObject({ state: 'completed', fee: '0.3' });
    const plain = await account.ledger.get('q');
    expect(plain?.state).toBe('completed');
    expect(plain).not.toHaveProperty('fee');
  });
});

/** Brings payouts into a state as if they had been sent. */
async function enter(state: 'unknown' | 'in_progress', ...payoutIds: string[]): Promise<void> {
  await account.ledger.enqueue(payoutIds.map((payoutId) => aPayout(payoutId)));
  for (const payoutId of payoutIds) {
    await account.ledger.change({ payoutId, from: 'queued', to: 'sending' });
    await account.ledger.change({ payoutId, from: 'sending', to: state });
  }
}

describe('the transactions of many payouts', () => {
  const HEXADECIMAL = 'ab'.repeat(32);

  const follow = async (...payouts: { payoutId: string; txhash: string }[]): Promise<(Error | undefined)[]> =>
    account.ledger.changeMany({ from: 'unknown', to: 'in_progress', payouts, ...DECIDED });

  it('are found by them, whether their hash has one spelling or several', async () => {
    await enter('unknown', 'p', 'q', 'r');
    const payouts = [
      { payoutId: 'p', txhash: HEXADECIMAL },
      { payoutId: 'q', txhash: 'h' },
      { payoutId: 'r', txhash: 'i' },
    ];
    expect(await follow(...payouts)).toEqual([undefined, undefined, undefined]);
    for (const { payoutId, txhash } of payouts) {
      expect(await account.ledger.findByTxhash(txhash)).toBe(payoutId);
      expect(await account.ledger.get(payoutId)).toMatchObject({ txhash, vouchedTxhash: txhash });
    }
  });

  it('belong to one payout each: the second of a call is refused, in any spelling', async () => {
    await enter('unknown', 'p', 'q');
    const [first, second] = await follow(
      { payoutId: 'p', txhash: HEXADECIMAL },
      { payoutId: 'q', txhash: `0x${HEXADECIMAL.toUpperCase()}` },
    );
    expect(first).toBeUndefined();
    expect(second?.message).toMatch(/already belongs to payout p$/);
    expect(await stateOf('q')).toBe('unknown');
    expect(await account.ledger.findByTxhash(HEXADECIMAL)).toBe('p');
  });

  it('do not belong to a payout that is refused', async () => {
    await enter('unknown', 'q');
    await account.ledger.enqueue([aPayout('p')]);
    const [first, second] = await follow({ payoutId: 'p', txhash: 'h' }, { payoutId: 'q', txhash: 'h' });
    expect([first, second]).toEqual([expect.any(ConflictError), undefined]);
    expect(await account.ledger.findByTxhash('h')).toBe('q');
  });

  it('that prove wrong are free again, unless they are of another payout', async () => {
    await enter('unknown', 'p', 'q');
    await follow({ payoutId: 'p', txhash: 'h' }, { payoutId: 'q', txhash: 'i' });
    const proveWrong = async (payoutId: string): Promise<unknown> =>
      account.ledger.changeMany({
        from: 'in_progress',
        to: 'unknown',
        payouts: [{ payoutId, txhash: 'h' }],
        isOneAct: false,
      });
    expect(await proveWrong('q')).toEqual([expect.any(ConflictError)]);
    // As an earlier version may have left it.
    await account.redis.hset(account.connection.keys.payout('q'), 'txhash', 'h');
    expect(await proveWrong('q')).toEqual([undefined]);
    expect(await account.ledger.findByTxhash('h')).toBe('p');
    expect(await proveWrong('p')).toEqual([undefined]);
    expect([await stateOf('p'), await stateOf('q')]).toEqual(['unknown', 'unknown']);
    await enter('unknown', 'r', 's');
    const [freed, kept] = await follow({ payoutId: 'r', txhash: 'h' }, { payoutId: 's', txhash: 'i' });
    expect(freed).toBeUndefined();
    expect(kept?.message).toMatch(/already belongs to payout q$/);
  });
});

describe('the signed act', () => {
  const requeue = async (...payouts: { payoutId: string; act?: string }[]): Promise<(Error | undefined)[]> =>
    account.ledger.changeMany({ from: 'rejected', to: 'queued', payouts, ...DECIDED });

  const actOf = async (payoutId: string): Promise<string | undefined> => (await account.ledger.get(payoutId))?.act;

  it('is kept with each payout that has one', async () => {
    await reject('p', 'q', 'r');
    await requeue({ payoutId: 'p', act: '{"of":"p"}' }, { payoutId: 'q' }, { payoutId: 'r', act: '{"of":"r"}' });
    expect([await actOf('p'), await actOf('q'), await actOf('r')]).toEqual(['{"of":"p"}', undefined, '{"of":"r"}']);
  });

  it('is kept if only the repeated call brings it; a call without one takes none away', async () => {
    await reject('p', 'q');
    await requeue({ payoutId: 'p' }, { payoutId: 'q', act: '{"of":"q"}' });
    const before = await account.ledger.get('p');
    expect(await requeue({ payoutId: 'p', act: '{"of":"p"}' }, { payoutId: 'q' })).toEqual([undefined, undefined]);
    expect([await actOf('p'), await actOf('q')]).toEqual(['{"of":"p"}', '{"of":"q"}']);
    expect((await account.ledger.get('p'))?.history).toEqual(before?.history);
  });

  it('is not kept with a payout that someone else moved', async () => {
    await reject('p');
    await account.ledger.change({ payoutId: 'p', from: 'rejected', to: 'queued', by: 'bob', reason: 'again' });
    expect(await requeue({ payoutId: 'p', act: '{"of":"p"}' })).toEqual([expect.any(ConflictError)]);
    expect(await actOf('p')).toBeUndefined();
  });
});

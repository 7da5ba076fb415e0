import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ConflictError, NotFoundError } from '../../src/base/errors.js';
import { readActivity } from '../../src/ledger/reads/activity.js';
import { changeManyPayouts } from '../../src/operator/change-payouts.js';
import { type LedgerAccess, openLedger } from '../../src/queues/open-ledger.js';
import { testRedisUrl } from '../support/account.js';
import { ANN, openOperatorRig, type OperatorRig } from './support/operator-rig.js';

let rig: OperatorRig;
let access: LedgerAccess;
beforeEach(async () => {
  rig = await openOperatorRig();
  access = openLedger({ platformId: rig.account.platformId, redisUrl: testRedisUrl() });
});
afterEach(async () => {
  await access.close();
  await rig.close();
});

const activities = async (): Promise<unknown> =>
  (await readActivity(rig.account.connection, 9)).activities.map(({ payoutId, count }) => [payoutId, count]);

describe('a decision about many payouts', () => {
  it('is one act, and gives each that it moves its job', async () => {
    for (const payoutId of ['p', 'q']) await rig.bring(payoutId, 'rejected');
    await rig.bring('r', 'unknown');
    const payouts = ['p', 'r', 'nobody', 'q'].map((payoutId) => ({ payoutId }));
    const errors = await changeManyPayouts(access, { from: 'rejected', to: 'queued', payouts }, ANN);
    expect(errors).toEqual([undefined, expect.any(ConflictError), expect.any(NotFoundError), undefined]);
    expect((await rig.withdrawJobs()).sort()).toEqual(['p~1', 'q~1']);
    expect(await rig.outbox()).toEqual([]);
    expect(await activities()).toEqual([[undefined, 2]]);
  });

  it('is an act of its own about one', async () => {
    for (const payoutId of ['p', 'q']) await rig.bring(payoutId, 'rejected');
    for (const payoutId of ['p', 'q']) await rig.operator.retry(payoutId, ANN);
    expect(await activities()).toEqual([
      ['q', 1],
      ['p', 1],
    ]);
  });

  it('follows a transaction where it says that they were sent, and else takes none', async () => {
    for (const payoutId of ['p', 'q']) await rig.bring(payoutId, 'unknown');
    const decide = async (to: 'in_progress' | 'cancelled', payoutId: string): Promise<unknown> =>
      changeManyPayouts(access, { from: 'unknown', to, payouts: [{ payoutId, txhash: `hash-${payoutId}` }] }, ANN);
    expect([await decide('in_progress', 'p'), await decide('cancelled', 'q')]).toEqual([[undefined], [undefined]]);
    expect(await rig.account.ledger.findByTxhash('hash-p')).toBe('p');
    expect(await rig.statusJobs()).toHaveLength(1);
    expect(await rig.account.ledger.findByTxhash('hash-q')).toBeUndefined();
    expect(await rig.account.ledger.get('q')).not.toHaveProperty('txhash');
  });

  it('that names one twice changes none', async () => {
    for (const payoutId of ['p', 'q']) await rig.bring(payoutId, 'rejected');
    const payouts = ['q', 'p', 'p'].map((payoutId) => ({ payoutId }));
    const change = changeManyPayouts(access, { from: 'rejected', to: 'queued', payouts }, ANN);
    await expect(change).rejects.toThrow('p is named twice');
    expect((await rig.account.ledger.get('q'))?.state).toBe('rejected');
    expect(await rig.withdrawJobs()).toEqual([]);
    expect(await activities()).toEqual([]);
  });
});

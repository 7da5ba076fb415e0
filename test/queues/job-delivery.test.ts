import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { JobDelivery } from '../../src/queues/job-delivery.js';
import { PayoutQueues } from '../../src/queues/payout-queues.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { openTestAccount, type TestAccount } from '../ledger/support/test-account.js';

let account: TestAccount;
let queues: PayoutQueues;
let delivery: JobDelivery;
beforeEach(() => {
  account = openTestAccount();
  const { redis, connection, clock, ledger } = account;
  queues = new PayoutQueues(redis, { prefix: connection.keys.prefix, wallNow: () => clock.wallNow() });
  delivery = new JobDelivery({ ledger, queues, firstPollAfterMs: 5_000 });
});
afterEach(async () => {
  await queues.close();
  await account.close();
});

const soon = (): number => account.clock.wallNow() + 1;
const withdrawJobs = async () => (await queues.withdraw.getWaiting()).map((job) => job.id).sort();
const statusJobs = async () => (await queues.transactionstatus.getDelayed()).map((job) => job.id).sort();

async function makeInProgress(payoutId: string): Promise<void> {
  await account.ledger.change({ payoutId, from: 'queued', to: 'sending' });
  await account.ledger.change({ payoutId, from: 'sending', to: 'in_progress', txhash: `hash-${payoutId}` });
}

describe('deliverOutbox', () => {
  it('adds the jobs that a crash left out, and then has nothing to do', async () => {
    await account.ledger.enqueue([aPayout('p'), aPayout('q')]);
    await makeInProgress('q');
    expect(await delivery.deliverOutbox(soon())).toBe(3);
    expect(await withdrawJobs()).toEqual(['p~0']);
    expect(await statusJobs()).toEqual(['q~0']);
    expect(await delivery.deliverOutbox(soon())).toBe(0);
  });

  it('leaves the newest changes to whoever is adding their job', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    expect(await delivery.deliverOutbox(account.clock.wallNow())).toBe(0);
    expect(await withdrawJobs()).toEqual([]);
  });

  it('adds no job for a payout that has moved on', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    await account.ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled' });
    expect(await delivery.deliverOutbox(soon())).toBe(1);
    expect(await withdrawJobs()).toEqual([]);
    expect(await delivery.deliverOutbox(soon())).toBe(0);
  });

  it('gives a payout that a person put back a new job beside the old one', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    await delivery.deliverOutbox(soon());
    await account.ledger.change({ payoutId: 'p', from: 'queued', to: 'sending' });
    await account.ledger.change({ payoutId: 'p', from: 'sending', to: 'rejected' });
    await account.ledger.change({ payoutId: 'p', from: 'rejected', to: 'queued' });
    await delivery.deliverOutbox(soon());
    expect(await withdrawJobs()).toEqual(['p~0', 'p~1']);
  });
});

describe('checkAll', () => {
  it('finds every payout of the state whose job is gone, beyond one page', async () => {
    const names = Array.from({ length: 1_200 }, (_, index) => `p${index}`);
    await account.ledger.enqueue(names.map((name) => aPayout(name)));
    await queues.addWithdrawJobs(names.slice(0, 1_190).map((name) => aPayout(name)));
    expect(await delivery.checkAll('queued', new AbortController().signal)).toBe(10);
    expect(await queues.withdraw.count()).toBe(1_200);
    expect(await delivery.checkAll('queued', new AbortController().signal)).toBe(0);
  });

  it('rings again for a payout whose job ended without it having moved on', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    await queues.addWithdrawJobs([aPayout('p')]);
    // As BullMQ leaves a job behind that stalled too often.
    const job = await queues.withdraw.getJob('p~0');
    await account.redis.hset(queues.withdraw.toKey('p~0'), 'finishedOn', String(Date.now()));
    await account.redis.lrem(queues.withdraw.toKey('wait'), 0, 'p~0');
    await account.redis.zadd(queues.withdraw.toKey('failed'), Date.now(), 'p~0');
    expect(await job?.isFailed()).toBe(true);
    expect(await delivery.checkAll('queued', new AbortController().signal)).toBe(1);
    expect(await withdrawJobs()).toEqual(['p~0']);
    expect(await queues.withdraw.getFailedCount()).toBe(0);
  });

  it('ends between two pages when it is told to', async () => {
    await account.ledger.enqueue(Array.from({ length: 501 }, (_, index) => aPayout(`p${index}`)));
    expect(await delivery.checkAll('queued', AbortSignal.abort())).toBe(500);
  });

  it('polls what is in progress', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    await makeInProgress('p');
    expect(await delivery.checkAll('in_progress', new AbortController().signal)).toBe(1);
    expect(await statusJobs()).toEqual(['p~0']);
  });
});

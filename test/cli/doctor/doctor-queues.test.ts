import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { Queue } from 'bullmq';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import { openAccount } from '../../../src/queues/open-account.js';
import { createPayoutWorker } from '../../../src/control/payout-worker.js';
import { NO_SENDER, problemOf, useDoctor } from '../support/doctor-rig.js';
import { until } from '../../support/until.js';

const doctor = useDoctor();

describe('payouts doctor finds, in the queues:', () => {
  it.each(['withdraw', 'transactionstatus'])('settings on the %s queue, and its commands remove them', async (name) => {
    const queue = new Queue(name, { connection: { url: doctor.redis.url }, prefix: doctor.prefix });
    await queue.setGlobalConcurrency(5);
    await queue.setGlobalRateLimit(100, 1_000);
    await queue.pause();
    await doctor.client.set(queue.toKey('limiter'), '7');
    await queue.close();
    const { code, found } = await doctor.findings();
    expect([code, found]).toEqual([1, [problemOf(`${name} queue`, 'global concurrency of 5'), NO_SENDER]]);
    const detail = found[0]?.detail ?? '';
    for (const part of ['global rate limit (100 in 1000 ms)', 'paused', 'never expires'])
      expect(detail).toContain(part);

    for (const [, command = '', key = '', fields = ''] of found[0]?.fix?.matchAll(
      /redis-cli (HDEL|DEL) '([^']+)'((?: (?!&&)\S+)*)/g,
    ) ?? []) {
      await doctor.client.call(command, key, ...fields.split(' ').filter((field) => field !== ''));
    }
    expect((await doctor.findings()).found).toEqual([NO_SENDER]);
  });

  it('a queue that is rate limited by hand', async () => {
    const queue = new Queue('withdraw', { connection: { url: doctor.redis.url }, prefix: doctor.prefix });
    await queue.rateLimit(60_000);
    await queue.close();
    const { code, found } = await doctor.findings();
    expect([code, found]).toEqual([1, [problemOf('withdraw queue', 'rate limited by hand for another'), NO_SENDER]]);
  });

  it('payouts without a job, whichever structure of the queue is missing', async () => {
    const account = openAccount({ platformId: doctor.platformId, redisUrl: doctor.redis.url });
    const producer = new PayoutProducer({ platformId: doctor.platformId, redisUrl: doctor.redis.url });
    const { withdraw, transactionstatus } = account.queues;
    try {
      const payout = (payoutId: string) => ({ payoutId, paymentId: 1, amount: '1', addressTo: `w-${payoutId}` });
      await producer.enqueueMany([
        payout('plain'),
        { ...payout('urgent'), priority: 1 },
        { ...payout('later'), notBefore: new Date(Date.now() + 3_600_000) },
        payout('polled'),
      ]);
      await account.ledger.change({ payoutId: 'polled', from: 'queued', to: 'sending' });
      await account.ledger.change({ payoutId: 'polled', from: 'sending', to: 'in_progress', txhash: 'h' });
      // Its job has yet to be added, and its old one has yet to end: neither is missing.
      expect((await doctor.findings()).found).toEqual([NO_SENDER]);
      await account.queues.removeWithdrawJob({ payoutId: 'polled' });
      await account.queues.addStatusJobs([payout('polled')], 60_000);
      await account.ledger.clearOutbox('in_progress', ['polled']);
      const before = await doctor.client.dbsize();
      expect((await doctor.run()).out).toMatch(
        /✓ withdraw jobs {12}3 jobs for 3 payouts\n.*✓ status jobs {14}1 job for 1 payout\n/,
      );

      for (const [queue, structure] of [
        [withdraw, 'wait'],
        [withdraw, 'prioritized'],
        [withdraw, 'delayed'],
        [transactionstatus, 'delayed'],
      ] as const) {
        const key = queue.toKey(structure);
        await doctor.client.rename(key, 'elsewhere');
        const { code, found } = await doctor.findings();
        const name = queue === withdraw ? 'withdraw jobs' : 'status jobs';
        const missing = expect.objectContaining({ name, status: 'warning', detail: expect.stringContaining('1 of') });
        expect([code, found]).toEqual([0, [NO_SENDER, missing]]);
        await doctor.client.rename('elsewhere', key);
      }
      expect((await doctor.findings()).found).toEqual([NO_SENDER]);
      expect(await doctor.client.dbsize()).toBe(before);
    } finally {
      await producer.close();
      await account.close();
    }
  });

  it('payouts without a job beside a worker, which repairs it', async () => {
    const account = openAccount({ platformId: doctor.platformId, redisUrl: doctor.redis.url });
    const producer = new PayoutProducer({ platformId: doctor.platformId, redisUrl: doctor.redis.url });
    await account.ledger.pause('anna', 'to keep them waiting');
    const worker = await createPayoutWorker({
      redisUrl: doctor.redis.url,
      journalDir: join(doctor.dir, 'journal'),
      accounts: [
        {
          platformId: doctor.platformId,
          baseUrl: doctor.sandbox.url,
          secretKey: doctor.secretKey,
          leaseMs: 1_000,
          quarantineMs: 0,
        },
      ],
    });
    try {
      const isActive = async () => (await account.queues.withdraw.getActiveCount()) === 1;
      await producer.enqueueMany(
        ['P-1', 'P-2', 'P-3'].map((payoutId) => ({ payoutId, paymentId: 1, amount: '1', addressTo: `w-${payoutId}` })),
      );
      await until('a job is active', isActive);
      expect((await doctor.findings()).found).toEqual([problemOf('pause', 'to keep them waiting')]);
      await doctor.client.del(account.queues.withdraw.toKey('wait'));
      const { code, found } = await doctor.findings();
      expect([code, found[0]]).toEqual([1, problemOf('withdraw jobs', '2 of 3 payouts have no job')]);
      expect(found[0]?.fix).toContain('within a minute');
    } finally {
      await worker.stop();
      await producer.close();
      await account.close();
    }
  });
});

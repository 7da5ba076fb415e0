import { expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import { openAccount } from '../../../src/queues/open-account.js';
import { createWorkerMetrics } from '../../../src/worker/monitoring/worker-metrics.js';
import { cents, numbered, testRedisUrl } from '../../support/account.js';
import { until } from '../../support/until.js';
import { startWatchedWorker } from '../support/watched-worker.js';

const newMetrics = () => createWorkerMetrics({ version: '1.2.3' });

it('there are metrics of Node too, but not in a registry of the application', async () => {
  expect(await newMetrics().registry.metrics()).toMatch(/^process_cpu_seconds_total \d/m);
  const { registry } = createWorkerMetrics({ version: '1', registry: new Registry() });
  expect(await registry.metrics()).not.toContain('process_cpu');
});

it('a worker that sends counts and times sends, polls, pauses, waiting times and what is stuck', async () => {
  const { metric, enqueue, producer, sandbox, worker } = await startWatchedWorker({
    stuckAfterMs: 1_500,
    // The three payouts of before have lost their jobs.
    prepare: async (_, platformId) => {
      const account = openAccount({ platformId, redisUrl: testRedisUrl() });
      const early = new PayoutProducer({ platformId, redisUrl: testRedisUrl() });
      await early.enqueueMany(cents(numbered(3)));
      await account.ledger.connection.redis.del(account.queues.withdraw.toKey('wait'));
      await early.close();
      await account.close();
    },
    sandbox: {
      faults: [{ kind: 'reject', message: 'no such wallet', addresses: ['rejected-wallet'] }],
      ...{ settleAfterMs: 4_000, failAddresses: ['failing-wallet'] },
    },
  });
  const polls = async (result: string): Promise<number> => (await metric('payouts_polls_total', { result })) ?? 0;
  const age = async (state: string): Promise<number> =>
    (await metric('payouts_oldest_age_seconds', { state })) ?? Number.NaN;
  await until('all completed', async () => (await producer.stats()).completed === 3);
  expect(await metric('payouts_jobs_recreated_total', { state: 'queued' })).toBe(3);
  expect(await metric('payouts_sends_total', { outcome: 'accepted' })).toBe(3);
  for (const name of ['send_duration', 'pacer_wait', 'journal_sync']) {
    // On a busy machine a begin may come too late and be repeated.
    expect(await metric(`payouts_${name}_seconds_count`)).toBeGreaterThanOrEqual(3);
    expect(await metric(`payouts_${name}_seconds_sum`)).toBeGreaterThan(0);
  }
  expect(await metric('payouts_send_gap_seconds_bucket', { le: '1' })).toBe(0);
  expect(await metric('payouts_send_gap_seconds_sum')).toBeGreaterThanOrEqual(2.02);
  expect(await metric('payouts_polls_total', { result: 'completed' })).toBe(3);
  expect([await metric('payouts_lease_held'), await metric('payouts_lease_epoch')]).toEqual([1, 1]);

  sandbox.addFaults([{ kind: 'no-txhash', addresses: ['unknown-wallet'] }]);
  await enqueue('F', 'failing-wallet');
  await until('accepted', async () => (await producer.stats()).in_progress === 1);
  expect(await metric('payouts_stuck_in_progress')).toBe(0);
  await enqueue('R', 'rejected-wallet');
  await enqueue('U', 'unknown-wallet');
  await until('polled', async () => (await polls('in_progress')) > 0);
  sandbox.addFaults([{ kind: 'html-502', endpoint: 'transactionstatus', times: 1 }]);
  await until('a poll failed', async () => (await polls('error')) === 1);
  await until('stuck', async () => (await metric('payouts_stuck_in_progress')) === 1);
  expect(await age('in_progress')).toBeGreaterThan(1.5);
  await until('final', async () => (await polls('failed')) === 1);
  expect(await metric('payouts_stuck_in_progress')).toBe(0);

  await until('all sent', async () => (await producer.stats()).unknown === 1);
  for (const outcome of ['rejected', 'unknown']) {
    expect(await metric('payouts_sends_total', { outcome })).toBe(1);
    expect(await metric('payouts_in_state', { state: outcome })).toBe(1);
  }
  expect(await metric('payouts_paused')).toBe(0);
  await worker.accounts[0]?.ledger.pause('an operator', 'to check it');
  await enqueue('Q');
  expect(await metric('payouts_paused')).toBe(1);
  await until('a second has passed', async () => (await age('queued')) >= 1);
  expect(await age('unknown')).toBeGreaterThanOrEqual(1);
  expect(await age('sending')).toBe(0);
});

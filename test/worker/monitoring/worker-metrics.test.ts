import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { systemClock } from '../../../src/base/clock.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import { createGatewayClient } from '../../../src/gateway/gateway-client.js';
import { openAccount } from '../../../src/queues/open-account.js';
import { observeGateway } from '../../../src/worker/monitoring/observe-gateway.js';
import { createWorkerMetrics } from '../../../src/worker/monitoring/worker-metrics.js';
import { testRedisUrl } from '../../support/account.js';
import { until } from '../../support/until.js';
import { cents, numbered, SECRET_KEY, worldOfTest } from '../support/payout-world.js';
import { readMetric, startWatchedWorker } from '../support/watched-worker.js';

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

it('requests to a real gateway are counted by endpoint and outcome, and timed while they are open', async () => {
  const { sandbox, platformId } = await worldOfTest();
  const metrics = newMetrics();
  const client = createGatewayClient({ baseUrl: sandbox.url, platformId, secretKey: SECRET_KEY });
  const gateway = observeGateway(client, metrics.observe(platformId), systemClock);
  const never = new AbortController().signal;
  const metric = async (name: string, labels: Readonly<Record<string, string>>): Promise<number | undefined> => {
    const text = await metrics.registry.metrics();
    return readMetric(text, `payouts_gateway_${name}`, { platform_id: String(platformId), ...labels });
  };
  const count = async (endpoint: string, outcome: string) => metric('requests_total', { endpoint, outcome });
  const openFor = async () => metric('oldest_open_seconds', { endpoint: 'balance' });

  await gateway.balance();
  await gateway.probe(never);
  sandbox.addFaults([{ kind: 'json-500', endpoint: 'currencies', times: 1 }]);
  await expect(gateway.currencies()).rejects.toThrow();
  await expect(gateway.getStatus('0xunknown')).rejects.toThrow();
  const connection = await gateway.openConnection(never);
  await connection.withdraw({ paymentId: 1, amount: '1', addressTo: 'wallet-observed' }, { mayWrite: () => true });
  expect(await count('balance', 'answered')).toBe(2);
  expect(await count('currencies', 'unavailable')).toBe(1);
  expect(await count('transactionstatus', 'rejected')).toBe(1);
  expect(await count('withdraw', 'answered')).toBe(1);
  expect(await metric('request_seconds_count', { endpoint: 'withdraw' })).toBe(1);

  sandbox.pause();
  const waits = gateway.balance().catch(() => undefined);
  await delay(100);
  expect(await openFor()).toBeGreaterThan(0.09);
  await sandbox.close();
  await waits;
  expect(await openFor()).toBeUndefined();
  await expect(gateway.openConnection(never)).rejects.toThrow();
  await expect(gateway.openConnection(AbortSignal.abort())).rejects.toThrow();
  expect(await count('withdraw', 'unavailable')).toBe(1);
  gateway.close();
});

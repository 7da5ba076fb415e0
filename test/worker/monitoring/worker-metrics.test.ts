import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { callWatcher } from '../../../src/base/logger.js';
import { openAccount } from '../../../src/queues/open-account.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import { createWorkerMetrics } from '../../../src/worker/monitoring/worker-metrics.js';
import { testRedisUrl } from '../../support/account.js';
import { startOwnRedis } from '../support/own-redis.js';
import { closeAfterTest, readMetric, startWatchedWorker } from '../support/watched-worker.js';
import { until } from '../../support/until.js';

it('the metrics of a process count what its logger, its observers and its telemetry lost', async () => {
  const { registry } = createWorkerMetrics({ version: '1.2.3' });
  const read = async (): Promise<(number | undefined)[]> => {
    const text = await registry.metrics();
    return [
      readMetric(text, 'payouts_log_failures_total'),
      readMetric(text, 'payouts_watcher_failures_total', { watcher: 'observer' }),
      readMetric(text, 'payouts_watcher_failures_total', { watcher: 'telemetry' }),
    ];
  };
  const before = await read();
  for (const watcher of ['logger', 'observer', 'observer', 'telemetry', 'telemetry', 'telemetry'] as const) {
    callWatcher(watcher, () => JSON.parse('{') as unknown, undefined);
  }
  expect(await read()).toEqual(before.map((count, index) => (count ?? Number.NaN) + index + 1));
});

it('the metrics of a process say when it started, the same each time', async () => {
  const name = 'payouts_process_start_time_seconds';
  const read = async (): Promise<number | undefined> =>
    readMetric(await createWorkerMetrics({ version: '1.2.3' }).collect([]), name);
  const startedAt = await read();
  // The wall clock of a machine may have been corrected since the process started.
  expect(Math.abs((startedAt ?? 0) - (Date.now() / 1_000 - process.uptime()))).toBeLessThan(60);
  await delay(20);
  expect(await read()).toBe(startedAt);
});

describe('the metrics of a worker that sends', () => {
  it('count and time what it does', async () => {
    const watched = await startWatchedWorker();
    const { metric, enqueue, producer } = watched;
    expect(await metric('payouts_sends_total', { outcome: 'accepted' })).toBe(0);
    for (const payoutId of ['A', 'B', 'C']) await enqueue(payoutId);
    await until('all completed', async () => (await producer.stats()).completed === 3);

    expect(await metric('payouts_sends_total', { outcome: 'accepted' })).toBe(3);
    expect(await metric('payouts_send_duration_seconds_count')).toBe(3);
    expect(await metric('payouts_send_duration_seconds_sum')).toBeLessThan(3);
    expect(await metric('payouts_send_gap_seconds_count')).toBe(2);
    expect(await metric('payouts_send_gap_seconds_bucket', { le: '1' })).toBe(0);
    expect(await metric('payouts_send_gap_seconds_sum')).toBeGreaterThanOrEqual(2.02);
    expect(await metric('payouts_pacer_wait_seconds_count')).toBe(3);
    expect(await metric('payouts_pacer_wait_seconds_sum')).toBeGreaterThan(0);
    expect(await metric('payouts_polls_total', { result: 'completed' })).toBe(3);
    // One for each send.
    expect(await metric('payouts_journal_sync_seconds_count')).toBe(3);
    expect(await metric('payouts_journal_sync_seconds_sum')).toBeGreaterThan(0);
    expect(await metric('payouts_in_state', { state: 'completed' })).toBe(3);
    expect(await metric('payouts_in_state', { state: 'queued' })).toBe(0);
    expect(await metric('payouts_lease_held')).toBe(1);
    expect(await metric('payouts_lease_epoch')).toBe(1);
    expect(await metric('payouts_sending_refused')).toBe(0);
  });

  it('show rejected and unknown payouts, pauses and waiting times', async () => {
    const { metric, enqueue, producer, sandbox, worker } = await startWatchedWorker({
      sandbox: { faults: [{ kind: 'reject', message: 'no such wallet', addresses: ['rejected-wallet'] }] },
    });
    sandbox.addFaults([{ kind: 'no-txhash', addresses: ['unknown-wallet'] }]);
    await enqueue('R', 'rejected-wallet');
    await enqueue('U', 'unknown-wallet');
    await until('both sent', async () => (await producer.stats()).unknown === 1);
    expect(await metric('payouts_sends_total', { outcome: 'rejected' })).toBe(1);
    expect(await metric('payouts_sends_total', { outcome: 'unknown' })).toBe(1);
    expect(await metric('payouts_in_state', { state: 'rejected' })).toBe(1);
    expect(await metric('payouts_in_state', { state: 'unknown' })).toBe(1);

    expect(await metric('payouts_paused')).toBe(0);
    await worker.accounts[0]?.ledger.pause('an operator', 'to check it');
    await enqueue('Q');
    expect(await metric('payouts_paused')).toBe(1);
    await until('a second has passed', async () => {
      return ((await metric('payouts_oldest_age_seconds', { state: 'queued' })) ?? 0) >= 1;
    });
    const unknownAge = await metric('payouts_oldest_age_seconds', { state: 'unknown' });
    expect(unknownAge).toBeGreaterThanOrEqual(1);
    expect(unknownAge).toBeLessThan(20);
    expect(await metric('payouts_oldest_age_seconds', { state: 'sending' })).toBe(0);
  });

  it('count the jobs that were missing and were re-created', async () => {
    const url = testRedisUrl();
    const { metric, producer } = await startWatchedWorker({
      prepare: async (_journalDir, platformId) => {
        const account = openAccount({ platformId, redisUrl: url });
        const early = new PayoutProducer({ platformId, redisUrl: url });
        await early.enqueueMany(
          ['A', 'B'].map((payoutId) => ({ payoutId, paymentId: 1, amount: '1', addressTo: `wallet-${payoutId}` })),
        );
        await account.ledger.connection.redis.del(account.queues.withdraw.toKey('wait'));
        await early.close();
        await account.close();
      },
    });
    expect(await metric('payouts_jobs_recreated_total', { state: 'in_progress' })).toBe(0);
    await until('all completed', async () => (await producer.stats()).completed === 2);
    expect(await metric('payouts_jobs_recreated_total', { state: 'queued' })).toBe(2);
    expect(await metric('payouts_jobs_recreated_total', { state: 'in_progress' })).toBe(0);
  });

  it('show what came of polls, and what is stuck in progress', async () => {
    const { metric, enqueue, producer, sandbox } = await startWatchedWorker({
      stuckAfterMs: 1_500,
      sandbox: { settleAfterMs: 4_000, failAddresses: ['failing-wallet'] },
    });
    await enqueue('F', 'failing-wallet');
    await until('accepted', async () => (await producer.stats()).in_progress === 1);
    expect(await metric('payouts_stuck_in_progress')).toBe(0);
    await until('polled', async () => ((await metric('payouts_polls_total', { result: 'in_progress' })) ?? 0) > 0);
    sandbox.addFaults([{ kind: 'html-502', endpoint: 'transactionstatus', times: 1 }]);
    await until('a poll failed', async () => (await metric('payouts_polls_total', { result: 'error' })) === 1);
    await until('stuck', async () => (await metric('payouts_stuck_in_progress')) === 1);
    expect(await metric('payouts_oldest_age_seconds', { state: 'in_progress' })).toBeGreaterThan(1.5);
    await until('final', async () => (await metric('payouts_polls_total', { result: 'failed' })) === 1);
    expect(await metric('payouts_stuck_in_progress')).toBe(0);
  });
});

it('are in seconds', async () => {
  const metrics = createWorkerMetrics({ version: '1.2.3' });
  const observer = metrics.observe(7);
  observer.sent('accepted', 250);
  observer.sendGap(1_012, true);
  observer.pacerWaited(760);
  observer.journalSynced(4);
  const text = await metrics.collect([]);
  const sum = (name: string) => readMetric(text, `payouts_${name}_seconds_sum`, { platform_id: '7' });
  expect([sum('send_duration'), sum('send_gap'), sum('pacer_wait'), sum('journal_sync')]).toEqual([
    0.25, 1.012, 0.76, 0.004,
  ]);
});

describe('the metrics of the process', () => {
  it('say what is built, and are served while Redis is unavailable or hangs', async () => {
    const redis = closeAfterTest(await startOwnRedis());
    const { metric, url, platformId } = await startWatchedWorker({ redisUrl: redis.url });
    await until('the lease', async () => (await metric('payouts_lease_held')) === 1);
    const read = async (): Promise<string> => {
      const response = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(5_000) });
      expect(response.headers.get('content-type')).toContain('text/plain; version=0.0.4');
      return response.text();
    };
    const up = await read();
    expect(readMetric(up, 'payouts_redis_up')).toBe(1);
    expect(readMetric(up, 'payouts_build_info', { version: '1.2.3', node_version: process.version })).toBe(1);

    process.kill(redis.pid, 'SIGSTOP');
    const account = { platform_id: String(platformId) };
    const hung = await read();
    process.kill(redis.pid, 'SIGCONT');
    expect(readMetric(hung, 'payouts_redis_up')).toBe(0);
    expect(readMetric(hung, 'payouts_paused', account)).toBeUndefined();
    expect(readMetric(hung, 'payouts_lease_held', account)).toBe(1);
    await until('Redis is back', async () => readMetric(await read(), 'payouts_redis_up') === 1);

    await redis.stop();
    const unavailable = await read();
    expect(readMetric(unavailable, 'payouts_redis_up')).toBe(0);
    expect(readMetric(unavailable, 'payouts_in_state', { ...account, state: 'queued' })).toBeUndefined();
    expect(readMetric(unavailable, 'payouts_sends_total', { ...account, outcome: 'accepted' })).toBe(0);
    await redis.startAgain();
    await until('Redis is back', async () => readMetric(await read(), 'payouts_redis_up') === 1);
  });
});

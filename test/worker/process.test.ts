import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { StoppedError } from '../../src/base/errors.js';
import { createPayoutWorker } from '../../src/control/payout-worker.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { PAYOUTS_PER_CHANGE } from '../../src/ledger/payout-ledger.js';
import { openLedger } from '../../src/queues/open-ledger.js';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { adoptJournal, SIGNING, writeKeyFiles } from '../proofs/signing.js';
import { cents, testRedisUrl } from '../support/account.js';
import { until } from '../support/until.js';
import { closeAfterTest, folderOfTest } from './support/close-after-test.js';
import { expectPromisesKept, untilLeased, untilSettled, worldOfTest } from './support/payout-world.js';
import { readMetric } from './support/watched-worker.js';
import type { WorkerProcess } from './support/worker-process.js';

const NOBODY_THERE = 'redis://127.0.0.1:1';
const ACCOUNT = { platformId: 4242, baseUrl: 'http://127.0.0.1:1', secretKey: 'k-start' };

async function stop(worker: WorkerProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  worker.kill(signal);
  expect(await worker.ended).toBe(0);
}

it.each(['SIGTERM', 'SIGINT'] as const)(
  'a worker that waits for Redis at the start ends with 0 on %s',
  async (signal) => {
    const worker = (await worldOfTest()).startWorker({ redisUrl: NOBODY_THERE });
    await worker.said('waiting for Redis');
    await stop(worker, signal);
    expect(worker.log()).toMatch(/"msg":"worker stopped"/);
  },
);

it('ends with 2 if its health port is taken: nothing could probe it', async () => {
  const world = await worldOfTest();
  const environment = { HEALTH_PORT: new URL(world.sandbox.url).port };
  const worker = world.startWorker({ redisUrl: NOBODY_THERE, environment });
  expect(await worker.ended).toBe(2);
  const words = /^payouts: HEALTH_PORT: the health server cannot listen on .*EADDRINUSE.* a port of its own$/m;
  expect(worker.log()).toMatch(words);
});

describe('a worker inside an application', () => {
  it('rejects with StoppedError where it was stopped while it waited for Redis, and leaves no journal', async () => {
    const journalDir = await folderOfTest('start');
    const options = { redisUrl: NOBODY_THERE, accounts: [ACCOUNT], journalDir };
    await expect(createPayoutWorker(options, AbortSignal.timeout(300))).rejects.toThrow(StoppedError);
    expect(await readdir(journalDir)).toEqual([]);
  });

  it('refuses the same platformId twice, before it does anything', async () => {
    const journalDir = await folderOfTest('start');
    const accounts = [ACCOUNT, { ...ACCOUNT, platformId: 4243 }, ACCOUNT];
    const starting = createPayoutWorker({ redisUrl: testRedisUrl(), accounts, journalDir });
    await expect(starting).rejects.toThrow('accounts: must name each platformId once (4242 is there twice)');
    expect(await readdir(journalDir)).toEqual([]);
  });
});

it('a worker whose log nobody reads pays, and counts the lost lines', async () => {
  const world = await worldOfTest();
  const port = String(await findFreePort());
  await world.enqueue(2);
  const worker = world.startWorker({ stderr: 'broken-pipe', environment: { HEALTH_PORT: port } });
  await untilSettled(world, 2);
  await expectPromisesKept(world);
  expect((await world.producer.stats()).sender?.epoch).toBe(1);
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  expect(readMetric(metrics, 'payouts_log_failures_total')).toBeGreaterThan(0);
  await stop(worker);
});

it('SIGUSR1 opens no inspector in any process, and a worker works on', async () => {
  const world = await worldOfTest();
  const { platformId } = world;
  const environment = await world.writeAccounts([platformId, platformId + 1].map((id) => ({ platformId: id })));
  const worker = world.startWorker({ args: ['--processes', '2'], environment });
  await until('both serve', () => worker.log().split('serving /healthz').length > 2);
  const pids = new Set([...worker.log().matchAll(/"pid":(\d+)/g)].map(([, pid]) => Number(pid)));
  expect(pids.size).toBe(3);
  for (const pid of pids) process.kill(pid, 'SIGUSR1');
  await world.enqueue(1);
  await untilSettled(world, 1);
  expect(worker.log()).not.toMatch(/debugger/i);
  await stop(worker);
});

it('payouts that are held or cancelled take no slot of a second from those behind them', async () => {
  const world = await worldOfTest();
  await adoptJournal(join(world.dir, 'journal'), world.platformId);
  const { workerEnvironment: environment } = await writeKeyFiles(world.dir);
  const producer = closeAfterTest(new PayoutProducer({ ...world.account, ...SIGNING }));
  const { ledger } = closeAfterTest(openLedger(world.account, 'reply'));
  await world.enqueue(40, 'U');
  for (const prefix of ['C', 'D']) {
    const payouts = (await world.enqueue(PAYOUTS_PER_CHANGE, prefix)).map((payoutId) => ({ payoutId }));
    const change = { from: 'queued', to: 'cancelled', by: 'ann', reason: 'x', isOneAct: true } as const;
    await ledger.changeMany({ ...change, payouts });
  }
  await producer.enqueueMany(cents(['S-1']));
  const worker = world.startWorker({ environment });
  await untilLeased(worker);
  // A second for each would be 140 s.
  await until('the signed one is completed', async () => (await producer.stats()).completed === 1, 45_000);
  expect((await producer.stats()).held).toBe(40);
  await expectPromisesKept(world);
});

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Worker, type Job } from 'bullmq';
import express from 'express';
import { createBoard } from '../../src/dashboard/board.js';
import { QUEUE_NAMES, toJobId, type PayoutJobData } from '../../src/queues/payout-queues.js';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import { until } from '../support/until.js';
import { startWatchedWorker } from '../worker/support/watched-worker.js';
import { listBoardRequests, type BoardRequest } from './support/board-routes.js';
import { openDashboard, serve, type RunningDashboard } from './support/running-dashboard.js';
import { fillAccount, openSampleAccount, type SampleAccount } from './support/sample-account.js';

const LOCK_MS = 3_600_000;
const STATUSES = ['waiting', 'active', 'completed', 'failed', 'delayed', 'prioritized', 'paused', 'latest'];

/** A body that is right for whichever write it is sent with. */
const BODY = JSON.stringify({
  ...{ name: 'withdraw', queue: 'withdraw', options: {}, force: true, priority: 1, concurrency: 50 },
  ...{ data: { payoutId: 'order:2047' }, jobData: { payoutId: 'order:2047' } },
  ...{ runAt: 4_000_000_000_000, max: 1_000, duration: 1, every: 1_000 },
});

let account: SampleAccount;
let dashboard: RunningDashboard;
/** Bull Board without the guard in front of it. */
let boardOnly: Awaited<ReturnType<typeof serve>>;
let requests: BoardRequest[];

beforeAll(async () => {
  account = await openSampleAccount();
  await fillAccount(account);
  const jobIds = await bringJobsIntoEveryState(account);
  requests = listBoardRequests({
    queueName: Object.values(QUEUE_NAMES),
    jobId: jobIds,
    queueStatus: STATUSES,
    schedulerId: ['nightly'],
  });
  dashboard = await openDashboard(account);
  boardOnly = await serve(express().use('/board', createBoard(account.ledger, account.queues)));
});

afterAll(async () => {
  await dashboard.close();
  await boardOnly.close();
  await account.close();
});

/** @returns the ids of one job in each state */
async function bringJobsIntoEveryState({ queues, connection }: SampleAccount): Promise<string[]> {
  const redis = connectRedis(process.env['REDIS_URL'] ?? '', 'queue');
  const options = { connection: redis, prefix: connection.keys.prefix, autorun: false, lockDuration: LOCK_MS };
  const worker = new Worker(QUEUE_NAMES.withdraw, undefined, options);
  const take = async (): Promise<Job> => {
    const job = (await worker.getNextJob('token')) as Job | undefined;
    if (job === undefined) throw new Error('There is no waiting job');
    return job;
  };
  const failed = await take();
  await failed.moveToFailed(new Error('unknown: no response'), 'token', false);
  const completed = await take();
  await completed.moveToCompleted('accepted: a7c1e4', 'token', false);
  const active = await take();
  await worker.close();
  await closeRedis(redis);
  const { withdraw, transactionstatus } = queues;
  const [waiting, prioritized, delayed, polled] = await Promise.all([
    withdraw.getWaiting(),
    withdraw.getPrioritized(),
    withdraw.getDelayed(),
    transactionstatus.getDelayed(),
  ]);
  const nightly = { name: 'withdraw', data: failed.data as PayoutJobData };
  await withdraw.upsertJobScheduler('nightly', { every: LOCK_MS }, nightly);
  await withdraw.rateLimit(LOCK_MS);
  return [failed, completed, active, waiting[0], prioritized[0], delayed[0], polled[0]].map((job) => {
    if (job?.id === undefined) throw new Error('There is no job in one of the states');
    return job.id;
  });
}

async function send(base: string, { method, path }: BoardRequest): Promise<number> {
  const withBody = method === 'GET' ? {} : { body: BODY, headers: { 'content-type': 'application/json' } };
  const response = await fetch(base + path, { method, ...withBody });
  await response.arrayBuffer();
  return response.status;
}

const isWrite = ({ method }: BoardRequest): boolean => method !== 'GET';

describe('the board', () => {
  it('refuses every write, and changes nothing in Redis, also without the guard in front of it', async () => {
    const writes = requests.filter(isWrite);
    const names = [...new Set(writes.map(({ method, path }) => `${method} ${path}`))];
    expect(names.length).toBeGreaterThan(100);
    for (const end of ['/retry', '/obliterate', '/empty', '/rate-limit/release', '/run', '/update-data', '/purge'])
      expect(names.filter((name) => name.endsWith(end))).not.toEqual([]);
    const before = await account.dump();
    const unguarded = new Set<number>();
    for (const request of writes) {
      const status = await send(dashboard.url.slice(0, -1), request);
      expect({ ...request, status }).toEqual({ ...request, status: 405 });
      unguarded.add(await send(boardOnly.url, request));
    }
    expect(await account.dump()).toEqual(before);
    // Pausing all queues responds 200 and skips those that are read-only; purging has no route here.
    expect([...unguarded].sort()).toEqual([200, 404, 405]);
  });

  it('changes nothing on reads, and has no other method', async () => {
    const before = await account.dump();
    const list = '/board/api/queues?activeQueue=withdraw&page=1&jobsPerPage=50&status=';
    const lists = STATUSES.map((status) => ({ method: 'GET', path: list + status }));
    for (const request of [...requests.filter((each) => !isWrite(each)), ...lists])
      expect([200, 404]).toContain(await send(dashboard.url.slice(0, -1), request));
    expect(await account.dump()).toEqual(before);
    for (const method of ['DELETE', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'PROPFIND']) {
      const response = await dashboard.ask('/board/api/queues', { method });
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    }
  });

  it('loads nothing from other hosts', async () => {
    const response = await dashboard.ask('/board/');
    const page = await response.text();
    expect(page).toContain('static/js/main');
    expect(page).not.toMatch(/(?:src|href)="(?:https?:)?\/\//);
    expect(response.headers.get('content-security-policy')).toMatch(/default-src 'none'.*connect-src 'self'/);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('x-powered-by')).toBeNull();
  });
});

describe('a job on the board', () => {
  async function readJob(id: string, on = dashboard): Promise<Record<string, unknown>> {
    const response = await on.ask(`/board/api/queues/withdraw/${encodeURIComponent(encodeURIComponent(id))}`);
    return ((await response.json()) as { job: Record<string, unknown> }).job;
  }

  it("shows its payout's present state, amount, currency, shortened address and error, and nothing else", async () => {
    expect(await readJob('order:2045~0')).toMatchObject({
      name: 'order:2045 · 9000 of 7/USD · rejected',
      externalUrl: { href: '../payouts/order%3A2045' },
    });
    expect((await readJob('order:2045~0'))['data']).toEqual({
      ...{ payoutId: 'order:2045', state: 'rejected', amount: '9000', currency: '7/USD' },
      ...{ addressTo: 'TXYZop…VkAeBf', error: 'Insufficient balance' },
    });
    const data = { payoutId: 'stray', paymentId: 1, amount: '1', addressTo: 'w', secretKey: 'sesame' };
    await account.queues.transactionstatus.add('transactionstatus', data, { jobId: 'stray~0' });
    const list = await dashboard.read(
      '/board/api/queues?activeQueue=transactionstatus&status=latest&page=1&jobsPerPage=20',
    );
    expect(list).toContain('stray · 1 of 1 · not in the ledger');
    expect(list).not.toContain('sesame');
  });

  it('has the message of a payout that is rejected or unknown, without a stack trace', async () => {
    const faults = [{ kind: 'reject', message: 'no balance', times: 1 } as const, { kind: 'drop-after' } as const];
    const { platformId, enqueue } = await startWatchedWorker({ sandbox: { faults } });
    const of = await openDashboard({ platformId, clock: account.clock });
    for (const payoutId of ['p-1', 'p-2']) await enqueue(payoutId);
    const jobs = async () => Promise.all(['p-1', 'p-2'].map(async (payoutId) => readJob(toJobId({ payoutId }), of)));
    await until('both ended', async () => (await jobs()).every((job) => job['failedReason'] !== undefined));
    const [message, stacktrace] = [expect.stringMatching(/^(rejected: no balance|unknown: )/), []];
    expect(await jobs()).toMatchObject([
      { failedReason: message, stacktrace },
      { failedReason: message, stacktrace },
    ]);
    await of.close();
  });
});

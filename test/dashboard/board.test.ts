import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Worker, type Job } from 'bullmq';
import express from 'express';
import { createBoard } from '../../src/dashboard/board.js';
import { QUEUE_NAMES, type PayoutJobData } from '../../src/queues/payout-queues.js';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import { listBoardRequests, type BoardRequest } from './support/board-routes.js';
import { openDashboard, type RunningDashboard } from './support/running-dashboard.js';
import { fillAccount, openSampleAccount, type SampleAccount } from './support/sample-account.js';

const LOCK_MS = 3_600_000;
const STATUSES = ['waiting', 'active', 'completed', 'failed', 'delayed', 'prioritized', 'paused', 'latest'];

/** A body that is right for whichever write it is sent with. */
const BODY = JSON.stringify({
  name: 'withdraw',
  data: { payoutId: 'order:2047' },
  jobData: { payoutId: 'order:2047' },
  options: {},
  runAt: 4_000_000_000_000,
  priority: 1,
  concurrency: 50,
  max: 1_000,
  duration: 1,
  force: true,
  every: 1_000,
  queue: 'withdraw',
});

let account: SampleAccount;
let dashboard: RunningDashboard;
let boardOnly: { readonly url: string; readonly server: Server };
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
  boardOnly = await serveBoardOnly(account);
});

afterAll(async () => {
  await dashboard.close();
  await new Promise((resolve) => boardOnly.server.close(resolve));
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
  await withdraw.upsertJobScheduler(
    'nightly',
    { every: LOCK_MS },
    { name: 'withdraw', data: failed.data as PayoutJobData },
  );
  await withdraw.rateLimit(LOCK_MS);
  return [failed, completed, active, waiting[0], prioritized[0], delayed[0], polled[0]].map((job) => {
    if (job?.id === undefined) throw new Error('There is no job in one of the states');
    return job.id;
  });
}

/** Bull Board without the guard in front of it. */
async function serveBoardOnly({ ledger, queues }: SampleAccount): Promise<{ url: string; server: Server }> {
  const server = createServer(express().use('/board', createBoard(ledger, queues)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

async function send(base: string, { method, path }: BoardRequest): Promise<number> {
  const withBody = method === 'GET' ? {} : { body: BODY, headers: { 'content-type': 'application/json' } };
  const response = await fetch(base + path, { method, ...withBody });
  await response.arrayBuffer();
  return response.status;
}

function isWrite({ method }: BoardRequest): boolean {
  return method !== 'GET';
}

describe('the board', () => {
  it('tests every write route', () => {
    const writes = new Set(requests.filter(isWrite).map(({ method, path }) => `${method} ${path}`));
    expect(writes.size).toBeGreaterThan(100);
    for (const end of ['/retry', '/obliterate', '/empty', '/rate-limit/release', '/run', '/update-data', '/purge']) {
      expect([...writes].some((write) => write.endsWith(end))).toBe(true);
    }
  });

  it('refuses every write, and changes nothing in Redis', async () => {
    const before = await account.dump();
    for (const request of requests.filter(isWrite)) {
      expect({ ...request, status: await send(dashboard.url.slice(0, -1), request) }).toEqual({
        ...request,
        status: 405,
      });
    }
    expect(await account.dump()).toEqual(before);
  });

  it('changes nothing even without the guard in front of it, since every queue is read-only', async () => {
    const before = await account.dump();
    const statuses = new Set<number>();
    for (const request of requests.filter(isWrite)) statuses.add(await send(boardOnly.url, request));
    expect(await account.dump()).toEqual(before);
    // Pausing all queues responds 200 and skips those that are read-only; purging has no route here.
    expect([...statuses].sort()).toEqual([200, 404, 405]);
  });

  it('changes nothing on reads', async () => {
    const before = await account.dump();
    const lists = STATUSES.map(
      (status) => `/board/api/queues?activeQueue=withdraw&page=1&jobsPerPage=50&status=${status}`,
    );
    const reads = [...requests.filter((each) => !isWrite(each)), ...lists.map((path) => ({ method: 'GET', path }))];
    for (const request of reads) {
      expect([200, 404]).toContain(await send(dashboard.url.slice(0, -1), request));
    }
    expect(await account.dump()).toEqual(before);
  });

  it('refuses methods that no route has', async () => {
    for (const method of ['DELETE', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'PROPFIND']) {
      const response = await dashboard.ask('/board/api/queues', { method });
      expect(response.status).toBe(405);
      expect(response.headers.get('allow')).toBe('GET, HEAD');
    }
  });
});

describe('a job on the board', () => {
  it("shows its payout's present state, amount, currency, shortened address and error, and nothing else", async () => {
    const response = await dashboard.ask(`/board/api/queues/withdraw/${encodeURIComponent('order%3A2045~0')}`);
    const { job } = (await response.json()) as { job: { name: string; data: object; externalUrl: object } };
    expect(job.name).toBe('order:2045 · 9000 of 7/USD · rejected');
    expect(job.data).toEqual({
      payoutId: 'order:2045',
      state: 'rejected',
      amount: '9000',
      currency: '7/USD',
      addressTo: 'TXYZop…VkAeBf',
      error: 'Insufficient balance',
    });
    expect(job.externalUrl).toEqual({ href: '../payouts/order%3A2045', displayText: 'Payout and its history' });
  });

  it('shows only the listed fields of its data', async () => {
    const data = { payoutId: 'stray', paymentId: 1, amount: '1', addressTo: 'w', secretKey: 'sesame' };
    await account.queues.transactionstatus.add('transactionstatus', data, { jobId: 'stray~0' });
    const list = await dashboard.read(
      '/board/api/queues?activeQueue=transactionstatus&status=latest&page=1&jobsPerPage=20',
    );
    expect(list).toContain('stray · 1 of 1 · not in the ledger');
    expect(list).not.toContain('sesame');
  });
});

describe("the board's page", () => {
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

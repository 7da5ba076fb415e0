import { appRoutes, buildHistoryRoutes } from '@bull-board/api/dist/routes.js';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Worker, type Job } from 'bullmq';
import express from 'express';
import { createBoard } from '../../src/dashboard/board.js';
import { QUEUE_NAMES, type PayoutJobData } from '../../src/queues/payout-queues.js';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import { openDashboard, serve, type RunningDashboard } from './support/running-dashboard.js';
import { fillAccount, openSampleAccount, type SampleAccount } from './support/sample-account.js';

/** A request that Bull Board's own table of routes knows. */
interface BoardRequest {
  readonly method: string;
  readonly path: string;
}

/** The package's own routes, also those that need a provider of history: a new one in a new version appears by itself. */
const ROUTES = [
  ...appRoutes.api,
  ...buildHistoryRoutes({} as Parameters<typeof buildHistoryRoutes>[0], {
    ...{ hasUsage: true, canPurge: true, hasLatency: true },
  }),
  { method: 'get' as const, route: appRoutes.entryPoint.route },
];

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

/** Every route with every combination of the given values for its parameters. A parameter without values fails. */
function listBoardRequests(values: Readonly<Record<string, readonly string[]>>): BoardRequest[] {
  const fill = (path: string): string[] => {
    const [placeholder = '', name = ''] = /:([A-Za-z]+)/.exec(path) ?? [];
    if (name === '') return [path];
    const known = values[name];
    if (known === undefined) throw new Error(`The route ${path} has a parameter that the test does not know: ${name}`);
    return known.flatMap((value) => fill(path.replace(placeholder, encodeURIComponent(value))));
  };
  return ROUTES.flatMap(({ method, route }) =>
    [method].flat().flatMap((each) =>
      [route]
        .flat()
        .flatMap(fill)
        .map((path) => ({ method: each.toUpperCase(), path: `/board${path}` })),
    ),
  );
}

/** Beside what the account has: a job that failed, one that is active, a scheduler and a limit. @returns the ids of all */
async function bringJobsIntoEveryState({ queues, connection }: SampleAccount): Promise<string[]> {
  const redis = connectRedis(process.env['REDIS_URL'] ?? '', 'queue');
  const options = { connection: redis, prefix: connection.keys.prefix, autorun: false, lockDuration: LOCK_MS };
  const worker = new Worker(QUEUE_NAMES.withdraw, undefined, options);
  const { withdraw, transactionstatus } = queues;
  const failed = (await worker.getNextJob('token')) as Job;
  await failed.moveToFailed(new Error('unknown: no response'), 'token', false);
  const active = (await worker.getNextJob('token')) as Job;
  await worker.close();
  await closeRedis(redis);
  await withdraw.upsertJobScheduler(
    'nightly',
    { every: LOCK_MS },
    { name: 'withdraw', data: failed.data as PayoutJobData },
  );
  await withdraw.rateLimit(LOCK_MS);
  const [waiting, delayed, polled] = await Promise.all([
    withdraw.getWaiting(),
    withdraw.getDelayed(),
    transactionstatus.getDelayed(),
  ]);
  return [failed, active, waiting[0], delayed[0], polled[0]].map((job) => {
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
});

it("a job shows its payout's present state, amount, currency, shortened address and error, and nothing else", async () => {
  const path = `/board/api/queues/withdraw/${encodeURIComponent(encodeURIComponent('order:2045~0'))}`;
  const { job } = (await (await dashboard.ask(path)).json()) as { job: object };
  expect(job).toMatchObject({
    name: 'order:2045 · 9000 of 7/USD · rejected',
    externalUrl: { href: '../payouts/order%3A2045' },
  });
  expect((job as { data: unknown }).data).toEqual({
    ...{ payoutId: 'order:2045', state: 'rejected', amount: '9000', currency: '7/USD' },
    ...{ addressTo: 'TXYZop…VkAeBf', error: 'Insufficient balance' },
  });
  const data = { payoutId: 'stray', paymentId: 1, amount: '1', addressTo: 'w', secretKey: 'sesame' };
  await account.queues.transactionstatus.add('transactionstatus', data, { jobId: 'stray~0' });
  const list = '/board/api/queues?activeQueue=transactionstatus&status=latest&page=1&jobsPerPage=20';
  const shown = await dashboard.read(list);
  expect(shown).toContain('stray · 1 of 1 · not in the ledger');
  expect(shown).not.toContain('sesame');
});

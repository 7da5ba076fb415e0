import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { startHealthServer, type HealthServer } from '../../../src/worker/monitoring/health-server.js';
import { createWorkerMetrics } from '../../../src/worker/monitoring/worker-metrics.js';
import { createPayoutWorker, type PayoutWorker } from '../../../src/control/payout-worker.js';
import { until } from '../../support/until.js';
import { openSharedAccounts, type SharedAccounts } from '../support/shared-accounts.js';
import { readMetric } from '../support/watched-worker.js';

/** Two accounts and three workers of one folder of journals: the third works for none. */

interface Watched {
  readonly worker: PayoutWorker;
  readonly health: HealthServer;
}

const SCRAPES = 20;
/** An account that a process works for takes some 40 at a scrape. */
const MOST_COMMANDS_A_SCRAPE = 20;
/** Longer than a call waits for Redis. */
const HANGS_MS = 5_000;

let shared: SharedAccounts;
let dir: string;
let all: Watched[];

beforeEach(async () => {
  shared = await openSharedAccounts(2);
  dir = await mkdtemp(join(tmpdir(), 'payouts-resting-'));
  all = [];
});
afterEach(async () => {
  await Promise.all(all.map(async ({ worker, health }) => Promise.all([health.close(), worker.stop()])));
  await shared.close();
  await rm(dir, { recursive: true, force: true });
});

const partsOf = ({ worker }: Watched): string => worker.accounts.map(({ part }) => part).join();

async function start(): Promise<void> {
  const { baseUrl, secretKey, redisUrl } = shared.processOptions;
  const accounts = shared.platformIds.map((platformId) => ({
    ...{ platformId, baseUrl, secretKey },
    ...{ leaseMs: 1_000, quarantineMs: 1_000, inFlightMaxMs: 100, pollMinMs: 200, pollMaxMs: 500 },
  }));
  const metrics = createWorkerMetrics({ version: '1.2.3' });
  const worker = await createPayoutWorker({ redisUrl, journalDir: dir, accounts, observe: metrics.observe });
  const health = await startHealthServer({ host: '127.0.0.1', port: 0, metrics, accounts: () => worker.accounts });
  all.push({ worker, health });
}

/** @returns the process that works for no account, and those that work for the first and the second */
async function startThree(): Promise<{ readonly spare: Watched; readonly workers: readonly Watched[] }> {
  for (let count = 0; count < 3; count += 1) await start();
  const find = (parts: string): Watched | undefined => all.find((each) => partsOf(each) === parts);
  const sends = (index: number): boolean => all.some(({ worker }) => worker.accounts[index]?.status.role === 'sender');
  await until(
    () => `the accounts are shared out: ${all.map(partsOf).join(' ')}`,
    () => ['rest,rest', 'send,rest', 'rest,send'].every((parts) => find(parts) !== undefined) && sends(0) && sends(1),
  );
  const [spare, first, second] = [find('rest,rest'), find('send,rest'), find('rest,send')];
  if (!spare || !first || !second) throw new Error('the accounts moved meanwhile');
  return { spare, workers: [first, second] };
}

async function scrape({ health }: Watched): Promise<string> {
  return (await fetch(`${health.url}/metrics`)).text();
}

async function readiness({ health }: Watched): Promise<[status: number, body: unknown]> {
  const response = await fetch(`${health.url}/readyz`);
  return [response.status, await response.json()];
}

/** Of all clients, those in scripts included. */
async function commandsSoFar(): Promise<number> {
  const stats = await shared.redis.info('commandstats');
  return Array.from(stats.matchAll(/:calls=(\d+)/g), ([, calls]) => Number(calls)).reduce((sum, one) => sum + one, 0);
}

async function commandsOfScrapes(process: Watched): Promise<number> {
  const before = await commandsSoFar();
  for (let count = 0; count < SCRAPES; count += 1) await scrape(process);
  return ((await commandsSoFar()) - before) / SCRAPES;
}

it('what is to be said of an account is read by the process that works for it, and by no other', async () => {
  const { spare, workers } = await startThree();
  for (const { ledger } of spare.worker.accounts) await ledger.pause('an operator', 'to keep a backlog');
  await shared.enqueue(3);
  expect(await commandsOfScrapes(spare)).toBeLessThan(MOST_COMMANDS_A_SCRAPE);

  for (const [index, platformId] of shared.platformIds.entries()) {
    const account = { platform_id: String(platformId) };
    const backlogs = ['payouts_due', 'payouts_paused', 'payouts_objections', 'payouts_stuck_in_progress'];
    for (const [position, process] of [...workers, spare].entries()) {
      const text = await scrape(process);
      const works = position === index;
      expect(readMetric(text, 'payouts_in_state', { ...account, state: 'queued' })).toBe(works ? 3 : undefined);
      expect(backlogs.filter((name) => readMetric(text, name, account) !== undefined)).toEqual(works ? backlogs : []);
      expect(readMetric(text, 'payouts_lease_held', account)).toBe(works ? 1 : 0);
      expect(readMetric(text, 'payouts_sending_refused', account)).toBe(0);
    }
  }
}, 60_000);

it('a process that works for no account is ready while Redis responds, and says when it does not', async () => {
  const { spare } = await startThree();
  const rests = shared.platformIds.map((platformId) => ({
    ...{ platformId, role: 'standby', paused: null, pausedReason: null, stopped: [], warnings: [] },
  }));
  expect(await readiness(spare)).toEqual([200, { ready: true, redis: 'up', accounts: rests }]);
  const text = await scrape(spare);
  expect(readMetric(text, 'payouts_redis_up')).toBe(1);
  expect(readMetric(text, 'payouts_clock_offset_seconds')).toEqual(expect.any(Number));

  await shared.redis.config('SET', 'min-replicas-to-write', '1');
  expect(await readiness(spare)).toMatchObject([
    503,
    { redis: 'up', accounts: [{ role: 'refused', cause: 'redis' }, { role: 'refused' }] },
  ]);
  expect(readMetric(await scrape(spare), 'payouts_redis_refuses_writes')).toBe(1);
  await shared.redis.config('SET', 'min-replicas-to-write', '0');

  await shared.redis.call('CLIENT', 'PAUSE', String(HANGS_MS));
  const [hung, [status, body]] = await Promise.all([scrape(spare), readiness(spare)]);
  expect(readMetric(hung, 'payouts_redis_up')).toBe(0);
  expect([status, body]).toMatchObject([503, { ready: false, redis: 'unavailable' }]);
  await until('ready again', async () => (await readiness(spare))[0] === 200);
}, 60_000);

it('a process that works for no account says that it does not understand the ledger of one', async () => {
  const { spare } = await startThree();
  const [account] = spare.worker.accounts;
  if (account === undefined) throw new Error('no account');
  await shared.redis.hset(account.ledger.connection.keys.ledger, 'format', '5');
  expect(account.part).toBe('rest');
  expect(await readiness(spare)).toMatchObject([
    503,
    { redis: 'up', accounts: [{ role: 'refused', reason: expect.stringContaining('has format 5') }, {}] },
  ]);
}, 60_000);

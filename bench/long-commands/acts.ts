import { randomUUID } from 'node:crypto';
import type { PayoutProducer, PayoutState } from 'payout-queue';
import { systemClock } from '../../src/base/clock.js';
import { startDashboard } from 'payout-queue/dashboard';
import { readAccountStats } from '../../src/ledger/reads/account-stats.js';
import { findForgottenSends, holdSendablePayouts } from '../../src/ledger/adopt-ledger.js';
import { readBatchSummary } from '../../src/ledger/reads/batches.js';
import type { LedgerConnection } from '../../src/ledger/ledger-connection.js';
import { PAYOUTS_PER_CHANGE } from '../../src/ledger/payout-ledger.js';
import { findPayouts, listPayoutIds, listPayouts } from '../../src/ledger/payout-queries.js';
import { silentLogger } from '../../src/base/logger.js';
import { changeManyPayouts, sweepCancelledJobs } from '../../src/operator/change-payouts.js';
import { cancelPayout, type LedgerAccess, openLedger } from '../../src/queues/open-ledger.js';
import { countDueJobs, countDuePayouts, readJobBalance } from '../../src/queues/job-balance.js';
import { JobReconciler } from '../../src/queues/job-reconciler.js';
import { removeSome } from '../../src/worker/retention.js';
import { StatisticsKeeper } from '../../src/worker/statistics/statistics-keeper.js';
import { samplePayouts } from '../sample-payouts.js';
import { LARGE_BATCH } from './fill-account.js';

const ACTOR = { by: 'bench', reason: 'measured' };
const NEVER = new AbortController().signal;
/** Steps that rest between two pages do not, so that a count of everything ends. */
const RESTLESS = { ...systemClock, sleep: async () => Promise.resolve() };
const MOST_LISTED = 1_000;

const PAGES = [
  'payouts',
  'payouts?state=queued',
  'payouts?state=completed&address=nowhere',
  `batch?name=${LARGE_BATCH}`,
  'activity',
  'held',
  'audit',
  'board/api/queues?activeQueue=withdraw&status=waiting&page=1000',
];

interface ActOptions {
  readonly redisUrl: string;
  readonly platformId: number;
  readonly producer: PayoutProducer;
  readonly access: LedgerAccess;
  /** How many payouts a bulk has. */
  readonly size: number;
}

interface Act {
  readonly name: string;
  readonly run: () => Promise<unknown>;
}

/**
 * What users and the worker do to a large account, one after the other.
 * @returns of each act its name and what it does; each can be repeated
 */
export function listActs({ redisUrl, platformId, producer, access, size }: ActOptions): Act[] {
  const { connection } = access.ledger;
  const middle = async (index: { readonly state: PayoutState }) =>
    listPayoutIds(connection, { ...index, limit: MOST_LISTED, cursor: await middleOf(index) });
  const middleOf = async (index: { readonly state: PayoutState } | { readonly batch: string }): Promise<string> => {
    const key = 'state' in index ? connection.keys.state(index.state) : connection.keys.batch(index.batch);
    const rank = String(Math.floor((await connection.redis.zcard(key)) / 2));
    return (await connection.redis.zrange(key, rank, rank, 'WITHSCORES'))[1] ?? '';
  };
  const fresh = (count: number, batch?: string) =>
    samplePayouts(count, randomUUID().slice(0, 8)).map((payout) => ({
      ...payout,
      ...(batch === undefined ? {} : { batch }),
    }));
  const cancelMany = async (payoutIds: readonly string[]): Promise<void> => {
    for (let start = 0; start < payoutIds.length; start += PAYOUTS_PER_CHANGE) {
      const payouts = payoutIds.slice(start, start + PAYOUTS_PER_CHANGE).map((payoutId) => ({ payoutId }));
      await changeManyPayouts(access, { from: 'queued', to: 'cancelled', payouts }, ACTOR);
    }
    await sweepCancelledJobs(access, NEVER);
  };
  const acts: [name: string, run: () => Promise<unknown>][] = [
    ['enqueue, one after the other', async () => each(fresh(50), async (payout) => producer.enqueue(payout))],
    ['enqueue, 500 at a time', async () => Promise.all(fresh(500).map(async (payout) => producer.enqueue(payout)))],
    ['enqueueMany', async () => producer.enqueueMany(fresh(5 * size, LARGE_BATCH))],
    ['enqueueMany of what is there', async () => producer.enqueueMany(await again(connection, size))],
    ['counts', async () => countAll(connection, access, producer)],
    [
      'lists, from the middle',
      async () => {
        await middle({ state: 'queued' });
        await listPayouts(connection, {
          batch: LARGE_BATCH,
          limit: MOST_LISTED,
          cursor: await middleOf({ batch: LARGE_BATCH }),
        });
        await listPayouts(connection, { state: 'completed', limit: MOST_LISTED, newestFirst: true });
      },
    ],
    ['search', async () => findPayouts(connection, { address: 'nowhere' }, 100)],
    ['batch statistics', async () => producer.batchStats(LARGE_BATCH)],
    ['batch summary', async () => readBatchSummary(connection, LARGE_BATCH)],
    ['dashboard', async () => openPages(redisUrl, platformId)],
    [
      'cancel one in the middle',
      async () => {
        const { payoutIds } = await middle({ state: 'queued' });
        await each(payoutIds.slice(0, 5), async (payoutId) => cancelPayout(access, payoutId, ACTOR));
      },
    ],
    ['cancel many in the middle', async () => cancelMany((await middle({ state: 'queued' })).payoutIds.slice(0, size))],
    [
      'cancel many of the newest',
      async () => {
        const page = { state: 'queued', limit: size, newestFirst: true } as const;
        await cancelMany((await listPayoutIds(connection, page)).payoutIds);
      },
    ],
    [
      'retention and trimming',
      async () => {
        const statistics = {
          countRemoval: async (_state: PayoutState, remove: () => Promise<readonly unknown[]>) =>
            (await remove()).length,
        };
        for (let step = 0; step < 5; step += 1) await removeSome({ connection, retentionDays: 0, statistics });
      },
    ],
    [
      'statistics, from the beginning',
      async () => {
        await connection.redis.del(connection.keys.statistics);
        const keeper = new StatisticsKeeper({ ...connection, clock: RESTLESS }, silentLogger);
        while (await keeper.step(NEVER));
      },
    ],
    ['check for missing jobs', async () => reconcile(access)],
    ['adoption of a ledger', async () => adopt(redisUrl, platformId + 1)],
  ];
  return acts.map(([name, run]) => ({ name, run }));
}

async function each<Item>(items: readonly Item[], work: (item: Item) => Promise<unknown>): Promise<void> {
  for (const item of items) await work(item);
}

async function again(connection: LedgerConnection, count: number) {
  const { payouts } = await listPayouts(connection, { state: 'queued', limit: count });
  return payouts.map(({ payoutId, paymentId, amount, addressTo, batch }) => ({
    payoutId,
    paymentId,
    amount,
    addressTo,
    ...(batch === undefined ? {} : { batch }),
  }));
}

async function countAll(connection: LedgerConnection, access: LedgerAccess, producer: PayoutProducer): Promise<void> {
  const { queues } = await access.openQueues();
  await producer.stats();
  await readAccountStats(connection);
  await readJobBalance(connection, queues, 'queued');
  await countDueJobs(connection, queues.withdraw);
  await countDuePayouts(connection);
}

async function reconcile(access: LedgerAccess): Promise<void> {
  await new JobReconciler(access.ledger, await access.openQueues()).reconcile('queued', NEVER);
}

async function openPages(redisUrl: string, platformId: number): Promise<void> {
  const dashboard = await startDashboard({ redisUrl, platformId, host: '127.0.0.1', port: 0 });
  try {
    for (const page of PAGES) {
      const response = await fetch(new URL(page, dashboard.url));
      if (!response.ok) throw new Error(`The dashboard said ${response.status} to ${page}`);
      await response.text();
    }
  } finally {
    await dashboard.close();
  }
}

/** In an account of its own, whose queued payouts become unknown. */
async function adopt(redisUrl: string, platformId: number): Promise<void> {
  const access = openLedger({ redisUrl, platformId }, 'reply');
  const { connection } = access.ledger;
  const payouts = samplePayouts(MOST_LISTED, randomUUID().slice(0, 8));
  await access.ledger.enqueue(payouts);
  await findForgottenSends(
    connection,
    payouts.map(({ payoutId }) => ({ payoutId, attempt: 1, token: 'bench' })),
  );
  await holdSendablePayouts(connection, ACTOR, 0);
  await access.close();
}

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { DelayedError, Queue, Worker } from 'bullmq';
import type { BenchmarkResult, BenchmarkRun } from '../benchmark.js';
import { systemClock } from '../../src/base/clock.js';
import { connectRedis, DEFAULT_ACCOUNT_SETTINGS, silentLogger } from 'payout-queue';
import { GATEWAY_APIS, type GatewayApi } from '../../src/base/settings.js';
import { openGateway } from '../../src/gateway/open-gateway.js';
import { PayoutQueues, QUEUE_NAMES } from '../../src/queues/payout-queues.js';
import { closeRedis } from '../../src/base/redis.js';
import { StatusJobs } from '../../src/worker/status-jobs.js';
import { noObserver } from '../../src/worker/sender/worker-observer.js';
import { AUDIENCE, holdLedger, openLedger, putInProgress, type SentPayout } from '../ledger-account.js';
import { type MeasuredRedis, startMeasuredRedis } from '../measured-redis.js';
import { figure } from '../figure.js';
import { type BenchAccount, newAccount, sampleJob, samplePayouts } from '../sample-payouts.js';
import { median } from '../statistics.js';

const SERVER = new URL('../status-server.ts', import.meta.url);
const CONCURRENCY = 20;
const JOBS_PER_BULK = 1_000;

/** Every payout is due again after this time, so that there is always one to poll. */
const POLL_AGAIN_MS = 1_000;

type PolledAccount = BenchAccount & { readonly baseUrl: string };

/**
 * Polls a second, against a worker that only makes the same HTTP call and delays the job again, and the same over the
 * second API, in turns. Every payout stays in progress.
 */
export async function run({ quick, note }: BenchmarkRun): Promise<BenchmarkResult> {
  const { sizes, iterations, seconds } = quick
    ? { sizes: [1_000], iterations: 1, seconds: 2 }
    : { sizes: [10_000, 100_000], iterations: 7, seconds: 5 };
  const redis = await startMeasuredRedis(['--appendfsync', 'no']);
  const server = fork(SERVER);
  const [baseUrl] = (await once(server, 'message')) as [string];
  try {
    const rows: Awaited<ReturnType<typeof compare>>[] = [];
    for (const size of sizes) {
      const account = { ...newAccount(), baseUrl };
      const payouts = await preparePayouts(redis, account, size);
      await addBareJobs(redis, account, payouts);
      await addOwnJobs(redis, account, payouts);
      note(`${size} payouts are in progress`);
      rows.push(await compare(redis, account, { size, iterations, seconds }));
    }
    return {
      rows,
      figures: rows.flatMap(({ inProgress, ratio, apiRatio }) => [
        figure(`polls with ${inProgress} in progress, as a part of the bare loop`, ratio, { atLeast: 0.85 }),
        figure(`polls with ${inProgress} in progress: the faster API / the slower`, slowness(apiRatio), {
          atMost: 1.05,
        }),
      ]),
    };
  } finally {
    server.disconnect();
    await redis.close();
  }
}

/** In turns, because other load on the machine then affects both; each iteration gives a ratio, and their median is the result. */
async function compare(
  redis: MeasuredRedis,
  account: PolledAccount,
  { size, iterations, seconds }: Record<'size' | 'iterations' | 'seconds', number>,
) {
  const measured: { readonly bare: Pace; readonly own: Pace; readonly second: Pace }[] = [];
  for (let iteration = 0; iteration < iterations; iteration += 1) {
    const bare = await pollBare(redis, account, seconds);
    // Each API is the first in every other iteration.
    const paces: Partial<Record<GatewayApi, Pace>> = {};
    for (const api of iteration % 2 === 0 ? GATEWAY_APIS : GATEWAY_APIS.toReversed())
      paces[api] = await pollOwn(redis, account, seconds, api);
    const { v1: own, v2: second } = paces as Record<GatewayApi, Pace>;
    measured.push({ bare, own, second });
  }
  const medianOf = (read: (each: (typeof measured)[number]) => number): number => median(measured.map(read));
  return {
    inProgress: size,
    barePerSecond: medianOf(({ bare }) => bare.perSecond),
    perSecond: medianOf(({ own }) => own.perSecond),
    v2PerSecond: medianOf(({ second }) => second.perSecond),
    ratio: medianOf(({ bare, own }) => own.perSecond / bare.perSecond),
    apiRatio: medianOf(({ own, second }) => second.perSecond / own.perSecond),
    bareCpuMsPerPoll: medianOf(({ bare }) => bare.cpuMsPerPoll),
    cpuMsPerPoll: medianOf(({ own }) => own.cpuMsPerPoll),
    v2CpuMsPerPoll: medianOf(({ second }) => second.cpuMsPerPoll),
  };
}

const slowness = (ratio: number) => Math.max(ratio, 1 / ratio);

async function preparePayouts(
  redis: MeasuredRedis,
  { platformId }: PolledAccount,
  size: number,
): Promise<SentPayout[]> {
  const account = await holdLedger(redis.url, platformId);
  const payouts = await putInProgress(account, samplePayouts(size));
  await account.close();
  return payouts;
}

async function addBareJobs(
  redis: MeasuredRedis,
  account: PolledAccount,
  payouts: readonly SentPayout[],
): Promise<void> {
  const queue = new Queue(QUEUE_NAMES.transactionstatus, bareOptions(redis, account));
  for (const step of stepsOf(payouts)) {
    await queue.addBulk(
      step.map((payout) => {
        const { name, data, opts } = sampleJob(payout);
        return { name, data: { ...data, gatewayId: payout.gatewayId }, opts: { ...opts, delay: 1 } };
      }),
    );
  }
  await queue.close();
}

async function pollBare(redis: MeasuredRedis, account: PolledAccount, seconds: number): Promise<Pace> {
  const { gateway, polls } = countingGateway(account, 'v1');
  const worker = new Worker<SentPayout>(
    QUEUE_NAMES.transactionstatus,
    async (job, token) => {
      await gateway.getStatus(job.data.gatewayId);
      await job.moveToDelayed(Date.now() + POLL_AGAIN_MS, token);
      throw new DelayedError();
    },
    { ...bareOptions(redis, account), concurrency: CONCURRENCY },
  );
  const pace = await measurePace(polls, seconds);
  await worker.close();
  gateway.close();
  return pace;
}

function bareOptions(redis: MeasuredRedis, { platformId }: PolledAccount) {
  return { connection: { ...redis.address, maxRetriesPerRequest: null }, prefix: `bare:${platformId}` };
}

async function addOwnJobs(
  redis: MeasuredRedis,
  { platformId }: PolledAccount,
  payouts: readonly SentPayout[],
): Promise<void> {
  const { connection, close } = openLedger(redis.url, platformId);
  const queues = new PayoutQueues(connection);
  for (const step of stepsOf(payouts)) await queues.addStatusJobs(step, 1);
  await queues.close();
  await close();
}

async function pollOwn(redis: MeasuredRedis, account: PolledAccount, seconds: number, api: GatewayApi): Promise<Pace> {
  const { ledger, connection, close } = openLedger(redis.url, account.platformId);
  const forWorker = connectRedis(redis.url, 'queue');
  const queues = new PayoutQueues(connection);
  const { gateway, polls } = countingGateway(account, api);
  const jobs = new StatusJobs({
    queueRedis: forWorker,
    queues,
    clock: systemClock,
    ledger,
    polledLedger: ledger,
    audience: AUDIENCE,
    control: undefined,
    gateway,
    settings: {
      ...DEFAULT_ACCOUNT_SETTINGS,
      ...{ pollMinMs: POLL_AGAIN_MS, pollMaxMs: POLL_AGAIN_MS, pollRate: 1_000_000 },
    },
    observer: noObserver,
    logger: silentLogger,
  });
  const pace = await measurePace(polls, seconds);
  await jobs.close();
  gateway.close();
  await queues.close();
  await close();
  await closeRedis(forWorker);
  return pace;
}

function stepsOf(payouts: readonly SentPayout[]): (readonly SentPayout[])[] {
  return Array.from({ length: Math.ceil(payouts.length / JOBS_PER_BULK) }, (_, index) =>
    payouts.slice(index * JOBS_PER_BULK, (index + 1) * JOBS_PER_BULK),
  );
}

function countingGateway(account: PolledAccount, api: GatewayApi) {
  const client = openGateway({ ...account, api, clock: systemClock, logger: silentLogger });
  let count = 0;
  const gateway = Object.create(client, {
    getStatus: {
      value: async (gatewayId: string) => {
        const status = await client.getStatus(gatewayId);
        count += 1;
        return status;
      },
    },
    close: {
      value: () => {
        client.close();
      },
    },
  }) as typeof client;
  return {
    gateway,
    polls: (): number => count,
  };
}

interface Pace {
  readonly perSecond: number;
  readonly cpuMsPerPoll: number;
}

/** Begins a second after the start, when the code is warm. */
async function measurePace(polls: () => number, seconds: number): Promise<Pace> {
  await delay(1_000);
  const [startedAt, cpuBefore, before] = [performance.now(), process.cpuUsage(), polls()];
  await delay(seconds * 1_000);
  const count = polls() - before;
  const { user, system } = process.cpuUsage(cpuBefore);
  return {
    perSecond: (count * 1_000) / (performance.now() - startedAt),
    cpuMsPerPoll: (user + system) / 1_000 / count,
  };
}

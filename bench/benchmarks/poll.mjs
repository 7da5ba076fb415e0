import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { DelayedError, Queue, Worker } from 'bullmq';
import { systemClock } from '../../dist/clock.js';
import { connectRedis, createGatewayClient, silentLogger } from '../../dist/index.js';
import { PayoutQueues } from '../../dist/queues/payout-queues.js';
import { closeRedis } from '../../dist/redis.js';
import { StatusJobs } from '../../dist/worker/status-jobs.js';
import { noObserver } from '../../dist/worker/worker-observer.js';
import { connectAccount, putInProgress } from '../ledger-account.mjs';
import { startMeasuredRedis } from '../measured-redis.mjs';
import { figure } from '../report.mjs';
import { newAccount, sampleJob, samplePayouts } from '../sample-payouts.mjs';
import { median } from '../statistics.mjs';

const SERVER = new URL('../status-server.mjs', import.meta.url);
const CONCURRENCY = 20;
const JOBS_PER_BULK = 1_000;

/** Every payout is due again after this time, so that there is always one to poll. */
const POLL_AGAIN_MS = 1_000;

/**
 * Polls a second, against a worker that only makes the same HTTP call and delays the job again, in turns.
 * Every payout stays in progress.
 */
export async function run({ quick, note }) {
  const [sizes, rounds, seconds] = quick ? [[1_000], 1, 2] : [[10_000, 100_000], 3, 8];
  const redis = await startMeasuredRedis(['--appendfsync', 'no']);
  const server = fork(SERVER);
  const [baseUrl] = await once(server, 'message');
  try {
    const rows = [];
    for (const size of sizes) {
      const account = { ...newAccount(), baseUrl };
      const payouts = await preparePayouts(redis, account, size);
      note(`${size} payouts are in progress`);
      const rates = { bare: [], own: [] };
      for (let round = 0; round < rounds; round += 1) {
        rates.bare.push(await pollBare(redis, account, payouts, seconds));
        rates.own.push(await pollOwn(redis, account, payouts, seconds));
      }
      const [barePerSecond, perSecond] = [median(rates.bare), median(rates.own)];
      rows.push({ inProgress: size, barePerSecond, perSecond, ratio: perSecond / barePerSecond });
    }
    return {
      rows,
      figures: rows.map(({ inProgress, ratio }) =>
        figure(`polls with ${inProgress} in progress, as a part of the bare loop`, ratio, { atLeast: 0.7 }),
      ),
    };
  } finally {
    server.disconnect();
    await redis.close();
  }
}

async function preparePayouts(redis, { platformId }, size) {
  const account = await connectAccount(redis.url, platformId);
  const payouts = await putInProgress(account, samplePayouts(size));
  await account.close();
  return payouts;
}

async function pollBare(redis, account, payouts, seconds) {
  const prefix = `bare:${account.platformId}`;
  const { host, port } = redis.client.options;
  const connection = { host, port, maxRetriesPerRequest: null };
  const queue = new Queue('transactionstatus', { connection, prefix });
  for (let start = 0; start < payouts.length; start += JOBS_PER_BULK) {
    const jobs = payouts.slice(start, start + JOBS_PER_BULK).map((payout) => {
      const { name, data, opts } = sampleJob(payout);
      return { name, data: { ...data, txhash: payout.txhash }, opts: { ...opts, delay: 1 } };
    });
    await queue.addBulk(jobs);
  }
  const { gateway, polls } = countingGateway(account);
  const worker = new Worker(
    'transactionstatus',
    async (job, token) => {
      await gateway.transactionStatus({ txhash: job.data.txhash });
      await job.moveToDelayed(Date.now() + POLL_AGAIN_MS, token);
      throw new DelayedError();
    },
    { connection, prefix, concurrency: CONCURRENCY },
  );
  const rate = await rateOver(polls, seconds);
  await worker.close();
  gateway.close();
  await queue.obliterate({ force: true });
  await queue.close();
  return rate;
}

async function pollOwn(redis, account, payouts, seconds) {
  const commands = connectRedis(redis.url, 'commands');
  const worker = connectRedis(redis.url, 'queue');
  const { ledger, close } = await lookAtAccount(redis, account);
  const { prefix } = ledger.connection.keys;
  const queues = new PayoutQueues(commands, { prefix, wallNow: Date.now });
  for (let start = 0; start < payouts.length; start += JOBS_PER_BULK) {
    await queues.addStatusJobs(payouts.slice(start, start + JOBS_PER_BULK), 1);
  }
  const { gateway, polls } = countingGateway(account);
  const jobs = new StatusJobs({
    redis: worker,
    prefix,
    clock: systemClock,
    ledger,
    gateway,
    pollMinMs: POLL_AGAIN_MS,
    pollMaxMs: POLL_AGAIN_MS,
    pollRate: 1_000_000,
    observer: noObserver,
    logger: silentLogger,
  });
  const rate = await rateOver(polls, seconds);
  await jobs.close();
  gateway.close();
  await queues.transactionstatus.obliterate({ force: true });
  await queues.close();
  await close();
  await closeRedis(commands);
  await closeRedis(worker);
  return rate;
}

async function lookAtAccount(redis, { platformId }) {
  const { connectLedger } = await import('../../dist/ledger/ledger-connection.js');
  const { PayoutLedger } = await import('../../dist/ledger/payout-ledger.js');
  const connection = connectRedis(redis.url, 'commands');
  return {
    ledger: new PayoutLedger(connectLedger(connection, platformId, systemClock)),
    close: () => closeRedis(connection),
  };
}

function countingGateway(account) {
  const client = createGatewayClient({ ...account, clock: systemClock, logger: silentLogger });
  let count = 0;
  return {
    gateway: {
      async transactionStatus(request) {
        const status = await client.transactionStatus(request);
        count += 1;
        return status;
      },
      close: () => client.close(),
    },
    polls: () => count,
  };
}

/** Counts a second after the start, when the code is warm. */
async function rateOver(polls, seconds) {
  await delay(1_000);
  const [startedAt, before] = [performance.now(), polls()];
  await delay(seconds * 1_000);
  return ((polls() - before) * 1_000) / (performance.now() - startedAt);
}

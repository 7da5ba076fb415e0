/**
 * Moves the withdrawals that wait in a BullMQ queue of your own into the payout queue. docs/from-bullmq.md says what to
 * do before. It may be ended and run again at any time: a job is removed only once its payout is accepted.
 *
 *     REDIS_URL=… GATEWAY_PLATFORM_ID=… OLD_QUEUE=withdrawals npx tsx examples/from-bullmq.ts
 */
import { Queue, type Job } from 'bullmq';
import { InvalidInputError, PayoutProducer, type PayoutInput } from 'payout-queue/producer';

const { REDIS_URL: redisUrl = 'redis://127.0.0.1:6379', GATEWAY_PLATFORM_ID: platformId = '4242' } = process.env;
const { OLD_QUEUE: name = 'withdrawals' } = process.env;

/** Yours: what your jobs have. */
interface Withdrawal {
  readonly orderId: string;
  readonly currency: number;
  readonly amount: string;
  readonly wallet: string;
}

/** The payoutId must be the order's own id, not the job's: if the order comes another way too, it is the same payout. */
function toPayout({ data, timestamp, delay }: Job<Withdrawal>): PayoutInput {
  const { orderId: payoutId, currency: paymentId, amount, wallet: addressTo } = data;
  const notBefore = delay > 0 ? new Date(timestamp + delay).toISOString() : undefined;
  return { payoutId, paymentId, amount, addressTo, ...(notBefore && { notBefore }) };
}

const queue = new Queue<Withdrawal>(name, { connection: { url: redisUrl } });
const producer = new PayoutProducer({ redisUrl, platformId: Number(platformId) });
const say = (text: string) => process.stdout.write(`${text}\n`);

/** A worker of the old queue would send beside ours, and sooner or later within the same second. */
async function requireStopped(): Promise<void> {
  const workers = await queue.getWorkersCount();
  if (workers > 0) throw new Error(`${name} still has ${workers} workers: stop them first`);
  if (!(await queue.isPaused())) throw new Error(`pause ${name} first: await queue.pause()`);
}

let moved = 0;
const doubtful: string[] = [];
try {
  await requireStopped();
  const jobs = await queue.getJobs(['waiting', 'prioritized', 'delayed'], 0, -1, true);
  for (const job of jobs) {
    // Its attempt may have reached the gateway before it failed.
    if (job.attemptsStarted > 0) {
      doubtful.push(`${job.data.orderId}: was tried ${job.attemptsStarted} times`);
      continue;
    }
    try {
      await producer.enqueue(toPayout(job));
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      doubtful.push(`${job.data.orderId}: ${error.message}`);
      continue;
    }
    await job.remove();
    moved += 1;
  }
  for (const { data } of await queue.getJobs(['active', 'failed']))
    doubtful.push(`${data.orderId}: failed, or was under way`);
  say(`${moved} moved`);
  for (const line of doubtful) say(line);
  if (doubtful.length > 0) say('Look for these in the records of the gateway. Enqueue only what is not there.');
} finally {
  await producer.close();
  await queue.close();
}

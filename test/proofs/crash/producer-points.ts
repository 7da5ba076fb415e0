import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import type { PayoutInput } from '../../../src/ledger/payout.js';
import { until } from '../../support/until.js';
import { findBrokenPayments, openRun, type Point, type Run, type RunOptions } from './open-run.js';
import type { CrashedProgram, Tried } from './try-points.js';

const CHILD = fileURLToPath(new URL('producer-child.mjs', import.meta.url));
const SENT_WITHIN_MS = 60_000;
/** Every command of a producer is told apart: it has few. */
const OCCURRENCES = '20';

/** What the application enqueues: one after the other, at the same time, and as a list in small chunks. */
export const PLAN = {
  each: [payout(0), payout(1)],
  together: [payout(2), payout(3)],
  chunks: [[payout(4)], [payout(5)], [payout(6)]],
};
export const PAYOUTS = [...PLAN.each, ...PLAN.together, ...PLAN.chunks.flat()];

/**
 * An application that ends while it enqueues. What it was told to be accepted is sent without it; then it enqueues all again,
 * as an application does whose calls had no answer, and everything is paid once.
 */
export const CRASHED_PRODUCER: CrashedProgram = { name: 'producer', recordSteps, tryPoint };

function payout(index: number): PayoutInput {
  return { payoutId: `P-${index}`, paymentId: 1, amount: '1', addressTo: `wallet-address${index}` };
}

/** Runs the application to its end. @returns the payouts that were answered, and how it ended */
async function enqueueAll(
  run: Run,
  environment: Readonly<Record<string, string>>,
): Promise<{ readonly answered: string[]; readonly signal: string | null }> {
  const file = join(run.dir, 'answers');
  const child = run.startProgram([CHILD], {
    ENQUEUE_PLAN: JSON.stringify(PLAN),
    ENQUEUE_ANSWERS: file,
    CRASH_OCCURRENCES: OCCURRENCES,
    ...environment,
  });
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  if (signal === null && code !== 0) throw new Error(`the application ended with code ${String(code)}`);
  const text = await readFile(file, 'utf8').catch(() => '');
  return { answered: text.split('\n').filter((line) => line !== ''), signal };
}

async function recordSteps(options: RunOptions): Promise<string[]> {
  const run = await openRun(options);
  try {
    const file = join(run.dir, 'steps');
    const { answered } = await enqueueAll(run, { CRASH_RECORD: file });
    if (answered.length !== PAYOUTS.length) throw new Error(`only ${answered.join(', ')} were answered`);
    run.start({});
    await untilCompleted(run, answered);
    const order = run.sandbox.payments().map(({ addressTo }) => addressTo);
    const wanted = PAYOUTS.map(({ addressTo }) => addressTo);
    if (order.join() !== wanted.join()) throw new Error(`sent in the order ${order.join(', ')}`);
    return [...new Set((await readFile(file, 'utf8')).trim().split('\n'))];
  } finally {
    await run.close();
  }
}

async function tryPoint(options: RunOptions, { step, side }: Point): Promise<Tried> {
  const run = await openRun(options);
  const redis = new Redis(options.redis.url);
  try {
    run.start({});
    const { answered, signal } = await enqueueAll(run, { CRASH_STEP: step, CRASH_SIDE: side });
    for (const payoutId of answered) await insistOnJob(run, redis, payoutId);
    await untilCompleted(run, answered);
    for (const each of PAYOUTS) await run.producer.enqueue(each);
    await untilCompleted(
      run,
      PAYOUTS.map(({ payoutId }) => payoutId),
    );
    return { isReached: signal === 'SIGKILL', broken: findBroken(run) };
  } catch (error) {
    return { isReached: true, broken: (error as Error).message };
  } finally {
    redis.disconnect();
    await run.close();
  }
}

/** At every moment a queued payout has its job, or the outbox says that it has none: else only a count of all jobs finds it. */
export async function insistOnJob({ producer, platformId }: Run, redis: Redis, payoutId: string): Promise<void> {
  const readState = async (): Promise<string | undefined> => (await producer.get(payoutId))?.state;
  const state = await readState();
  if (state === undefined) throw new Error(`${payoutId} was answered and is lost`);
  if (state !== 'queued') return;
  // In this order: a job is added first and taken out of the outbox then.
  if ((await redis.zscore(`{payouts:${platformId}}:outbox`, `queued ${payoutId}`)) !== null) return;
  if ((await redis.exists(`{payouts:${platformId}}:withdraw:${payoutId}~0`)) === 1) return;
  if ((await readState()) === 'queued')
    throw new Error(`${payoutId} was answered, and has neither job nor outbox entry`);
}

export async function untilCompleted({ producer }: Run, payoutIds: readonly string[]): Promise<void> {
  const isCompleted = async (payoutId: string): Promise<boolean> =>
    (await producer.get(payoutId))?.state === 'completed';
  await until(
    `${payoutIds.join(', ')} are completed`,
    async () => (await Promise.all(payoutIds.map(isCompleted))).every(Boolean),
    SENT_WITHIN_MS,
  );
}

export function findBroken(run: Run): string | undefined {
  const paid = run.sandbox.payments().length;
  return findBrokenPayments(run) ?? (paid === PAYOUTS.length ? undefined : `${paid} payments`);
}

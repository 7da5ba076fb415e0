import { once } from 'node:events';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import type { PayoutInput } from '../../../src/ledger/payout.js';
import { until } from '../../support/until.js';
import { findBrokenPayments, openRun, type Run } from './open-run.js';
import type { CrashedProgram } from './try-points.js';

const CHILD = fileURLToPath(new URL('producer-child.mjs', import.meta.url));
const SENT_WITHIN_MS = 60_000;
/** Every command of a producer is told apart: it has few. */
export const OCCURRENCES = '20';

/** What the application enqueues: one after the other, at the same time, and as a list in small chunks. */
export const PLAN = {
  each: [payout(0), payout(1)],
  together: [payout(2), payout(3)],
  chunks: [[payout(4)], [payout(5)], [payout(6)]],
};
const PAYOUTS = [...PLAN.each, ...PLAN.together, ...PLAN.chunks.flat()];
const WANTED = PAYOUTS.map(({ addressTo }) => addressTo);

function payout(index: number): PayoutInput {
  return { payoutId: `P-${index}`, paymentId: 1, amount: '1', addressTo: `wallet-address${index}` };
}

/** What a program that enqueues came to. */
export interface Asked {
  /** Payouts that are to be paid and were answered. */
  readonly answered: readonly string[];
  /** What else was promised, to be checked whatever comes then. */
  readonly promised?: (() => Promise<void>) | undefined;
  readonly signal: string | null;
}

/**
 * A program that ends while it enqueues. What it answered is there and is sent without it. Then all is asked again, as by an
 * application whose calls had no answer, and everything is paid once.
 * @param ask - runs the program to its end
 * @param keepsOrder - of calls at the same time, too
 */
export function crashedEnqueuer(
  name: string,
  ask: (run: Run, environment: Readonly<Record<string, string>>) => Promise<Asked>,
  { keepsOrder }: { readonly keepsOrder: boolean },
): CrashedProgram {
  return {
    name,
    async recordSteps(options) {
      const run = await openRun(options);
      try {
        const file = join(run.dir, 'steps');
        const { answered, promised } = await ask(run, { CRASH_RECORD: file });
        if (answered.length !== PAYOUTS.length) throw new Error(`only ${answered.join(', ')} were answered`);
        run.start({});
        await untilCompleted(run, answered);
        await promised?.();
        const order = run.sandbox.payments().map(({ addressTo }) => addressTo);
        if (keepsOrder && order.join() !== WANTED.join()) throw new Error(`sent in the order ${order.join(', ')}`);
        return [...new Set((await readFile(file, 'utf8')).trim().split('\n'))];
      } finally {
        await run.close();
      }
    },
    async tryPoint(options, { step, side }) {
      const run = await openRun(options);
      const redis = new Redis(options.redis.url);
      try {
        run.start({});
        const { answered, promised, signal } = await ask(run, { CRASH_STEP: step, CRASH_SIDE: side });
        for (const payoutId of answered) await insistOnJob(run, redis, payoutId);
        await untilCompleted(run, answered);
        await promised?.();
        const again = await ask(run, {});
        await untilCompleted(
          run,
          PAYOUTS.map(({ payoutId }) => payoutId),
        );
        await again.promised?.();
        const paid = run.sandbox.payments().length;
        const broken = findBrokenPayments(run) ?? (paid === PAYOUTS.length ? undefined : `${paid} payments`);
        return { isReached: signal === 'SIGKILL', broken };
      } catch (error) {
        return { isReached: true, broken: (error as Error).message };
      } finally {
        redis.disconnect();
        await run.close();
      }
    },
  };
}

/** The application enqueues all, in a process of its own. */
const enqueueAll = async (run: Run, environment: Readonly<Record<string, string>>): Promise<Asked> => {
  const file = join(run.dir, 'answers');
  await rm(file, { force: true });
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
};

export const CRASHED_PRODUCER = crashedEnqueuer('producer', enqueueAll, { keepsOrder: true });

/** At every moment a queued payout has its job, or the outbox says that it has none: else only a count of all jobs finds it. */
async function insistOnJob({ producer, platformId }: Run, redis: Redis, payoutId: string): Promise<void> {
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

async function untilCompleted({ producer }: Run, payoutIds: readonly string[]): Promise<void> {
  const isCompleted = async (payoutId: string): Promise<boolean> =>
    (await producer.get(payoutId))?.state === 'completed';
  await until(
    `${payoutIds.join(', ')} are completed`,
    async () => (await Promise.all(payoutIds.map(isCompleted))).every(Boolean),
    SENT_WITHIN_MS,
  );
}

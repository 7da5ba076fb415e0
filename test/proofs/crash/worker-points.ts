import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '../../support/until.js';
import { UNSIGNED } from '../signing.js';
import type { CrashedProgram, Tried } from './try-points.js';
import { findBrokenPayments, openRun, type Point, type Run, type RunOptions } from './open-run.js';

const PAYOUTS = 2;
const SETTLED_WITHIN_MS = 60_000;

/** What differs where payouts are signed: more lines of the journal, and the script that holds. */
const SIGNED_STEPS = /^(journal|redis hold)/;

/** A worker that ends while it sends two payouts; another one follows it. */
export const CRASHED_WORKER: CrashedProgram = { name: 'worker', recordSteps, tryPoint };

async function openWithPayouts(options: RunOptions): Promise<Run> {
  const run = await openRun(options);
  await run.producer.enqueueMany(
    Array.from({ length: PAYOUTS }, (_, index) => ({
      payoutId: `P-${index}`,
      paymentId: 1,
      amount: '1',
      addressTo: `wallet-address${index}`,
    })),
  );
  return run;
}

async function isSettled({ producer }: Run, { isSigned }: RunOptions): Promise<boolean> {
  const { completed, unknown, held } = await producer.stats();
  return completed + unknown === PAYOUTS && held === (isSigned ? 1 : 0);
}

/** The names of all steps that a worker takes from its start until two payouts are completed and it has ended. */
async function recordSteps(options: RunOptions): Promise<string[]> {
  const run = await openWithPayouts(options);
  try {
    const file = join(run.dir, 'steps');
    const worker = run.start({ CRASH_RECORD: file });
    await until('the recorded run is settled', async () => isSettled(run, options), SETTLED_WITHIN_MS);
    const ended = new Promise((resolve) => worker.once('exit', resolve));
    worker.kill('SIGTERM');
    await ended;
    const steps = [...new Set((await readFile(file, 'utf8')).trim().split('\n'))];
    return options.isSigned ? steps.filter((step) => SIGNED_STEPS.test(step)) : steps;
  } finally {
    await run.close();
  }
}

async function tryPoint(options: RunOptions, { step, side }: Point): Promise<Tried> {
  const run = await openWithPayouts(options);
  try {
    const first = run.start({ CRASH_STEP: step, CRASH_SIDE: side });
    const died = new Promise<true>((resolve) =>
      first.once('exit', () => {
        resolve(true);
      }),
    );
    await until(
      'it died or was done',
      async () => first.signalCode !== null || (await isSettled(run, options)),
      SETTLED_WITHIN_MS,
    );
    if (first.signalCode === null) first.kill('SIGTERM');
    await died;
    const isReached = first.signalCode === 'SIGKILL';
    run.start({});
    await until('every payout is settled', async () => isSettled(run, options), SETTLED_WITHIN_MS);
    return { isReached, broken: await findBroken(run, options) };
  } catch (error) {
    return { isReached: true, broken: (error as Error).message };
  } finally {
    await run.close();
  }
}

async function findBroken(run: Run, { isSigned }: RunOptions): Promise<string | undefined> {
  const broken = findBrokenPayments(run);
  if (broken !== undefined) return broken;
  const { sandbox, producer } = run;
  const paid = new Set(sandbox.payments().map(({ addressTo }) => addressTo));
  for (let index = 0; index < PAYOUTS; index += 1) {
    const payout = await producer.get(`P-${index}`);
    if (payout?.state === 'completed' && !paid.has(payout.addressTo)) return `P-${index} is completed but was not paid`;
  }
  if (!isSigned) return undefined;
  const { payoutId, addressTo } = UNSIGNED;
  const { state } = (await producer.get(payoutId)) ?? {};
  return state === 'held' && !paid.has(addressTo) ? undefined : `${payoutId}, which nobody signed, is ${String(state)}`;
}

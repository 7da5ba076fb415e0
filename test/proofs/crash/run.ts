/** `npm run crash-points [-- --jobs 6] [--only worker|producer|door]`; `--signed`: the worker at the steps that this adds. */
import { parseArgs } from 'node:util';
import { startLocalRedis } from '../../../src/sandbox/local-redis.js';
import { until } from '../../support/until.js';
import { untilEnded } from '../chaos/processes.js';
import { FLAG, TEXT, report } from '../command-line.js';
import { UNSIGNED } from '../signing.js';
import { CRASHED_DOOR, CRASHED_PRODUCER } from './enqueuer-points.js';
import { WITHIN_MS, type CrashedProgram, type Run, tryPoints } from './try-points.js';

const PAYOUTS = ['P-0', 'P-1'];

const CRASHED_WORKER: CrashedProgram = {
  name: 'worker',
  async record(run, environment) {
    await enqueue(run);
    const worker = run.startWorker(environment);
    await until('the recorded run is settled', async () => isSettled(run), WITHIN_MS);
    worker.kill('SIGTERM');
    await untilEnded(worker);
  },
  async crash(run, environment) {
    await enqueue(run);
    const first = run.startWorker(environment);
    await until('it died or was done', async () => first.signalCode !== null || isSettled(run), WITHIN_MS);
    if (first.signalCode === null) first.kill('SIGTERM');
    const signal = await untilEnded(first);
    run.startWorker();
    await until('every payout is settled', async () => isSettled(run), WITHIN_MS);
    await insistOnStates(run);
    return signal === 'SIGKILL';
  },
  // What differs where payouts are signed: more lines of the journal, and the script that holds.
  isTried: (step, { isSigned }) => !isSigned || /^(journal|redis hold)/.test(step),
};

async function enqueue({ producer }: Run) {
  const payouts = PAYOUTS.map((payoutId) => ({ payoutId, paymentId: 1, amount: '1', addressTo: `wallet-${payoutId}` }));
  await producer.enqueueMany(payouts);
}

async function isSettled({ producer, isSigned }: Run) {
  const { completed, unknown, held } = await producer.stats();
  return completed + unknown === PAYOUTS.length && held === (isSigned ? 1 : 0);
}

async function insistOnStates({ sandbox, producer, isSigned }: Run) {
  const paid = new Set(sandbox.payments().map(({ addressTo }) => addressTo));
  for (const payoutId of PAYOUTS) {
    const { state, addressTo = '' } = (await producer.get(payoutId)) ?? {};
    if (state === 'completed' && !paid.has(addressTo)) throw new Error(`${payoutId} is completed but was not paid`);
  }
  if (!isSigned) return;
  const { state } = (await producer.get(UNSIGNED.payoutId)) ?? {};
  if (state !== 'held' || paid.has(UNSIGNED.addressTo)) throw new Error(`what nobody signed is ${String(state)}`);
}

const { values } = parseArgs({ options: { jobs: { ...TEXT, default: '6' }, signed: FLAG, only: TEXT } });

async function main() {
  const { signed: isSigned, only, jobs } = values;
  const programs = isSigned ? [CRASHED_WORKER] : [CRASHED_WORKER, CRASHED_PRODUCER, CRASHED_DOOR];
  const chosen = programs.filter(({ name }) => only === undefined || name === only);
  if (chosen.length === 0) throw new Error(`--only must be one of ${programs.map(({ name }) => name).join(', ')}`);
  const redis = await startLocalRedis();
  try {
    let [passed, failed] = [0, 0];
    for (const program of chosen) {
      const tried = await tryPoints(program, { redis, isSigned }, Number(jobs));
      passed += tried.passed;
      failed += tried.failed;
    }
    return report(passed, failed) ? 0 : 1;
  } finally {
    await redis.stop();
  }
}

process.exitCode = await main();

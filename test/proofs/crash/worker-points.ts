import { until } from '../../support/until.js';
import { UNSIGNED } from '../signing.js';
import { untilEnded, WITHIN_MS, type CrashedProgram, type Run } from './try-points.js';

const PAYOUTS = ['P-0', 'P-1'];

/** A worker that ends while it sends two payouts; another one follows it. */
export const CRASHED_WORKER: CrashedProgram = {
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

async function enqueue({ producer }: Run): Promise<void> {
  const payouts = PAYOUTS.map((payoutId) => ({ payoutId, paymentId: 1, amount: '1', addressTo: `wallet-${payoutId}` }));
  await producer.enqueueMany(payouts);
}

async function isSettled({ producer, isSigned }: Run): Promise<boolean> {
  const { completed, unknown, held } = await producer.stats();
  return completed + unknown === PAYOUTS.length && held === (isSigned ? 1 : 0);
}

async function insistOnStates({ sandbox, producer, isSigned }: Run): Promise<void> {
  const paid = new Set(sandbox.payments().map(({ addressTo }) => addressTo));
  for (const payoutId of PAYOUTS) {
    const { state, addressTo = '' } = (await producer.get(payoutId)) ?? {};
    if (state === 'completed' && !paid.has(addressTo)) throw new Error(`${payoutId} is completed but was not paid`);
  }
  if (!isSigned) return;
  const { state } = (await producer.get(UNSIGNED.payoutId)) ?? {};
  if (state !== 'held' || paid.has(UNSIGNED.addressTo)) throw new Error(`what nobody signed is ${String(state)}`);
}

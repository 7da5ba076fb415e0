import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { createToken, RIGHTS } from '../../../src/http/tokens.js';
import type { PayoutInput } from '../../../src/ledger/payout.js';
import { findFreePort } from '../../../src/sandbox/local-redis.js';
import { findBuiltProgram } from '../../support/built-program.js';
import { until } from '../../support/until.js';
import { untilEnded, type Environment } from '../chaos/processes.js';
import { UNSIGNED } from '../signing.js';
import type { CrashedProgram, Run } from './run.js';

// After each outcome that is unknown a worker waits half a minute.
const WITHIN_MS = 180_000;

const SENT = ['P-0', 'P-1'];

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
    await run.openWorker();
    await until('every payout is settled', async () => isSettled(run), WITHIN_MS);
    await insistOnStates(run);
    return signal === 'SIGKILL';
  },
  // What differs where payouts are signed: more lines of the journal, and the script that holds.
  isTried: (step, { isSigned }) => !isSigned || /^(journal|redis hold)/.test(step),
};

const FOUND = 'P-found';

/**
 * A withdrawal is paid without a response, and the worker that asks for it by its order id ends before and after each step
 * of journal and ledger. The next one completes it without a person, unless the gateway never got it.
 */
export const CRASHED_JANITOR: CrashedProgram = {
  name: 'janitor',
  api: 'v2',
  async record(run, environment) {
    const worker = await startJanitor(run, environment);
    await until('the payout is found and completed', async () => isFound(run), WITHIN_MS);
    worker.kill('SIGTERM');
    await untilEnded(worker);
  },
  async crash(run, environment) {
    const first = await startJanitor(run, environment);
    await until('it died or was done', async () => first.signalCode !== null || isFound(run), WITHIN_MS);
    if (first.signalCode === null) first.kill('SIGTERM');
    const signal = await untilEnded(first);
    await run.openWorker();
    await until(
      'the payout is completed, or was never sent',
      async () => (await isFound(run)) || isUnsent(run),
      WITHIN_MS,
    );
    const { history = [], gatewayId } = (await run.producer.get(FOUND)) ?? {};
    const [payment, ...others] = run.sandbox.payments();
    if (others.length > 0 || payment?.gatewayId !== gatewayId) throw new Error(`${FOUND} has another payment`);
    if (history.some(({ by }) => by !== undefined)) throw new Error(`${FOUND} needed a person`);
    return signal === 'SIGKILL';
  },
  // The others are those of the worker.
  isTried: (step) => /^(journal|redis (finish-send|note-look-up|change-payouts|mark-sends-unknown|zrem))/.test(step),
};

async function startJanitor(run: Run, environment: Environment) {
  run.sandbox.setFaults([{ kind: 'drop-after', times: 1 }]);
  await run.producer.enqueue({ payoutId: FOUND, paymentId: 1, amount: '1', addressTo: `wallet-${FOUND}` });
  return run.startWorker({ CRASH_OCCURRENCES: '10', ...environment });
}

/** The worker ended before the first byte: it was asked for, and nothing else may come of it. */
async function isUnsent({ producer, sandbox }: Run) {
  const { state, lookUp } = (await producer.get(FOUND)) ?? {};
  return state === 'unknown' && lookUp?.answer === 'refused' && sandbox.payments().length === 0;
}

const isFound = async ({ producer }: Run) => (await producer.get(FOUND))?.state === 'completed';

async function enqueue({ producer }: Run) {
  const payouts = SENT.map((payoutId) => ({ payoutId, paymentId: 1, amount: '1', addressTo: `wallet-${payoutId}` }));
  await producer.enqueueMany(payouts);
}

async function isSettled({ producer, isSigned }: Run) {
  const { completed, unknown, held } = await producer.stats();
  return completed + unknown === SENT.length && held === (isSigned ? 1 : 0);
}

async function insistOnStates({ sandbox, producer, isSigned }: Run) {
  const paid = new Set(sandbox.payments().map(({ addressTo }) => addressTo));
  for (const payoutId of SENT) {
    const { state, addressTo = '' } = (await producer.get(payoutId)) ?? {};
    if (state === 'completed' && !paid.has(addressTo)) throw new Error(`${payoutId} is completed but was not paid`);
  }
  if (!isSigned) return;
  const { state } = (await producer.get(UNSIGNED.payoutId)) ?? {};
  if (state !== 'held' || paid.has(UNSIGNED.addressTo)) throw new Error(`what nobody signed is ${String(state)}`);
}

const CHILD = fileURLToPath(new URL('producer-child.mjs', import.meta.url));
const OCCURRENCES = { CRASH_OCCURRENCES: '20' };

const payout = (name: number | string) => ({
  ...{ payoutId: `P-${name}`, paymentId: 1, amount: '1', addressTo: `wallet-address${name}` },
});

const PLAN = {
  each: [payout(0), payout(1)],
  together: [payout(2), payout(3)],
  chunks: [4, 5, 6].map((n) => [payout(n)]),
};
const PAYOUTS = [...PLAN.each, ...PLAN.together, ...PLAN.chunks.flat()];
const CANCELLED = { ...payout('cancelled'), notBefore: '2099-01-01T00:00:00Z' };

type Asked = Readonly<{ answered: readonly string[]; isCancelled?: boolean; signal: string | null }>;

/**
 * What a program answered before it ended is sent without it. Then all is asked again, and everything is paid once, or is
 * `unknown` and paid at most once.
 * @param keepsOrder - of calls at the same time, too
 */
function crashedEnqueuer(
  name: string,
  ask: (run: Run, environment: Environment) => Promise<Asked>,
  keepsOrder: boolean,
): CrashedProgram {
  return {
    name,
    async record(run, environment) {
      const asked = await ask(run, environment);
      if (asked.answered.length !== PAYOUTS.length) throw new Error(`only ${asked.answered.join()} were answered`);
      await run.openWorker();
      await untilKept(run, asked);
      const order = run.sandbox.payments().map(({ addressTo }) => addressTo);
      const wanted = PAYOUTS.map(({ addressTo }) => addressTo);
      if (keepsOrder && order.join() !== wanted.join()) throw new Error(`sent in the order ${order.join()}`);
    },
    async crash(run, environment) {
      await run.openWorker();
      const asked = await ask(run, environment);
      await insistOnJobs(run, asked.answered);
      await untilKept(run, asked);
      const again = await ask(run, {});
      await untilKept(run, { ...again, answered: PAYOUTS.map(({ payoutId }) => payoutId) });
      const { completed, unknown } = await run.producer.stats();
      const paid = run.sandbox.payments().length;
      if (paid < completed || paid > completed + unknown || completed + unknown !== PAYOUTS.length)
        throw new Error(`${paid} payments, ${completed} completed, ${unknown} unknown`);
      return asked.signal === 'SIGKILL';
    },
  };
}

export const CRASHED_PRODUCER = crashedEnqueuer(
  'producer',
  async (run, environment) => {
    const file = join(run.dir, 'answers');
    await rm(file, { force: true });
    const own = { ENQUEUE_PLAN: JSON.stringify(PLAN), ENQUEUE_ANSWERS: file };
    const child = run.startProgram([CHILD], { ...own, ...OCCURRENCES, ...environment });
    const signal = await untilEnded(child);
    if (signal === null && child.exitCode !== 0)
      throw new Error(`the application ended with ${String(child.exitCode)}`);
    const text = await readFile(file, 'utf8').catch(() => '');
    return { answered: text.split('\n').filter((line) => line !== ''), signal };
  },
  true,
);

export const CRASHED_DOOR = crashedEnqueuer(
  'door',
  async (run, environment) => {
    const { token, line } = createToken({ name: 'client', account: run.platformId, rights: [...RIGHTS] });
    const tokensFile = join(run.dir, 'tokens.yaml');
    await writeFile(tokensFile, line, { mode: 0o600 });
    const port = await takePort();
    const own = { SERVE_TOKENS_FILE: tokensFile, SERVE_PORT: String(port), SERVE_HEALTH_PORT: '0' };
    const door = run.startProgram([findBuiltProgram(), 'serve'], { ...own, ...OCCURRENCES, ...environment });
    const post = async (path: string, body: unknown) => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(30_000),
      });
      const text = await response.text();
      if (response.status > 201 && !text.includes('cancelled')) throw new Error(`${response.status} ${text}`);
    };
    const answered: string[] = [];
    const enqueue = async (payouts: readonly PayoutInput[]) => {
      await post('/v1/payouts', payouts.length === 1 ? payouts[0] : payouts);
      answered.push(...payouts.map(({ payoutId }) => payoutId));
    };
    let isCancelled = false;
    try {
      await until('the door listens', async () => door.exitCode !== null || door.signalCode !== null || listens(port));
      for (const each of PLAN.each) await enqueue([each]);
      await Promise.all(PLAN.together.map(async (each) => enqueue([each])));
      await enqueue(PLAN.chunks.flat());
      await post('/v1/payouts', CANCELLED);
      await post(`/v1/payouts/${CANCELLED.payoutId}/cancel`, {});
      isCancelled = true;
    } catch (error) {
      if (environment['CRASH_STEP'] === undefined) throw error;
    }
    door.kill('SIGTERM');
    return { answered, isCancelled, signal: await untilEnded(door) };
  },
  false,
);

const takenPorts = new Set<number>();

/** Another run may get the same free port before this door listens, and its door would answer. */
async function takePort() {
  let port = await findFreePort();
  while (takenPorts.has(port)) port = await findFreePort();
  takenPorts.add(port);
  return port;
}

const listens = async (port: number) =>
  fetch(`http://127.0.0.1:${port}/`).then(
    async (response) => response.text().then(() => true),
    () => false,
  );

/** At every moment a queued payout has its job, or the outbox says that it has none. */
async function insistOnJobs({ producer, redisUrl, platformId }: Run, payoutIds: readonly string[]) {
  const redis = new Redis(redisUrl);
  const readState = async (payoutId: string) => (await producer.get(payoutId))?.state;
  try {
    for (const payoutId of payoutIds) {
      const state = await readState(payoutId);
      if (state === undefined) throw new Error(`${payoutId} was answered and is lost`);
      if (state !== 'queued') continue;
      // In this order: a job is added first and taken out of the outbox then.
      if ((await redis.zscore(`{payouts:${platformId}}:outbox`, `queued ${payoutId}`)) !== null) continue;
      if ((await redis.exists(`{payouts:${platformId}}:withdraw:${payoutId}~0`)) === 1) continue;
      if ((await readState(payoutId)) !== 'queued') continue;
      throw new Error(`${payoutId} was answered, and has neither job nor outbox entry`);
    }
  } finally {
    redis.disconnect();
  }
}

/** A worker that had no processor for seconds resets its request, as another may send by then: that is `unknown`. */
async function untilKept({ producer }: Run, { answered, isCancelled }: Asked) {
  const readState = async (payoutId: string) => (await producer.get(payoutId))?.state ?? 'lost';
  const readStates = async () => Promise.all(answered.map(readState));
  const areSettled = async () => (await readStates()).every((state) => state === 'completed' || state === 'unknown');
  await until(`${answered.join()} are settled`, areSettled, WITHIN_MS).catch(async (error: unknown) => {
    throw new Error(`${(error as Error).message}, they are ${(await readStates()).join()}`);
  });
  const state = await readState(CANCELLED.payoutId);
  if (isCancelled && state !== 'cancelled') throw new Error(`the cancellation was answered, and it is ${state}`);
}

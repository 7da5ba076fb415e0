import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { createToken, RIGHTS } from '../../../src/http/tokens.js';
import type { PayoutInput } from '../../../src/ledger/payout.js';
import { findFreePort } from '../../../src/sandbox/local-redis.js';
import { findBuiltProgram } from '../../support/built-program.js';
import { until } from '../../support/until.js';
import { openRun, type Point, type Run, type RunOptions } from './open-run.js';
import { findBroken, insistOnJob, PAYOUTS, PLAN, untilCompleted } from './producer-points.js';
import type { CrashedProgram, Tried } from './try-points.js';

const OCCURRENCES = '20';
const CANCELLED: PayoutInput = {
  ...{ payoutId: 'P-cancelled', paymentId: 1, amount: '1', addressTo: 'wallet-cancelled' },
  notBefore: '2099-01-01T00:00:00Z',
};

/**
 * An HTTP door that ends between any two steps of its requests. What it answered is there and is sent without it. Its
 * clients then ask a new door again, and everything is paid once.
 */
export const CRASHED_DOOR: CrashedProgram = { name: 'door', recordSteps, tryPoint };

interface Asked {
  /** Payouts that are to be paid and were answered. */
  readonly answered: readonly string[];
  readonly isCancelled: boolean;
  readonly signal: string | null;
}

/** Asks as PLAN says, until the door ends. */
async function askAll(run: Run, environment: Readonly<Record<string, string>>): Promise<Asked> {
  const { token, line } = createToken({ name: 'client', account: run.platformId, rights: [...RIGHTS] });
  const tokensFile = join(run.dir, 'tokens.yaml');
  await writeFile(tokensFile, line, { mode: 0o600 });
  const port = await takePort();
  const door = run.startProgram([findBuiltProgram(), 'serve'], {
    SERVE_TOKENS_FILE: tokensFile,
    SERVE_PORT: String(port),
    SERVE_HEALTH_PORT: '0',
    LOG_LEVEL: 'error',
    CRASH_OCCURRENCES: OCCURRENCES,
    ...environment,
  });
  const ended = once(door, 'exit');
  const answered: string[] = [];
  const post = async (path: string, body: unknown): Promise<number> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(30_000),
    });
    const text = await response.text();
    if (response.status > 201 && !text.includes('cancelled')) throw new Error(`${response.status} ${text}`);
    return response.status;
  };
  const enqueue = async (payouts: PayoutInput | readonly PayoutInput[]): Promise<void> => {
    await post('/v1/payouts', payouts);
    for (const { payoutId } of 'payoutId' in payouts ? [payouts] : payouts) answered.push(payoutId);
  };
  let isCancelled = false;
  try {
    await until('the door listens', async () => door.exitCode !== null || door.signalCode !== null || listens(port));
    for (const each of PLAN.each) await enqueue(each);
    await Promise.all(PLAN.together.map(enqueue));
    await enqueue(PLAN.chunks.flat());
    await post('/v1/payouts', CANCELLED);
    await post(`/v1/payouts/${CANCELLED.payoutId}/cancel`, {});
    isCancelled = true;
  } catch (error) {
    // The door ended, or is about to.
    if (environment['CRASH_STEP'] === undefined) throw error;
  }
  if (door.exitCode === null && door.signalCode === null) door.kill('SIGTERM');
  const [, signal] = (await ended) as [number | null, string | null];
  return { answered, isCancelled, signal };
}

const takenPorts = new Set<number>();

/** Another run may get the same free port before this door listens, and its door would answer. */
async function takePort(): Promise<number> {
  for (;;) {
    const port = await findFreePort();
    if (takenPorts.has(port)) continue;
    takenPorts.add(port);
    return port;
  }
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function recordSteps(options: RunOptions): Promise<string[]> {
  const run = await openRun(options);
  try {
    const file = join(run.dir, 'steps');
    run.start({});
    const { answered, isCancelled } = await askAll(run, { CRASH_RECORD: file });
    if (answered.length !== PAYOUTS.length || !isCancelled)
      throw new Error(`only ${answered.join(', ')} were answered`);
    await untilCompleted(run, answered);
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
    const { answered, isCancelled, signal } = await askAll(run, { CRASH_STEP: step, CRASH_SIDE: side });
    for (const payoutId of answered) await insistOnJob(run, redis, payoutId);
    await untilCompleted(run, answered);
    if (isCancelled) await insistOnCancelled(run);
    const again = await askAll(run, {});
    await untilCompleted(run, again.answered);
    await insistOnCancelled(run);
    return { isReached: signal === 'SIGKILL', broken: findBroken(run) };
  } catch (error) {
    return { isReached: true, broken: (error as Error).message };
  } finally {
    redis.disconnect();
    await run.close();
  }
}

async function insistOnCancelled({ producer }: Run): Promise<void> {
  const state = (await producer.get(CANCELLED.payoutId))?.state;
  if (state !== 'cancelled') throw new Error(`the cancellation was answered, and the payout is ${String(state)}`);
}

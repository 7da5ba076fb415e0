import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createToken, RIGHTS } from '../../../src/http/tokens.js';
import type { PayoutInput } from '../../../src/ledger/payout.js';
import { findFreePort } from '../../../src/sandbox/local-redis.js';
import { findBuiltProgram } from '../../support/built-program.js';
import { until } from '../../support/until.js';
import type { Run } from './open-run.js';
import { type Asked, crashedEnqueuer, OCCURRENCES, PLAN } from './producer-points.js';

const CANCELLED: PayoutInput = {
  ...{ payoutId: 'P-cancelled', paymentId: 1, amount: '1', addressTo: 'wallet-cancelled' },
  notBefore: '2099-01-01T00:00:00Z',
};

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
  return { answered, signal, promised: isCancelled ? async () => insistOnCancelled(run) : undefined };
}

/** An HTTP door that ends between any two steps of its requests. */
export const CRASHED_DOOR = crashedEnqueuer('door', askAll, { keepsOrder: false });

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

async function insistOnCancelled({ producer }: Run): Promise<void> {
  const state = (await producer.get(CANCELLED.payoutId))?.state;
  if (state !== 'cancelled') throw new Error(`the cancellation was answered, and the payout is ${String(state)}`);
}

/**
 * Ends the worker before and after every step of a payout's life, on a real Redis and a real gateway, and checks the three
 * promises each time: `npm run crash-points [-- --jobs 6]`. With `--signed`, at the steps that signed payouts add.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { readFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { PayoutProducer } from '../../../src/producer/payout-producer.js';
import { startLocalRedis, type LocalRedis } from '../../../src/local-redis.js';
import { startSandbox, type Sandbox } from '../../../src/sandbox/index.js';
import { findBuiltProgram } from '../../support/built-program.js';
import { until } from '../../support/until.js';
import { SIGNING_KEY, UNSIGNED } from '../signing.js';
import { openSignedAccount } from './signed-account.js';

const PRELOAD = new URL('crash-everywhere.mjs', import.meta.url).href;
const SECRET_KEY = 'k-crash-points';
const PAYOUTS = 2;
const SETTLED_WITHIN_MS = 60_000;

const QUICK = {
  LEASE_MS: '500',
  TAKEOVER_QUARANTINE_MS: '0',
  IN_FLIGHT_MAX_MS: '300',
  STATUS_POLL_MIN_MS: '100',
  STATUS_POLL_MAX_MS: '500',
  STATUS_POLL_RATE: '100',
  MAX_UNKNOWNS_IN_A_ROW: '99',
  HEALTH_PORT: '0',
  LOG_LEVEL: 'error',
};

const { values } = parseArgs({
  options: { jobs: { type: 'string', default: '6' }, signed: { type: 'boolean', default: false } },
});

/** What differs where payouts are signed: more lines of the journal, and the script that holds. */
const SIGNED_STEPS = /^(journal|redis hold)/;
/** More of a kind are told apart: the lines of the journal are few, and each is another. */
const SIGNED_OCCURRENCES = '10';

interface Point {
  readonly step: string;
  readonly side: 'before' | 'after';
}

interface Run {
  readonly platformId: number;
  readonly sandbox: Sandbox;
  readonly producer: PayoutProducer;
  readonly dir: string;
  start(environment: Record<string, string>): ChildProcess;
  close(): Promise<void>;
}

let nextPlatformId = 1;

async function openRun(redis: LocalRedis): Promise<Run> {
  const platformId = (nextPlatformId += 1);
  const dir = await mkdtemp(join(tmpdir(), 'payouts-crash-'));
  const sandbox = await startSandbox({
    accounts: [{ platformId, secretKey: SECRET_KEY }],
    settleAfterMs: 50,
    latencyAfterMs: 20,
  });
  const signed = values.signed ? await openSignedAccount({ redisUrl: redis.url, platformId, dir }) : undefined;
  const signing = values.signed ? { signingKey: SIGNING_KEY } : {};
  const producer = new PayoutProducer({ redisUrl: redis.url, platformId, ...signing });
  await producer.enqueueMany(
    Array.from({ length: PAYOUTS }, (_, index) => ({
      payoutId: `P-${index}`,
      paymentId: 1,
      amount: '1',
      addressTo: `bc1qaddress${index}`,
    })),
  );
  const children = new Set<ChildProcess>();
  return {
    platformId,
    sandbox,
    producer,
    dir,
    start(environment) {
      const child = spawn(process.execPath, ['--import', PRELOAD, findBuiltProgram(), 'worker'], {
        stdio: ['ignore', 'ignore', 'inherit'],
        env: {
          PATH: process.env['PATH'],
          ...QUICK,
          REDIS_URL: redis.url,
          GATEWAY_PLATFORM_ID: String(platformId),
          GATEWAY_BASE_URL: sandbox.url,
          GATEWAY_SECRET_KEY: SECRET_KEY,
          SEND_JOURNAL_DIR: join(dir, 'journal'),
          ...signed?.environment,
          ...(values.signed ? { CRASH_OCCURRENCES: SIGNED_OCCURRENCES } : {}),
          ...environment,
        },
      });
      children.add(child);
      return child;
    },
    async close() {
      await Promise.all([...children].map(end));
      await signed?.close();
      await producer.close();
      await sandbox.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
}

async function isSettled({ producer }: Run): Promise<boolean> {
  const { completed, unknown, held } = await producer.stats();
  return completed + unknown === PAYOUTS && held === (values.signed ? 1 : 0);
}

/** The names of all steps that a worker takes from its start until two payouts are completed and it has ended. */
async function recordSteps(redis: LocalRedis): Promise<string[]> {
  const run = await openRun(redis);
  try {
    const file = join(run.dir, 'steps');
    const worker = run.start({ CRASH_RECORD: file });
    await until('the recorded run is settled', async () => isSettled(run), SETTLED_WITHIN_MS);
    const ended = new Promise((resolve) => worker.once('exit', resolve));
    worker.kill('SIGTERM');
    await ended;
    const steps = [...new Set((await readFile(file, 'utf8')).trim().split('\n'))];
    return values.signed ? steps.filter((step) => SIGNED_STEPS.test(step)) : steps;
  } finally {
    await run.close();
  }
}

/** @returns what was broken, or undefined */
async function tryPoint(redis: LocalRedis, { step, side }: Point): Promise<{ reached: boolean; broken?: string }> {
  const run = await openRun(redis);
  try {
    const first = run.start({ CRASH_STEP: step, CRASH_SIDE: side });
    const died = new Promise<true>((resolve) =>
      first.once('exit', () => {
        resolve(true);
      }),
    );
    await until(
      'it died or was done',
      async () => first.signalCode !== null || (await isSettled(run)),
      SETTLED_WITHIN_MS,
    );
    if (first.signalCode === null) first.kill('SIGTERM');
    await died;
    const reached = first.signalCode === 'SIGKILL';
    run.start({});
    await until('every payout is settled', async () => isSettled(run), SETTLED_WITHIN_MS);
    const broken = await findBroken(run);
    return broken === undefined ? { reached } : { reached, broken };
  } catch (error) {
    return { reached: true, broken: (error as Error).message };
  } finally {
    await run.close();
  }
}

async function findBroken({ sandbox, producer }: Run): Promise<string | undefined> {
  const { duplicatePayments, smallestGapMs, blocked } = sandbox.stats();
  if (duplicatePayments.length > 0) return `paid twice: ${JSON.stringify(duplicatePayments)}`;
  if (blocked || (smallestGapMs !== null && smallestGapMs < 1_000)) return `too fast: ${String(smallestGapMs)} ms`;
  const paid = new Set(sandbox.payments().map(({ addressTo }) => addressTo));
  for (let index = 0; index < PAYOUTS; index += 1) {
    const payout = await producer.get(`P-${index}`);
    if (payout?.state === 'completed' && !paid.has(payout.addressTo)) return `P-${index} is completed but was not paid`;
  }
  if (!values.signed) return undefined;
  const { payoutId, addressTo } = UNSIGNED;
  const { state } = (await producer.get(payoutId)) ?? {};
  return state === 'held' && !paid.has(addressTo) ? undefined : `${payoutId}, which nobody signed, is ${String(state)}`;
}

async function main(): Promise<number> {
  const redis = await startLocalRedis();
  const failures: string[] = [];
  let unreached = 0;
  try {
    const steps = await recordSteps(redis);
    const points = steps.flatMap((step) => [
      { step, side: 'before' as const },
      { step, side: 'after' as const },
    ]);
    process.stdout.write(`${steps.length} steps recorded, ${points.length} crash points\n`);
    const waiting = [...points];
    await Promise.all(
      Array.from({ length: Number(values.jobs) }, async () => {
        for (let point = waiting.shift(); point !== undefined; point = waiting.shift()) {
          const { reached, broken } = await tryPoint(redis, point);
          if (!reached) unreached += 1;
          if (broken === undefined) continue;
          failures.push(`${point.side} ${point.step}`);
          process.stdout.write(`FAILED ${point.side} ${point.step}: ${broken}\n`);
        }
      }),
    );
    process.stdout.write(`${unreached} points were not reached in their run (the timing differed)\n`);
    process.stdout.write(`${points.length - failures.length} passed, ${failures.length} failed\n`);
  } finally {
    await redis.stop();
  }
  return failures.length === 0 ? 0 : 1;
}

process.exitCode = await main();

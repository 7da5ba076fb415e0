/**
 * `npm run crash-points [-- --jobs 6] [--only worker|janitor|producer|door]`; `--signed`: the worker at the steps that this adds.
 * `--gateway v1|v2|mixed`: the API that pays (v1). Mixed tries each step on both: on one it ends before the step, on the
 * other after it.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { GATEWAY_APIS, type GatewayApi } from '../../../src/base/settings.js';
import { readWorkerAccounts } from '../../../src/cli/context/accounts.js';
import { readWorkerSigner } from '../../../src/cli/context/keys.js';
import { PayoutOperator } from '../../../src/control/payout-operator.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import { createPayoutWorker, type PayoutWorker } from '../../../src/control/payout-worker.js';
import { orderIdOf, readAttempts } from '../../../src/ledger/order-id.js';
import { PAYOUT_STATES } from '../../../src/ledger/states.js';
import { openLedger } from '../../../src/queues/open-ledger.js';
import { startSandbox } from '../../../src/sandbox/index.js';
import { startLocalRedis, type LocalRedis } from '../../../src/sandbox/local-redis.js';
import { findBuiltProgram } from '../../support/built-program.js';
import { endChild, type Environment } from '../chaos/processes.js';
import { enqueueUnsigned } from '../chaos/users.js';
import { FLAG, print, report, TEXT } from '../command-line.js';
import { adoptJournal, keepsPause, OPERATOR, SIGNING, writeKeyFiles } from '../signing.js';
import { CRASHED_DOOR, CRASHED_JANITOR, CRASHED_PRODUCER, CRASHED_WORKER } from './programs.js';

const PRELOAD = new URL('crash-everywhere.mjs', import.meta.url).href;
const SECRET_KEY = 'k-crash-points';

const QUICK = {
  ...{ LEASE_MS: '500', TAKEOVER_QUARANTINE_MS: '0', IN_FLIGHT_MAX_MS: '300', MAX_UNKNOWNS_IN_A_ROW: '99' },
  ...{ STATUS_POLL_MIN_MS: '100', STATUS_POLL_MAX_MS: '500', STATUS_POLL_RATE: '100', HEALTH_PORT: '0' },
};

type RunOptions = Readonly<{ redis: LocalRedis; isSigned: boolean; api: GatewayApi }>;

export interface CrashedProgram {
  readonly name: string;
  /** The only API that has what it does. @defaultValue the one that was asked for */
  readonly api?: GatewayApi;
  record(run: Run, environment: Environment): Promise<void>;
  /** Ends it at a point. @returns whether it came to the point: the timing may differ */
  crash(run: Run, environment: Environment): Promise<boolean>;
  isTried?(step: string, options: RunOptions): boolean;
}

type Point = Readonly<{ step: string; side: 'before' | 'after'; options: RunOptions }>;

/** @returns the points before and after each step of the program */
async function findPoints(program: CrashedProgram, options: RunOptions) {
  const recorded = await inRun(options, async (run) => {
    const file = join(run.dir, 'steps');
    await program.record(run, { CRASH_RECORD: file });
    return (await readFile(file, 'utf8')).trim().split('\n');
  });
  const steps = [...new Set(recorded)].filter((step) => program.isTried?.(step, options) ?? true);
  print(`${program.name}: ${steps.length} steps recorded with ${options.api}`);
  return {
    before: steps.map((step): Point => ({ step, side: 'before', options })),
    after: steps.map((step): Point => ({ step, side: 'after', options })),
  };
}

async function findAllPoints(program: CrashedProgram, options: Omit<RunOptions, 'api'>, gateway: string) {
  if (gateway !== 'mixed') {
    const { before, after } = await findPoints(program, { ...options, api: gateway as GatewayApi });
    return [...before, ...after];
  }
  const [first, second] = [
    await findPoints(program, { ...options, api: 'v1' }),
    await findPoints(program, { ...options, api: 'v2' }),
  ];
  return [
    ...first.before.map((point, index) => (index % 2 === 0 ? point : first.after[index])),
    ...second.before.map((point, index) => (index % 2 === 1 ? point : second.after[index])),
  ].filter((point) => point !== undefined);
}

/** Ends the program before and after each of its steps. @returns at how many points the promises were kept, and broken */
async function tryPoints(program: CrashedProgram, options: Omit<RunOptions, 'api'>, gateway: string, jobs: number) {
  const { name } = program;
  const points = await findAllPoints(program, options, program.api ?? gateway);
  print(`${name}: ${points.length} crash points`);
  const waiting = points.values();
  let [failed, unreached, unknown] = [0, 0, 0];
  const work = async () => {
    for (const { step, side, options } of waiting) {
      try {
        const isReached = await inRun(options, async (run) => {
          const reached = await program.crash(run, { CRASH_STEP: step, CRASH_SIDE: side });
          await insistOnPayments(run);
          unknown += (await run.producer.stats()).unknown;
          return reached;
        });
        if (!isReached) unreached += 1;
      } catch (error) {
        failed += 1;
        print(`FAILED ${name} ${options.api} ${side} ${step}: ${(error as Error).message}`);
      }
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
  print(`${name}: ${points.length} points done, ${failed} failed, ${unreached} not reached (the timing differed)`);
  print(`${name}: ${unknown} payouts ended as unknown`);
  return { passed: points.length - failed, failed };
}

async function inRun<Result>(options: RunOptions, work: (run: Run) => Promise<Result>) {
  const run = await openRun(options);
  try {
    return await work(run);
  } finally {
    await run.close();
  }
}

async function insistOnPayments(run: Run) {
  const { sandbox, api } = run;
  const { duplicatePayments, smallestGapMs, blocked } = sandbox.stats();
  if (duplicatePayments.length > 0) throw new Error(`paid twice: ${JSON.stringify(duplicatePayments)}`);
  if (blocked || (smallestGapMs ?? Infinity) < 1_000) throw new Error(`too fast: ${String(smallestGapMs)} ms`);
  if (api === 'v2') await insistOnOrderIds(run);
}

/** Every payment can be found by the order id of an attempt that the ledger has recorded. */
async function insistOnOrderIds({ sandbox, producer, redisUrl, platformId }: Run) {
  const account = openLedger({ redisUrl, platformId });
  const { connection } = account.ledger;
  try {
    const recorded = new Map<string, string>();
    const pages = await Promise.all(PAYOUT_STATES.map(async (state) => producer.list({ state })));
    for (const { payoutId, addressTo } of pages.flatMap(({ payouts }) => payouts))
      for (const attempt of await readAttempts(connection, payoutId)) recorded.set(orderIdOf(attempt), addressTo);
    for (const { orderId = 'nothing', addressTo } of sandbox.payments())
      if (recorded.get(orderId) !== addressTo)
        throw new Error(`the payment to ${addressTo} was sent as ${orderId}, which names no attempt of that payout`);
  } finally {
    await account.close();
  }
}

export type Run = Awaited<ReturnType<typeof openRun>>;

let nextPlatformId = 1;

async function openRun({ redis, isSigned, api }: RunOptions) {
  const platformId = (nextPlatformId += 1);
  const account = { redisUrl: redis.url, platformId };
  const dir = await mkdtemp(join(tmpdir(), 'payouts-crash-'));
  const sandbox = await startSandbox({
    accounts: [{ platformId, secretKey: SECRET_KEY }],
    ...{ settleAfterMs: 50, latencyAfterMs: 20 },
  });
  const signed = isSigned ? await openSignedAccount(redis.url, platformId, dir) : undefined;
  const producer = new PayoutProducer({ ...account, ...(isSigned && SIGNING) });
  const children: ChildProcess[] = [];
  const workers: PayoutWorker[] = [];
  const journalDir = join(dir, 'journal');
  const own = { REDIS_URL: redis.url, GATEWAY_PLATFORM_ID: String(platformId), LOG_LEVEL: 'error' };
  const workerEnvironment: Environment = {
    ...own,
    ...QUICK,
    ...{ GATEWAY_BASE_URL: sandbox.url, GATEWAY_SECRET_KEY: SECRET_KEY, SEND_JOURNAL_DIR: journalDir },
    GATEWAY_API: api,
    ...signed?.environment,
  };
  const startProgram = (args: readonly string[], environment: Environment) => {
    const child = spawn(process.execPath, ['--import', PRELOAD, ...args], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { PATH: process.env['PATH'], ...own, ...environment },
    });
    children.push(child);
    return child;
  };
  return {
    ...{ redisUrl: redis.url, platformId, isSigned, api, sandbox, producer, dir, startProgram },
    startWorker: (environment: Environment) =>
      startProgram([findBuiltProgram(), 'worker'], { ...workerEnvironment, ...environment }),
    /** Here: a program takes a second to start. */
    async openWorker() {
      const { PAYOUT_KEYS_FILE: keysFile } = workerEnvironment;
      const [accounts, receiptSigner] = [
        await readWorkerAccounts(workerEnvironment),
        readWorkerSigner(workerEnvironment),
      ];
      workers.push(await createPayoutWorker({ redisUrl: redis.url, journalDir, keysFile, accounts, receiptSigner }));
    },
    async close() {
      await Promise.all([...children.map(endChild), ...workers.map(async (worker) => worker.stop())]);
      await signed?.close();
      await producer.close();
      await sandbox.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

const ACTOR = { by: 'ann', reason: 'crash points' };

/** What only signed payouts come to: a payout that is held, and a pause that lasts until an operator's signed act. */
async function openSignedAccount(redisUrl: string, platformId: number, dir: string) {
  const { workerEnvironment } = await writeKeyFiles(dir);
  const journalDir = join(dir, 'journal');
  await adoptJournal(journalDir, platformId);
  await enqueueUnsigned(redisUrl, platformId);
  const operator = new PayoutOperator({ redisUrl, platformId, ...OPERATOR });
  await operator.pause(ACTOR);
  const resume = async () => {
    if (await keepsPause(journalDir, platformId)) await operator.resume(ACTOR);
  };
  const timer = setInterval(() => void resume().catch(() => undefined), 200);
  return {
    // More steps of a kind are told apart: the lines of the journal are few, and each is another.
    environment: { ...workerEnvironment, CRASH_OCCURRENCES: '10' },
    async close() {
      clearInterval(timer);
      await operator.close();
    },
  };
}

const { values } = parseArgs({
  options: { jobs: { ...TEXT, default: '6' }, signed: FLAG, only: TEXT, gateway: { ...TEXT, default: 'v1' } },
});

const GATEWAYS: readonly string[] = [...GATEWAY_APIS, 'mixed'];

async function main() {
  const { signed: isSigned, only, jobs, gateway } = values;
  if (!GATEWAYS.includes(gateway)) throw new Error(`--gateway must be one of ${GATEWAYS.join(', ')}`);
  const programs = isSigned ? [CRASHED_WORKER] : [CRASHED_WORKER, CRASHED_JANITOR, CRASHED_PRODUCER, CRASHED_DOOR];
  const chosen = programs.filter(({ name }) => only === undefined || name === only);
  if (chosen.length === 0) throw new Error(`--only must be one of ${programs.map(({ name }) => name).join(', ')}`);
  const redis = await startLocalRedis();
  try {
    let [passed, failed] = [0, 0];
    for (const program of chosen) {
      const tried = await tryPoints(program, { redis, isSigned }, gateway, Number(jobs));
      passed += tried.passed;
      failed += tried.failed;
    }
    process.exitCode = report(passed, failed) ? 0 : 1;
  } finally {
    await redis.stop();
  }
}

await main();

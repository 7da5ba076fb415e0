import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LocalRedis } from '../../../src/sandbox/local-redis.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import { startSandbox, type Sandbox } from '../../../src/sandbox/index.js';
import { findBuiltProgram } from '../../support/built-program.js';
import { SIGNING } from '../signing.js';
import { openSignedAccount } from './signed-account.js';

const PRELOAD = new URL('crash-everywhere.mjs', import.meta.url).href;
const SECRET_KEY = 'k-crash-points';

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

/** More of a kind are told apart: the lines of the journal are few, and each is another. */
const SIGNED_OCCURRENCES = '10';

/** A step at which a process ends, and whether the step takes effect. */
export interface Point {
  readonly step: string;
  readonly side: 'before' | 'after';
}

export interface RunOptions {
  readonly redis: LocalRedis;
  /** Whether payouts are signed, and workers verify. */
  readonly isSigned: boolean;
}

/** An account of its own, with its gateway and its processes. */
export interface Run {
  readonly platformId: number;
  readonly sandbox: Sandbox;
  readonly producer: PayoutProducer;
  readonly dir: string;
  /** Starts a worker. @param environment - where it ends, and what it records */
  start(environment: Readonly<Record<string, string>>): ChildProcess;
  /** Starts another program with the same preload. */
  startProgram(args: readonly string[], environment: Readonly<Record<string, string>>): ChildProcess;
  close(): Promise<void>;
}

let nextPlatformId = 1;

export async function openRun({ redis, isSigned }: RunOptions): Promise<Run> {
  const platformId = (nextPlatformId += 1);
  const dir = await mkdtemp(join(tmpdir(), 'payouts-crash-'));
  const sandbox = await startSandbox({
    accounts: [{ platformId, secretKey: SECRET_KEY }],
    settleAfterMs: 50,
    latencyAfterMs: 20,
  });
  const signed = isSigned ? await openSignedAccount({ redisUrl: redis.url, platformId, dir }) : undefined;
  const signing = isSigned ? SIGNING : {};
  const producer = new PayoutProducer({ redisUrl: redis.url, platformId, ...signing });
  const children = new Set<ChildProcess>();
  const startProgram: Run['startProgram'] = (args, environment) => {
    const child = spawn(process.execPath, ['--import', PRELOAD, ...args], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: {
        PATH: process.env['PATH'],
        REDIS_URL: redis.url,
        GATEWAY_PLATFORM_ID: String(platformId),
        ...environment,
      },
    });
    children.add(child);
    return child;
  };
  return {
    platformId,
    sandbox,
    producer,
    dir,
    startProgram,
    start: (environment) =>
      startProgram([findBuiltProgram(), 'worker'], {
        ...QUICK,
        GATEWAY_BASE_URL: sandbox.url,
        GATEWAY_SECRET_KEY: SECRET_KEY,
        SEND_JOURNAL_DIR: join(dir, 'journal'),
        ...signed?.environment,
        ...(isSigned ? { CRASH_OCCURRENCES: SIGNED_OCCURRENCES } : {}),
        ...environment,
      }),
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

/** Paid twice, or too fast: what must not be, whatever ended. */
export function findBrokenPayments({ sandbox }: Run): string | undefined {
  const { duplicatePayments, smallestGapMs, blocked } = sandbox.stats();
  if (duplicatePayments.length > 0) return `paid twice: ${JSON.stringify(duplicatePayments)}`;
  if (blocked || (smallestGapMs !== null && smallestGapMs < 1_000)) return `too fast: ${String(smallestGapMs)} ms`;
  return undefined;
}

import { PayoutProducer } from '../../control/payout-producer.js';
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs';
import { mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { within } from '../../base/clock.js';
import { RedisUnavailableError } from '../../base/errors.js';
import type { GatewayApi } from '../../base/settings.js';
import { connectLedger, type LedgerConnection } from '../../ledger/ledger-connection.js';
import { findFreePort, type LocalRedis, startLocalRedis } from '../../sandbox/local-redis.js';
import { closeRedis, connectRedis } from '../../base/redis.js';
import { startSandbox, type Sandbox } from '../../sandbox/index.js';

export const DEMO_PLATFORM_ID = 1001;

export interface DemoStage {
  readonly redis: LocalRedis;
  readonly sandbox: Sandbox;
  readonly worker: DemoWorker;
  readonly producer: PayoutProducer;
  readonly ledger: LedgerConnection;
  /** Lets other commands work on the same account. */
  readonly environment: Readonly<Record<string, string>>;
  readonly healthUrl: string;
  close(): Promise<void>;
}

/** Delays in ms: a network that makes pacing hard. */
export const JITTER = { latencyBeforeMs: { min: 0, max: 300 }, latencyAfterMs: { min: 20, max: 80 } };

const SETTLE_AFTER_MS = 2_000;

/** Valid only for the demo's own sandbox. */
const SECRET_KEY = 'secret-of-the-demo';

/** A takeover takes seconds. The interval between sends is the real one. */
const SHORT_TIMES = {
  LEASE_MS: '1500',
  TAKEOVER_QUARANTINE_MS: '1000',
  IN_FLIGHT_MAX_MS: '500',
  STATUS_POLL_MIN_MS: '500',
  STATUS_POLL_MAX_MS: '1000',
};

/**
 * The worker is created but not started.
 * @param path - PATH of the worker's process
 * @param api - which the worker speaks
 * @throws RedisUnavailableError if `redis-server` cannot start, with how to get it
 */
export async function openStage(path: string, api: GatewayApi): Promise<DemoStage> {
  const dir = await mkdtemp(join(tmpdir(), 'payouts-demo-'));
  const closers: (() => unknown)[] = [];
  let worker: DemoWorker | undefined;
  const close = async (): Promise<void> => {
    for (let closer = closers.pop(); closer !== undefined; closer = closers.pop()) await closer();
  };
  // For an exit without `close`, when only synchronous work is possible.
  const closeAtOnce = (): void => {
    worker?.killNow();
    rmSync(dir, { recursive: true, force: true });
  };
  process.once('exit', closeAtOnce);
  closers.push(() => process.removeListener('exit', closeAtOnce), closeAtOnce);
  try {
    const redis = await startRedis(join(dir, 'redis'));
    closers.push(async () => redis.stop());
    const accounts = [{ platformId: DEMO_PLATFORM_ID, secretKey: SECRET_KEY }];
    const sandbox = await startSandbox({ accounts, settleAfterMs: SETTLE_AFTER_MS, ...JITTER });
    closers.push(async () => sandbox.close());
    const connection = connectRedis(redis.url, 'commands');
    closers.push(async () => closeRedis(connection));
    const producer = new PayoutProducer({ platformId: DEMO_PLATFORM_ID, connection });
    closers.push(async () => producer.close());
    const environment = {
      REDIS_URL: redis.url,
      GATEWAY_BASE_URL: sandbox.url,
      GATEWAY_API: api,
      GATEWAY_PLATFORM_ID: String(DEMO_PLATFORM_ID),
      GATEWAY_SECRET_KEY: SECRET_KEY,
      SEND_JOURNAL_DIR: join(dir, 'journal'),
      ...SHORT_TIMES,
    };
    const healthPort = await findFreePort();
    const ofWorker = { PATH: path, HEALTH_PORT: String(healthPort), ...environment };
    const started = new DemoWorker(ofWorker, join(dir, 'worker.log'));
    worker = started;
    closers.push(async () => started.stop());
    const ledger = connectLedger(connection, DEMO_PLATFORM_ID);
    const healthUrl = `http://127.0.0.1:${healthPort}`;
    return { redis, sandbox, worker: started, producer, ledger, environment, healthUrl, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startRedis(dir: string): Promise<LocalRedis> {
  await mkdir(dir);
  try {
    return await startLocalRedis({ dir });
  } catch (error) {
    const { cause } = error as { cause?: NodeJS.ErrnoException };
    if (cause?.code !== 'ENOENT') throw new RedisUnavailableError((error as Error).message, { cause: error });
    throw new RedisUnavailableError(
      'The demo starts its own Redis, but redis-server is not installed. Install it (Debian, Ubuntu: apt-get install redis-server; macOS: brew install redis; Alpine: apk add redis), or run `npm run demo` in a clone with REDIS_URL unset, which installs it.',
      { cause: error },
    );
  }
}

const END_WITHIN_MS = 3_000;
const SHOWN_LOG_LINES = 5;

class DemoWorker {
  readonly #environment: Readonly<Record<string, string>>;
  readonly #logFile: string;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #isWanted = false;
  #kills = 0;

  /** @param environment - complete: no variable of the user can point the process to another gateway */
  constructor(environment: Readonly<Record<string, string>>, logFile: string) {
    this.#environment = environment;
    this.#logFile = logFile;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get kills(): number {
    return this.#kills;
  }

  /** Exited although it should run. */
  get hasExited(): boolean {
    return this.#isWanted && this.#child === undefined;
  }

  readLogEnd(): string {
    const lines = readFileSync(this.#logFile, 'utf8').trimEnd().split('\n').slice(-SHOWN_LOG_LINES);
    return `The end of the worker's log:\n  ${lines.join('\n  ')}`;
  }

  start(): void {
    const log = openSync(this.#logFile, 'a');
    // The running program: works in a clone, an installed package and a global one.
    const program = [...process.execArgv, process.argv[1] ?? '', 'worker'];
    const child = spawn(process.execPath, program, { stdio: ['ignore', log, log], env: this.#environment });
    closeSync(log);
    this.#child = child;
    this.#isWanted = true;
    this.#ended = new Promise((resolve) => {
      const end = (): void => {
        this.#child = undefined;
        resolve();
      };
      child.once('exit', end).once('error', end);
    });
  }

  async kill(): Promise<void> {
    this.#kills += 1;
    this.killNow();
    await this.#ended;
  }

  /** Does not wait: for use while this process exits. */
  killNow(): void {
    this.#isWanted = false;
    this.#child?.kill('SIGKILL');
  }

  /** Sends SIGTERM, then SIGKILL if the exit takes too long. */
  async stop(): Promise<void> {
    this.#isWanted = false;
    this.#child?.kill('SIGTERM');
    await within(END_WITHIN_MS, this.#ended);
    this.#child?.kill('SIGKILL');
    await this.#ended;
  }
}

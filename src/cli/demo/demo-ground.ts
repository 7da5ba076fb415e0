import { rmSync } from 'node:fs';
import { mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RedisUnavailableError } from '../../errors.js';
import { startLocalRedis, type LocalRedis } from '../../local-redis.js';
import { startSandbox, type Sandbox, type SandboxOptions } from '../../sandbox/index.js';
import { DemoWorker } from './demo-worker.js';

/** What every demo stands on: a temporary folder, a Redis, a gateway, and the processes of its workers. */
export interface DemoGround {
  /** Removed at the end. */
  readonly dir: string;
  readonly redis: LocalRedis;
  readonly sandbox: Sandbox;
  /**
   * A worker that is not started yet.
   * @param name - of its log file, in `dir`
   */
  readonly addWorker: (name: string, environment: Readonly<Record<string, string>>) => DemoWorker;
  /** Called when the demo closes; what was added last is called first. */
  readonly onClose: (closer: () => unknown) => void;
  /** Stops everything and removes the files. Safe to call twice. */
  readonly close: () => Promise<void>;
}

/** Valid for the demo's own sandbox only, while it runs. */
export const SECRET_KEY = 'secret-of-the-demo';

/** Short: a takeover takes seconds. The interval between sends is the real one. */
const SHORT_TIMES = {
  LEASE_MS: '1500',
  TAKEOVER_QUARANTINE_MS: '1000',
  IN_FLIGHT_MAX_MS: '500',
  STATUS_POLL_MIN_MS: '500',
  STATUS_POLL_MAX_MS: '1000',
};

/** The settings of a worker of one account. */
export function createEnvironment(
  { redis, sandbox }: Pick<DemoGround, 'redis' | 'sandbox'>,
  platformId: number,
  journalDir: string,
): Readonly<Record<string, string>> {
  return {
    REDIS_URL: redis.url,
    GATEWAY_BASE_URL: sandbox.url,
    GATEWAY_PLATFORM_ID: String(platformId),
    GATEWAY_SECRET_KEY: SECRET_KEY,
    SEND_JOURNAL_DIR: journalDir,
    ...SHORT_TIMES,
  };
}

/**
 * Starts Redis and the sandbox.
 * @param platformIds - the accounts that the sandbox serves
 * @throws RedisUnavailableError when `redis-server` cannot be started, saying how to get it
 */
export async function openGround(
  platformIds: readonly number[],
  sandboxOptions: Omit<SandboxOptions, 'accounts'>,
): Promise<DemoGround> {
  const dir = await mkdtemp(join(tmpdir(), 'payouts-demo-'));
  const closers: (() => unknown)[] = [];
  const workers: DemoWorker[] = [];
  const close = async (): Promise<void> => {
    for (let closer = closers.pop(); closer !== undefined; closer = closers.pop()) await closer();
  };
  // For a process that exits without `close`: only synchronous work is possible then. Redis is stopped in the same way.
  const closeAtOnce = (): void => {
    for (const worker of workers) worker.killNow();
    rmSync(dir, { recursive: true, force: true });
  };
  process.once('exit', closeAtOnce);
  closers.push(() => process.removeListener('exit', closeAtOnce), closeAtOnce);
  try {
    const redis = await startRedis(join(dir, 'redis'));
    closers.push(async () => redis.stop());
    const accounts = platformIds.map((platformId) => ({ platformId, secretKey: SECRET_KEY }));
    const sandbox = await startSandbox({ accounts, ...sandboxOptions });
    closers.push(async () => sandbox.close());
    const addWorker = (name: string, environment: Readonly<Record<string, string>>): DemoWorker => {
      const worker = new DemoWorker({ environment, logFile: join(dir, `${name}.log`) });
      workers.push(worker);
      closers.push(async () => worker.stop());
      return worker;
    };
    return { dir, redis, sandbox, addWorker, onClose: (closer) => void closers.push(closer), close };
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

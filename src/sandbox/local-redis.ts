import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';

/** A private Redis server for demonstrations and tests. */
export interface LocalRedis {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** The folder of its append-only file. */
  readonly dir: string;
  /** Ends the server and removes a temporary folder. Safe to call twice. */
  stop(): Promise<void>;
}

/** Options of a local Redis. */
export interface LocalRedisOptions {
  /** An existing folder for the data. @defaultValue a temporary one, removed at the end */
  readonly dir?: string;
  /** @defaultValue a free port */
  readonly port?: number;
  /** More command-line settings, for example `['--maxmemory', '100mb']`. They override the settings for safe payouts. */
  readonly args?: readonly string[];
  /** @defaultValue this process's environment */
  readonly environment?: Readonly<Record<string, string>>;
}

/**
 * Settings that payouts need: Redis replies only after a write is on disk, and evicts nothing. The last one
 * (hash-max-listpack-value in Redis 7) halves the memory of records with a long txhash.
 */
const SAFE_SETTINGS = {
  appendonly: 'yes',
  appendfsync: 'always',
  'aof-load-truncated': 'no',
  'maxmemory-policy': 'noeviction',
  save: '',
  'hash-max-ziplist-value': '128',
};

const READY_WITHIN_MS = 10_000;
const STOPPED_WITHIN_MS = 5_000;

/** Another process may take a free port before Redis does. */
const PORT_ATTEMPTS = 5;
const PORT_TAKEN = 'Address already in use';

/**
 * Starts `redis-server` on loopback with the settings that payouts need.
 *
 * The server ends with `stop()` or with this process, except after SIGKILL.
 * @throws Error if `redis-server` is not installed or does not become ready
 */
export async function startLocalRedis(options: LocalRedisOptions = {}): Promise<LocalRedis> {
  if (options.port !== undefined) return start(options.port, options);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await start(await findFreePort(), options);
    } catch (error) {
      if (attempt === PORT_ATTEMPTS || !(error as Error).message.includes(PORT_TAKEN)) throw error;
    }
  }
}

async function start(port: number, options: LocalRedisOptions): Promise<LocalRedis> {
  const dir = options.dir ?? (await mkdtemp(join(tmpdir(), 'payouts-redis-')));
  const child = spawnRedis(dir, port, options);
  const endWithParent = (): void => void child.kill('SIGKILL');
  process.once('exit', endWithParent);

  const stop = async (): Promise<void> => {
    process.removeListener('exit', endWithParent);
    await endProcess(child);
    if (options.dir === undefined) await rm(dir, { recursive: true, force: true });
  };
  try {
    const pid = await waitUntilReady(child, port);
    return { url: `redis://127.0.0.1:${port}`, port, pid, dir, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function spawnRedis(dir: string, port: number, { args = [], environment }: LocalRedisOptions): ChildProcess {
  const settings = Object.entries(SAFE_SETTINGS).flatMap(([name, value]) => [`--${name}`, value]);
  return spawn(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--daemonize', 'no', ...settings, ...args],
    { stdio: ['ignore', 'pipe', 'pipe'], ...(environment && { env: environment }) },
  );
}

/** Another process may have taken the port: the server is ours only if it reports our child's process id. */
async function waitUntilReady(child: ChildProcess, port: number): Promise<number> {
  let output = '';
  let failure: Error | undefined;
  child.stdout?.on('data', (chunk: Buffer) => (output = (output + chunk.toString()).slice(-4000)));
  child.stderr?.on('data', (chunk: Buffer) => (output = (output + chunk.toString()).slice(-4000)));
  child.once(
    'error',
    (error) => (failure = new Error('redis-server could not be started: is it installed?', { cause: error })),
  );
  child.once('exit', (code) => (failure ??= new Error(`redis-server ended with code ${String(code)}:\n${output}`)));

  const deadline = performance.now() + READY_WITHIN_MS;
  while (performance.now() < deadline) {
    if (failure !== undefined) throw failure;
    if ((await readProcessId(port)) === child.pid && child.pid !== undefined) return child.pid;
    await delay(20);
  }
  throw new Error(`redis-server was not ready within ${READY_WITHIN_MS} ms:\n${output}`);
}

async function readProcessId(port: number): Promise<number | undefined> {
  const redis = new Redis(port, '127.0.0.1', {
    lazyConnect: true,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    // A refused connection would otherwise keep the process alive for seconds.
    disconnectTimeout: 10,
  });
  redis.on('error', () => undefined);
  try {
    await redis.connect();
    const match = /process_id:(\d+)/.exec(await redis.info('server'));
    await redis.quit();
    return match === null ? undefined : Number(match[1]);
  } catch {
    return undefined;
  } finally {
    redis.disconnect();
  }
}

async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  // A stopped (SIGSTOP) server would never see SIGTERM.
  child.kill('SIGCONT');
  child.kill('SIGTERM');
  const forceStop = setTimeout(() => child.kill('SIGKILL'), STOPPED_WITHIN_MS);
  await ended;
  clearTimeout(forceStop);
}

/** A TCP port on loopback that was free a moment ago. */
export async function findFreePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

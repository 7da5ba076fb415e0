import { spawn, type ChildProcess } from 'node:child_process';
import { basename } from 'node:path';
import { findBuiltProgram } from '../../support/built-program.js';
import { until } from '../../support/until.js';
import { TEST_AUDIENCE } from '../../control/support/keys.js';

export type WorkerProcess = ReturnType<typeof startWorkerProcess>;

const HOST_NAME = new URL('host-name.mjs', import.meta.url).href;

const running = new Map<ChildProcess, { end(): Promise<void> }>();

export interface WorkerProcessOptions {
  readonly redisUrl: string;
  readonly platformId: number;
  readonly baseUrl: string;
  readonly secretKey: string;
  readonly journalDir: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  /** A file descriptor for its log, instead of a pipe to this process. */
  readonly stderr?: number;
}

/** So that a take-over takes seconds. A response has four: on a busy machine a process may stand still for one. */
const QUICK = {
  LEASE_MS: '1500',
  TAKEOVER_QUARANTINE_MS: '1000',
  IN_FLIGHT_MAX_MS: '4000',
  STATUS_POLL_MIN_MS: '200',
  STATUS_POLL_MAX_MS: '1000',
  STATUS_POLL_RATE: '100',
  HEALTH_PORT: '0',
  LOG_LEVEL: 'info',
  PAYOUT_AUDIENCE: TEST_AUDIENCE,
};

export function startWorkerProcess(options: WorkerProcessOptions) {
  // Another folder for the journals is that of another host.
  const folder = basename(options.journalDir);
  const host = folder === 'journal' ? undefined : folder;
  const preload = host === undefined ? [] : ['--import', HOST_NAME];
  const child = spawn(process.execPath, [...preload, findBuiltProgram(), 'worker', ...(options.args ?? [])], {
    stdio: ['ignore', 'ignore', options.stderr ?? 'pipe'],
    env: {
      PATH: process.env['PATH'],
      ...QUICK,
      REDIS_URL: options.redisUrl,
      GATEWAY_PLATFORM_ID: String(options.platformId),
      GATEWAY_BASE_URL: options.baseUrl,
      GATEWAY_SECRET_KEY: options.secretKey,
      SEND_JOURNAL_DIR: options.journalDir,
      ...(host && { HOST_NAME: host }),
      ...options.environment,
    },
  });
  let log = '';
  child.stderr?.on('data', (chunk: Buffer) => (log += chunk.toString()));
  const ended = new Promise<number | NodeJS.Signals>((resolve) => {
    child.once('exit', (code, signal) => {
      running.delete(child);
      log += `ended with ${code ?? signal}\n`;
      resolve(code ?? signal ?? 0);
    });
  });
  const worker = {
    pid: child.pid ?? 0,
    log: () => log,
    said: async (text: string) => until(`the log has "${text}"`, () => log.includes(text)),
    /** Of its health server, once it listens there. */
    async port() {
      const serving = /"url":"http:[^"]*:(\d+)"/;
      await until(
        () => `it serves its health:\n${log}`,
        () => serving.test(log),
      );
      return Number(serving.exec(log)?.[1]);
    },
    /** A page of its health server; status 0 while that cannot be reached. */
    async get(path: string) {
      const [, url = 'http://127.0.0.1:1'] = /"url":"([^"]*)"/.exec(log) ?? [];
      const response = await fetch(`${url}${path}`).catch(() => undefined);
      return { status: response?.status ?? 0, body: (await response?.text()) ?? '' };
    },
    kill: (signal: NodeJS.Signals) => void child.kill(signal),
    ended,
    async end() {
      child.kill('SIGKILL');
      await ended;
    },
  };
  running.set(child, worker);
  return worker;
}

export async function endAllWorkers() {
  await Promise.all([...running.values()].map(async (worker) => worker.end()));
}

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile, cp, mkdir, readdir, rm, stat, truncate } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { within } from '../../../src/base/clock.js';
import { startLocalRedis } from '../../../src/sandbox/local-redis.js';
import type { Arrival, Payment, SandboxStats } from '../../../src/sandbox/sandbox-account.js';
import { findBuiltProgram } from '../../support/built-program.js';
import { PLATFORM_ID, SECRET_KEY, type Plan } from './plan.js';

const running = new Set<ChildProcess>();

// Whatever ends this process, save SIGKILL, ends what it started; the children notice a SIGKILL by their channel.
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export type Environment = Readonly<Record<string, string>>;

/** A Node process with a channel to it. Of the environment here only PATH reaches it. */
function startChild(args: readonly string[], logFile: string, environment: Environment = {}) {
  const log = openSync(logFile, 'a');
  try {
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', log, log, 'ipc'],
      env: { PATH: process.env['PATH'], ...environment },
    });
    running.add(child);
    child.once('exit', () => running.delete(child));
    child.on('error', () => undefined);
    return child;
  } finally {
    closeSync(log);
  }
}

export async function untilEnded(child: ChildProcess) {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.signalCode;
}

export async function endChild(child: ChildProcess) {
  child.kill('SIGKILL');
  await untilEnded(child);
}

const PRELOAD = new URL('under-chaos.mjs', import.meta.url).href;

/** A Redis that hangs is waited for, but not without an end. */
const ENDS_WITHIN_MS = 45_000;
const STARTS_WITHIN_MS = 5_000;

export type WorkerHost = ReturnType<typeof startHost>;

/** A host with a `payouts worker`. @param onDefect - told what a worker must never do */
export function startHost(name: string, dir: string, own: Environment, onDefect: (defect: string) => void) {
  const environment = { GATEWAY_PLATFORM_ID: String(PLATFORM_ID), GATEWAY_SECRET_KEY: SECRET_KEY, ...own };
  const logFile = join(dir, `${name}.log`);
  let startedAt = 0;
  let mayEnd = false;

  const describeEnd = ({ exitCode, signalCode }: ChildProcess) =>
    `${name} ended with ${exitCode === null ? String(signalCode) : `code ${exitCode}`}`;

  const start = () => {
    mayEnd = false;
    startedAt = performance.now();
    const started = startChild(['--import', PRELOAD, findBuiltProgram(), 'worker'], logFile, environment);
    started.once('exit', () => {
      if (!mayEnd) onDefect(`${describeEnd(started)} by itself`);
    });
    return started;
  };
  let child = start();

  return {
    get pid() {
      return child.pid;
    },

    async kill() {
      mayEnd = true;
      await endChild(child);
    },

    async endInGoodOrder() {
      if (mayEnd) return;
      mayEnd = true;
      const ending = child;
      ending.kill('SIGTERM');
      // Before the program runs, nothing listens for signals, and there is nothing to put in order.
      const wasStarting = performance.now() - startedAt < STARTS_WITHIN_MS;
      if ((await within(ENDS_WITHIN_MS, untilEnded(ending))) === undefined) {
        onDefect(`${name} did not end within ${ENDS_WITHIN_MS} ms after SIGTERM`);
        await endChild(ending);
      } else if (ending.exitCode !== 0 && ending.signalCode !== 'SIGKILL') {
        if (ending.signalCode !== 'SIGTERM' || !wasStarting) onDefect(`${describeEnd(ending)} after SIGTERM`);
      }
    },

    stop() {
      if (child.connected) child.send('stop', () => undefined);
    },

    continue() {
      child.kill('SIGCONT');
    },

    startAgain() {
      if (child.exitCode !== null || child.signalCode !== null) child = start();
    },

    readLog: async () => readFile(logFile, 'utf8'),
  };
}

/** The judge of the promises. */
export type GatewayBook = Readonly<{ stats: SandboxStats; arrivals: readonly Arrival[]; payments: readonly Payment[] }>;

/** Each way to come to a decision that an operator signs. */
const SIGNED_FAULTS = [
  { kind: 'reject', every: 5, times: 2 },
  { kind: 'drop-before', every: 7, times: 1 },
  { kind: 'drop-after', every: 9, times: 1 },
];

/** What the workers find by order id in the end, and what is not there to be found. */
const UNANSWERED_FAULTS = [
  { kind: 'drop-after', every: 4 },
  { kind: 'drop-before', every: 9, times: 1 },
];

export type Gateway = Awaited<ReturnType<typeof startGateway>>;

export async function startGateway({ seed, api, timing, signed, orderIdKnownAfterMs }: Plan, dir: string) {
  const { minGapMs, latencyBeforeMs, latencyAfterMs } = timing;
  const options = {
    accounts: [{ platformId: PLATFORM_ID, secretKey: SECRET_KEY }],
    ...{ minGapMs, latencyBeforeMs, latencyAfterMs, settleAfterMs: 200, seed },
    faults: signed ? SIGNED_FAULTS : { v1: [], v2: UNANSWERED_FAULTS }[api],
    v2: { orderIdKnownAfterMs },
  };
  const program = fileURLToPath(new URL('gateway-process.mjs', import.meta.url));
  const child = startChild([program, JSON.stringify(options)], join(dir, 'gateway.log'));
  const [message] = (await Promise.race([once(child, 'message'), once(child, 'exit')])) as [{ url?: string } | null];
  const url = message?.url;
  if (url === undefined) throw new Error('the gateway ended, see gateway.log');
  const control = async (name: string, method: 'GET' | 'POST' = 'GET') =>
    (await fetch(`${url}/__sandbox/${name}`, { method })).json();
  const readStats = async () => (await control('stats')) as SandboxStats;
  const readPayments = async () => ((await control('payments')) as GatewayBook).payments;
  return {
    ...{ url, readStats, readPayments },

    /** What is sent to it meanwhile arrives when it is continued. */
    stop: () => child.kill('SIGSTOP'),
    continue: () => child.kill('SIGCONT'),
    /** Meanwhile calls are carried out, but responses wait. */
    hold: async (action: 'pause' | 'continue') => control(action, 'POST'),
    end: async () => endChild(child),

    async readBook() {
      const { arrivals } = (await control('arrivals')) as GatewayBook;
      return { stats: await readStats(), arrivals, payments: await readPayments() };
    },
  };
}

export type RedisServer = Awaited<ReturnType<typeof startRedis>>;

export async function startRedis(root: string, note: (text: string) => void) {
  const dir = join(root, 'redis');
  const copyDir = join(root, 'redis-copy');
  await mkdir(dir);
  const port = await findSteadyPort();
  let server = await startLocalRedis({ dir, port });
  let busy = Promise.resolve();

  const inTurn = async (work: () => Promise<void>) => {
    const turn = busy.then(work);
    busy = turn.catch(() => undefined);
    await turn;
  };

  /** As docs/runbooks/redis-down.md says for a server that finds its append-only file cut off. */
  const repair = async () => {
    note('Redis refuses its append-only file; redis-check-aof --fix');
    const manifest = join(dir, 'appendonlydir', 'appendonly.aof.manifest');
    const child = spawn('redis-check-aof', ['--fix', manifest], { stdio: ['pipe', 'ignore', 'ignore'] });
    child.stdin.end('y\n');
    const [code] = (await once(child, 'exit')) as unknown[];
    if (code !== 0) throw new Error(`redis-check-aof --fix ended with code ${String(code)}`);
  };

  const killFor = async (downMs: number, mishap?: () => Promise<void>) =>
    inTurn(async () => {
      process.kill(server.pid, 'SIGKILL');
      await server.stop();
      await mishap?.();
      await delay(downMs);
      server = await startLocalRedis({ dir, port }).catch(async (error: unknown) => {
        if (!/unexpected end of file|bad file format/i.test((error as Error).message)) throw error;
        await repair();
        return startLocalRedis({ dir, port });
      });
      note('Redis is back');
    });

  return {
    ...{ port, url: server.url },
    killFor: async (downMs: number) => killFor(downMs),

    cutOff: async (downMs: number, bytes: number) =>
      killFor(downMs, async () => {
        const folder = join(dir, 'appendonlydir');
        const files = (await readdir(folder)).filter((name) => name.endsWith('.incr.aof')).sort();
        const file = join(folder, files.at(-1) ?? '');
        const { size } = await stat(file);
        const left = Math.max(0, size - bytes);
        await truncate(file, left);
        note(`the append-only file is cut from ${size} to ${left} bytes`);
      }),

    copy: async () => inTurn(async () => cp(dir, copyDir, { recursive: true })),

    /** It comes back with the files of the last `copy()`. */
    putBack: async (downMs: number) =>
      killFor(downMs, async () => {
        await rm(dir, { recursive: true });
        await cp(copyDir, dir, { recursive: true });
      }),

    async stop() {
      await busy;
      await server.stop();
    },
  };
}

const FIRST_PORT = 20_000;
const PORTS = 12_000;

/** Below those of outgoing connections: while Redis is down, one to its port might meet itself, and keep it taken. */
async function findSteadyPort() {
  const port = FIRST_PORT + Math.floor(Math.random() * PORTS);
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return findSteadyPort();
  }
  await new Promise((resolve) => server.close(resolve));
  return port;
}

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile, cp, mkdir, readdir, rm, stat, truncate } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { within } from '../../../src/base/clock.js';
import { startLocalRedis, type LocalRedis } from '../../../src/sandbox/local-redis.js';
import type { Arrival, Payment, SandboxStats } from '../../../src/sandbox/sandbox-account.js';
import { findBuiltProgram } from '../../support/built-program.js';
import { PLATFORM_ID, SECRET_KEY, type Plan } from './plan.js';

const running = new Set<ChildProcess>();

// Whatever ends this process, save SIGKILL, ends what it started; the children notice a SIGKILL by their channel.
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export type Environment = Readonly<Record<string, string>>;

/** Starts a Node process with a channel to it, which prints to the file. Only PATH reaches it of the environment here. */
function startChild(args: readonly string[], logFile: string, environment: Environment = {}): ChildProcess {
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

const hasEnded = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null;

export async function untilEnded(child: ChildProcess): Promise<void> {
  if (!hasEnded(child)) await once(child, 'exit');
}

export async function endChild(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await untilEnded(child);
}

const PRELOAD = new URL('under-chaos.mjs', import.meta.url).href;

/** After SIGTERM: a Redis that hangs is waited for, but not without an end. */
const ENDS_WITHIN_MS = 45_000;
const STARTS_WITHIN_MS = 5_000;

export class WorkerHost {
  readonly name: string;
  readonly #environment: Environment;
  readonly #logFile: string;
  readonly #onDefect: (defect: string) => void;
  #child: ChildProcess;
  #startedAt = 0;
  #mayEnd = false;

  constructor(name: string, dir: string, environment: Environment, onDefect: (defect: string) => void) {
    this.name = name;
    this.#environment = { GATEWAY_PLATFORM_ID: String(PLATFORM_ID), GATEWAY_SECRET_KEY: SECRET_KEY, ...environment };
    this.#logFile = join(dir, `${name}.log`);
    this.#onDefect = onDefect;
    this.#child = this.#start();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  async kill(): Promise<void> {
    this.#mayEnd = true;
    await endChild(this.#child);
  }

  async endInGoodOrder(): Promise<void> {
    if (this.#mayEnd) return;
    this.#mayEnd = true;
    const child = this.#child;
    child.kill('SIGTERM');
    const ended = untilEnded(child).then(() => true);
    // Before the program runs, nothing listens for signals, and there is nothing to put in order.
    const wasStarting = performance.now() - this.#startedAt < STARTS_WITHIN_MS;
    if (!(await within(ENDS_WITHIN_MS, ended))) {
      this.#onDefect(`${this.name} did not end within ${ENDS_WITHIN_MS} ms after SIGTERM`);
      await endChild(child);
    } else if (child.exitCode !== 0 && child.signalCode !== 'SIGKILL') {
      if (child.signalCode !== 'SIGTERM' || !wasStarting) this.#onDefect(`${this.#describeEnd(child)} after SIGTERM`);
    }
  }

  stop(): void {
    if (this.#child.connected) this.#child.send('stop', () => undefined);
  }

  continue(): void {
    this.#child.kill('SIGCONT');
  }

  startAgain(): void {
    if (hasEnded(this.#child)) this.#child = this.#start();
  }

  async readLog(): Promise<string> {
    return readFile(this.#logFile, 'utf8');
  }

  #start(): ChildProcess {
    this.#mayEnd = false;
    this.#startedAt = performance.now();
    const child = startChild(['--import', PRELOAD, findBuiltProgram(), 'worker'], this.#logFile, this.#environment);
    child.once('exit', () => {
      if (!this.#mayEnd) this.#onDefect(`${this.#describeEnd(child)} by itself`);
    });
    return child;
  }

  #describeEnd({ exitCode, signalCode }: ChildProcess) {
    return `${this.name} ended with ${exitCode === null ? String(signalCode) : `code ${exitCode}`}`;
  }
}

export type GatewayBook = Readonly<{
  stats: SandboxStats;
  arrivals: readonly Arrival[];
  payments: readonly Payment[];
}>;

/** With keys: each way to come to a decision that an operator signs. */
const SIGNED_FAULTS = [
  { kind: 'reject', every: 5, times: 2 },
  { kind: 'drop-before', every: 7, times: 1 },
  { kind: 'drop-after', every: 9, times: 1 },
];

export class Gateway {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  static async start(
    { seed, timing, signed }: Pick<Plan, 'seed' | 'timing' | 'signed'>,
    dir: string,
  ): Promise<Gateway> {
    const { minGapMs, latencyBeforeMs, latencyAfterMs } = timing;
    const options = {
      accounts: [{ platformId: PLATFORM_ID, secretKey: SECRET_KEY }],
      ...{ minGapMs, latencyBeforeMs, latencyAfterMs, settleAfterMs: 200, seed },
      faults: signed ? SIGNED_FAULTS : [],
    };
    const program = fileURLToPath(new URL('gateway-process.mjs', import.meta.url));
    const child = startChild([program, JSON.stringify(options)], join(dir, 'gateway.log'));
    const [message] = (await Promise.race([once(child, 'message'), once(child, 'exit')])) as [{ url?: string } | null];
    if (message?.url === undefined) throw new Error('the gateway ended, see gateway.log');
    return new Gateway(child, message.url);
  }

  stop(): void {
    this.#child.kill('SIGSTOP');
  }

  continue(): void {
    this.#child.kill('SIGCONT');
  }

  async hold(action: 'pause' | 'continue'): Promise<void> {
    await this.#control(action, 'POST');
  }

  async readStats(): Promise<SandboxStats> {
    return (await this.#control('stats')) as SandboxStats;
  }

  async readBook(): Promise<GatewayBook> {
    const { arrivals } = (await this.#control('arrivals')) as GatewayBook;
    return { stats: await this.readStats(), arrivals, payments: await this.readPayments() };
  }

  async readPayments(): Promise<readonly Payment[]> {
    return ((await this.#control('payments')) as GatewayBook).payments;
  }

  async end(): Promise<void> {
    await endChild(this.#child);
  }

  async #control(name: string, method: 'GET' | 'POST' = 'GET'): Promise<unknown> {
    return (await fetch(`${this.url}/__sandbox/${name}`, { method })).json();
  }
}

/** A Redis with an append-only file, which is killed, loses the end of its file, or comes back older. */
export class RedisServer {
  readonly port: number;
  readonly #dir: string;
  readonly #copyDir: string;
  readonly #note: (text: string) => void;
  #server: LocalRedis;
  #busy: Promise<void> = Promise.resolve();

  private constructor(server: LocalRedis, root: string, note: (text: string) => void) {
    this.port = server.port;
    this.#server = server;
    this.#dir = server.dir;
    this.#copyDir = join(root, 'redis-copy');
    this.#note = note;
  }

  static async start(root: string, note: (text: string) => void): Promise<RedisServer> {
    const dir = join(root, 'redis');
    await mkdir(dir);
    return new RedisServer(await startLocalRedis({ dir, port: await findSteadyPort() }), root, note);
  }

  get url(): string {
    return this.#server.url;
  }

  async killFor(downMs: number): Promise<void> {
    await this.#whileDown(downMs);
  }

  async cutOff(downMs: number, bytes: number): Promise<void> {
    await this.#whileDown(downMs, async () => {
      const folder = join(this.#dir, 'appendonlydir');
      const files = (await readdir(folder)).filter((name) => name.endsWith('.incr.aof')).sort();
      const file = join(folder, files.at(-1) ?? '');
      const { size } = await stat(file);
      await truncate(file, Math.max(0, size - bytes));
      this.#note(`the append-only file is cut from ${size} to ${Math.max(0, size - bytes)} bytes`);
    });
  }

  async copy(): Promise<void> {
    await this.#inTurn(async () => {
      await cp(this.#dir, this.#copyDir, { recursive: true });
    });
  }

  async putBack(downMs: number): Promise<void> {
    await this.#whileDown(downMs, async () => {
      await rm(this.#dir, { recursive: true });
      await cp(this.#copyDir, this.#dir, { recursive: true });
    });
  }

  async stop(): Promise<void> {
    await this.#busy;
    await this.#server.stop();
  }

  async #whileDown(downMs: number, mishap?: () => Promise<void>) {
    await this.#inTurn(async () => {
      process.kill(this.#server.pid, 'SIGKILL');
      await this.#server.stop();
      await mishap?.();
      await delay(downMs);
      await this.#startAgain();
      this.#note('Redis is back');
    });
  }

  async #inTurn(work: () => Promise<void>) {
    const turn = this.#busy.then(work);
    this.#busy = turn.catch(() => undefined);
    await turn;
  }

  async #startAgain() {
    const options = { dir: this.#dir, port: this.port };
    this.#server = await startLocalRedis(options).catch(async (error: unknown) => {
      if (!/unexpected end of file|bad file format/i.test((error as Error).message)) throw error;
      await this.#repair();
      return startLocalRedis(options);
    });
  }

  /** As docs/runbooks/redis-down.md says for a server that finds its append-only file cut off. */
  async #repair() {
    this.#note('Redis refuses its append-only file; redis-check-aof --fix');
    const manifest = join(this.#dir, 'appendonlydir', 'appendonly.aof.manifest');
    const child = spawn('redis-check-aof', ['--fix', manifest], { stdio: ['pipe', 'ignore', 'ignore'] });
    child.stdin.end('y\n');
    const [code] = (await once(child, 'exit')) as unknown[];
    if (code !== 0) throw new Error(`redis-check-aof --fix ended with code ${String(code)}`);
  }
}

const FIRST_PORT = 20_000;
const PORTS = 12_000;

/**
 * A free port below those that the system gives to outgoing connections. While Redis is down, a connection to a port of
 * theirs may meet itself, and then Redis finds its port taken.
 */
async function findSteadyPort() {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS);
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (isFree) await new Promise((resolve) => server.close(resolve));
    if (isFree) return port;
  }
}

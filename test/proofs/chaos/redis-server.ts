import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, readdir, rm, stat, truncate } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startLocalRedis, type LocalRedis } from '../../../src/sandbox/local-redis.js';

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

  /** Killed; when it comes back, the last bytes of its append-only file are gone. */
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

  /** Killed; when it comes back, it has the files of the last `copy()`. */
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

  async #whileDown(downMs: number, mishap?: () => Promise<void>): Promise<void> {
    await this.#inTurn(async () => {
      process.kill(this.#server.pid, 'SIGKILL');
      await this.#server.stop();
      await mishap?.();
      await delay(downMs);
      await this.#startAgain();
      this.#note('Redis is back');
    });
  }

  async #inTurn(work: () => Promise<void>): Promise<void> {
    const turn = this.#busy.then(work);
    this.#busy = turn.catch(() => undefined);
    await turn;
  }

  async #startAgain(): Promise<void> {
    const options = { dir: this.#dir, port: this.port };
    this.#server = await startLocalRedis(options).catch(async (error: unknown) => {
      if (!/unexpected end of file|bad file format/i.test((error as Error).message)) throw error;
      await this.#repair();
      return startLocalRedis(options);
    });
  }

  /** As docs/runbooks/redis-down.md says for a server that finds its append-only file cut off. */
  async #repair(): Promise<void> {
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
async function findSteadyPort(): Promise<number> {
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

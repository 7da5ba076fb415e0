import { type ChildProcess, execFile, execFileSync, spawn, type SpawnOptions } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * Hosts as network namespaces on one bridge. A cut drops what is sent in silence, as a broken switch does. A namespace
 * ends with the process that holds it, so that a killed test leaves nothing behind.
 */
export class NetworkHosts {
  readonly #hub: ChildProcess;
  readonly #hosts: readonly ChildProcess[];
  readonly #children = new Set<ChildProcess>();

  private constructor(hub: ChildProcess, hosts: readonly ChildProcess[]) {
    this.#hub = hub;
    this.#hosts = hosts;
  }

  /** @throws Error if namespaces cannot be had here */
  static async start(count: number): Promise<NetworkHosts> {
    requireNamespaces();
    const hub = await holdNamespace();
    const holders = [];
    for (let host = 0; host < count; host += 1) holders.push(await holdNamespace());
    const hosts = new NetworkHosts(hub, holders);
    hosts.#connect();
    return hosts;
  }

  /** @param host - from 1 on */
  addressOf(host: number): string {
    return `10.88.0.${host}`;
  }

  /** Starts a program on a host, which has a name of its own. Its output is appended to the file. It ends with this one. */
  spawn(
    host: number,
    [command, ...args]: readonly [string, ...string[]],
    options: { env?: object; log?: string } = {},
  ) {
    const { env, log } = options;
    const output = log === undefined ? undefined : openSync(log, 'a');
    const child = spawn(
      'unshare',
      [
        '-u',
        'sh',
        '-c',
        `hostname host-${host}; exec nsenter -t "$0" -n setpriv --pdeathsig KILL "$@"`,
        this.#pidOf(host),
        command,
        ...args,
      ],
      {
        stdio: ['ignore', output ?? 'ignore', output ?? 'ignore'],
        ...(env !== undefined && { env: { ...env } }),
      } as SpawnOptions,
    );
    if (output !== undefined) closeSync(output);
    this.#children.add(child);
    child.once('exit', () => this.#children.delete(child));
    return child;
  }

  /** Runs a program on a host to its end. @returns its exit code, and what it said */
  async run(host: number, args: readonly string[], env: NodeJS.ProcessEnv = process.env) {
    return new Promise<{ code: number; text: string }>((resolve) => {
      const options = { env, timeout: 60_000, maxBuffer: 16 * 1024 * 1024 };
      execFile('nsenter', ['-t', this.#pidOf(host), '-n', ...args], options, (error, stdout, stderr) => {
        const code = error === null ? 0 : Number((error as { code?: unknown }).code ?? 1);
        resolve({ code, text: `${stdout}${stderr}`.trim() });
      });
    });
  }

  cut(host: number): void {
    this.#ip(['link', 'set', `port${host}`, 'down']);
  }

  heal(host: number): void {
    this.#ip(['link', 'set', `port${host}`, 'up']);
  }

  /** Cuts and heals a host's link several times a second, as a bad cable does: what is sent arrives late, or twice. */
  async flap(host: number, forMs: number): Promise<void> {
    const endsAt = performance.now() + forMs;
    for (let turn = 0; performance.now() < endsAt; turn += 1) {
      this.cut(host);
      await delay(100 + 150 * (turn % 5));
      this.heal(host);
      await delay(150 + 100 * (turn % 3));
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#children].map(endChild));
    await Promise.all([...this.#hosts, this.#hub].map(endChild));
  }

  #connect(): void {
    this.#ip(['link', 'add', 'bridge', 'type', 'bridge']);
    this.#ip(['link', 'set', 'bridge', 'up']);
    for (const [index, holder] of this.#hosts.entries()) {
      const host = index + 1;
      this.#ip(['link', 'add', `port${host}`, 'type', 'veth', 'peer', 'name', 'data', 'netns', String(holder.pid)]);
      this.#ip(['link', 'set', `port${host}`, 'master', 'bridge', 'up']);
      for (const line of ['link set lo up', `addr add ${this.addressOf(host)}/24 dev data`, 'link set data up']) {
        run('nsenter', ['-t', String(holder.pid), '-n', 'ip', ...line.split(' ')]);
      }
    }
  }

  #ip(args: readonly string[]): void {
    run('nsenter', ['-t', String(this.#hub.pid), '-n', 'ip', ...args]);
  }

  #pidOf(host: number): string {
    return String(this.#hosts[host - 1]?.pid);
  }
}

function requireNamespaces(): void {
  try {
    run('unshare', ['-n', 'ip', 'link', 'set', 'lo', 'up']);
  } catch (error) {
    throw new Error('This proof needs network namespaces: run it as root, on Linux with iproute2 and util-linux.', {
      cause: error,
    });
  }
}

function run(command: string, args: readonly string[]): void {
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'], timeout: 10_000 });
}

/** The namespace is that of a process that only waits. It ends with this one. */
async function holdNamespace(): Promise<ChildProcess> {
  const holder = spawn('unshare', ['-n', 'sh', '-c', 'echo ready; exec cat'], { stdio: ['pipe', 'pipe', 'ignore'] });
  await new Promise<void>((resolve, reject) => {
    holder.stdout.once('data', () => {
      resolve();
    });
    holder.once('exit', () => {
      reject(new Error('a network namespace could not be made'));
    });
  });
  return holder;
}

export async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await Promise.race([ended, delay(5_000, undefined, { ref: false })]);
}

import { type ChildProcess, execFile, execFileSync, spawn, type SpawnOptions } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type BadLine, layWire } from '../../late/wire.js';

/**
 * Hosts as network namespaces on one bridge. A cut drops what is sent in silence, as a broken switch does. A namespace
 * ends with the process that holds it, so that a killed test leaves nothing behind.
 */
export class NetworkHosts {
  readonly #hub: ChildProcess;
  readonly #hosts: readonly ChildProcess[];
  readonly #children = new Set<ChildProcess>();
  readonly #wires = new Map<number, { close(): Promise<unknown> }>();

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

  /** Replaces a host's link by one that loses and delays packets, as `tc netem` would. */
  async layBadLine(host: number, line: BadLine): Promise<void> {
    const [near, far] = [`near${host}`, `far${host}`];
    const hub = ['nsenter', '-t', String(this.#hub.pid), '-n'];
    const wire = await layWire([near, far], line, {
      inCentre: (...command) => [...hub, ...command],
      start: (command, stdio) =>
        spawn('nsenter', [...hub.slice(1), 'setpriv', '--pdeathsig', 'KILL', ...command], {
          stdio: ['ignore', stdio, 'ignore'],
        }),
    });
    this.#wires.set(host, wire);
    const address = this.addressOf(host);
    // The hub answers on the bridge for the host, and routes to the line.
    for (const name of ['ip_forward', 'conf/bridge/proxy_arp']) {
      run('nsenter', [...hub.slice(1), 'sh', '-c', `echo 1 > /proc/sys/net/ipv4/${name}`]);
    }
    this.#ip(['addr', 'replace', '10.88.0.254/24', 'dev', 'bridge']);
    this.cut(host);
    this.#ip(['link', 'set', far, 'netns', this.#pidOf(host)]);
    const inHost = (...args: string[]): void => {
      run('nsenter', ['-t', this.#pidOf(host), '-n', 'ip', ...args]);
    };
    inHost('link', 'set', 'data', 'down');
    inHost('addr', 'add', `${address}/32`, 'dev', far);
    inHost('link', 'set', far, 'up');
    inHost('route', 'add', '10.88.0.0/24', 'dev', far, 'src', address);
    this.#ip(['link', 'set', near, 'up']);
    this.#ip(['route', 'add', `${address}/32`, 'dev', near]);
  }

  /** Ends a bad line: the host has its own link again. */
  async endBadLine(host: number): Promise<void> {
    await this.#wires.get(host)?.close();
    this.#wires.delete(host);
    run('nsenter', ['-t', this.#pidOf(host), '-n', 'ip', 'link', 'set', 'data', 'up']);
    this.heal(host);
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
    await Promise.all([...this.#wires.values()].map(async (wire) => wire.close()));
    await Promise.all([...this.#hosts, this.#hub].map(endChild));
  }

  #connect(): void {
    this.#ip(['link', 'set', 'lo', 'up']);
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

import type { ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, connect, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startSandbox, type Sandbox } from '../../../../src/sandbox/index.js';
import { findBuiltProgram } from '../../../support/built-program.js';
import { until } from '../../../support/until.js';
import { type Control, makeControl } from './control-files.js';
import { endChild, NetworkHosts } from './network-hosts.js';

/** Where each Redis and Sentinel is; the first Redis is the master. Host numbers are from 1 on. */
export interface Layout {
  readonly redis: readonly number[];
  readonly sentinels: readonly number[];
  readonly minReplicasToWrite?: number;
  /** The rules of a policy. With it, every payout is signed, and people decide with the keys of ann and bob. */
  readonly rules?: string;
}

const MASTER_NAME = 'payouts';
const REDIS_PORT = 6_379;
const SENTINEL_PORT = 26_379;
const GATEWAY_PORT = 8_080;
const HEALTH_PORT = 9_464;
const WALLET = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';

/** So soon a master forgets a silent replica, in seconds. */
export const FORGET_REPLICA_S = 6;

/** Sentinel repeats a failover that failed after twice its time. */
const WHOLE_WITHIN_MS = 180_000;

interface ReplicatedServer {
  readonly host: number;
  readonly port: number;
  readonly args: readonly [string, ...string[]];
  readonly log: string;
  child: ChildProcess;
}

/** Two or more hosts with replicated Redis servers, Sentinels and workers, and a gateway that every host reaches. */
export class SplitWorld {
  readonly #dir: string;
  readonly #hosts: NetworkHosts;
  readonly #sandbox: Sandbox;
  readonly #gateway: Server;
  readonly #redis: ReplicatedServer[] = [];
  readonly #sentinels: ReplicatedServer[] = [];
  readonly #workers = new Map<number, ChildProcess>();
  #control: Control | undefined;
  #url = '';

  private constructor(dir: string, hosts: NetworkHosts, sandbox: Sandbox, gateway: Server) {
    this.#dir = dir;
    this.#hosts = hosts;
    this.#sandbox = sandbox;
    this.#gateway = gateway;
  }

  static async start(layout: Layout): Promise<SplitWorld> {
    findBuiltProgram();
    const hosts = await NetworkHosts.start(Math.max(...layout.redis, ...layout.sentinels));
    const dir = mkdtempSync(join(tmpdir(), 'payouts-failover-'));
    // It blocks nobody, so that its book shows every payment that was asked for.
    const sandbox = await startSandbox({
      accounts: [{ platformId: 1, secretKey: 'k' }],
      minGapMs: 1,
      settleAfterMs: 300,
    });
    const gateway = createServer({ allowHalfOpen: true }, (client) => {
      const target = connect({ port: sandbox.port, host: '127.0.0.1', allowHalfOpen: true });
      client.pipe(target).pipe(client);
      client.on('error', () => target.destroy());
      target.on('error', () => client.destroy());
    });
    gateway.listen(join(dir, 'gateway'));
    const world = new SplitWorld(dir, hosts, sandbox, gateway);
    try {
      await world.#open(layout);
    } catch (error) {
      await world.close();
      throw error;
    }
    return world;
  }

  get hosts(): NetworkHosts {
    return this.#hosts;
  }

  get sandbox(): Sandbox {
    return this.#sandbox;
  }

  get stats() {
    return this.#sandbox.stats();
  }

  /** The private key of a person. */
  keyOf(person: string): string {
    return this.#control?.keyOf(person) ?? '';
  }

  /** The smallest gap between two withdrawals at the gateway, and what it was asked to pay twice. */
  get broken() {
    const { smallestGapMs, duplicatePayments } = this.stats;
    return { paidTwice: duplicatePayments.length, tooClose: smallestGapMs !== null && smallestGapMs < 1_000 };
  }

  async #open({ redis, sentinels, minReplicasToWrite = 1, rules }: Layout): Promise<void> {
    const [master = 1] = redis;
    if (rules !== undefined) this.#control = makeControl(join(this.#dir, 'control'), rules);
    for (const [index, host] of redis.entries()) {
      const port = REDIS_PORT + index;
      const dir = this.#dirOf(`redis-${index}`);
      // Sentinel rewrites it, so that a server that is restarted keeps its role.
      const file = join(dir, 'redis.conf');
      const settings = [
        ...[`port ${port}`, 'bind 0.0.0.0', 'protected-mode no', `dir ${dir}`, 'save ""'],
        ...['appendonly yes', 'appendfsync always', 'aof-load-truncated no', 'maxmemory-policy noeviction'],
        ...['repl-diskless-sync-delay 0', `repl-timeout ${FORGET_REPLICA_S}`, 'repl-ping-replica-period 1'],
        ...[`min-replicas-to-write ${minReplicasToWrite}`, 'min-replicas-max-lag 10'],
        ...(index === 0 ? [] : [`replicaof ${this.#hosts.addressOf(master)} ${REDIS_PORT}`]),
      ];
      writeFileSync(file, settings.join('\n'));
      this.#redis.push(this.#startServer(host, port, `redis-${index}`, ['redis-server', file]));
    }
    await until('the replicas follow', async () => (await this.onlineOf(0)) === redis.length - 1);
    for (const [index, host] of sentinels.entries()) {
      const port = SENTINEL_PORT + index;
      const file = join(this.#dirOf(`sentinel-${index}`), 'sentinel.conf');
      writeFileSync(
        file,
        [
          ...[`port ${port}`, 'bind 0.0.0.0', 'protected-mode no', `dir ${this.#dirOf(`sentinel-${index}`)}`],
          `sentinel monitor ${MASTER_NAME} ${this.#hosts.addressOf(master)} ${REDIS_PORT} 2`,
          `sentinel down-after-milliseconds ${MASTER_NAME} 2000`,
          `sentinel failover-timeout ${MASTER_NAME} 6000`,
        ].join('\n'),
      );
      this.#sentinels.push(this.#startServer(host, port, `sentinel-${index}`, ['redis-server', file, '--sentinel']));
    }
    const addresses = sentinels.map((host, index) => `${this.#hosts.addressOf(host)}:${SENTINEL_PORT + index}`);
    this.#url =
      sentinels.length === 0
        ? `redis://${this.#hosts.addressOf(master)}:${REDIS_PORT}`
        : `redis-sentinel://${addresses.join(',')}/${MASTER_NAME}`;
    for (const { host, port } of this.#sentinels) {
      const known = new RegExp(`slaves=${redis.length - 1},sentinels=${sentinels.length}`);
      await until('Sentinel knows all', async () => known.test(await this.#cli(host, port, 'INFO', 'sentinel')));
    }
    for (const host of new Set([...redis, ...sentinels])) {
      const path = join(this.#dir, 'gateway');
      const program = fileURLToPath(new URL('forward.mjs', import.meta.url));
      this.#hosts.spawn(host, [process.execPath, program, String(GATEWAY_PORT), path]);
    }
  }

  #startServer(host: number, port: number, name: string, args: readonly [string, ...string[]]): ReplicatedServer {
    const log = join(this.#dir, `${name}.log`);
    return { host, port, args, log, child: this.#hosts.spawn(host, args, { log }) };
  }

  #dirOf(name: string): string {
    const dir = join(this.#dir, name);
    mkdirSync(dir, { recursive: true });
    return dir;
  }

  async #cli(host: number, port: number, ...args: readonly string[]): Promise<string> {
    const given = ['redis-cli', '-h', this.#hosts.addressOf(host), '-p', String(port), ...args];
    return (await this.#hosts.run(host, ['timeout', '3', ...given])).text;
  }

  /** Asks a Redis on its own host, also while that is cut off. */
  async ask(redis: number, ...args: readonly string[]): Promise<string> {
    const { host, port } = this.#redis[redis] as ReplicatedServer;
    return this.#cli(host, port, ...args);
  }

  async onlineOf(redis: number): Promise<number> {
    return [...(await this.ask(redis, 'INFO', 'replication')).matchAll(/^slave\d+:.*state=online/gm)].length;
  }

  /** The one of these servers that leads, else the first. */
  async findLeader(servers: readonly number[]): Promise<number> {
    for (const each of servers) if ((await this.ask(each, 'INFO', 'replication')).includes('role:master')) return each;
    return servers[0] ?? 0;
  }

  /** One of these servers leads, although the others do not know. */
  async untilPromoted(servers: readonly number[]): Promise<void> {
    await until('a replica is promoted', async () => {
      const said = await Promise.all(servers.map(async (each) => this.ask(each, 'INFO', 'replication')));
      return said.some((info) => info.includes('role:master'));
    });
  }

  async untilWhole(): Promise<void> {
    const wanted = this.#redis.length - 1;
    let said: readonly string[] = [];
    const isWhole = async () => {
      said = await Promise.all([...this.#redis.keys()].map(async (index) => this.ask(index, 'INFO', 'replication')));
      return said.some(
        (info) => info.includes('role:master') && [...info.matchAll(/^slave\d+:.*state=online/gm)].length === wanted,
      );
    };
    await until(() => `one master has every replica:\n${said.join('\n')}`, isWhole, WHOLE_WITHIN_MS);
  }

  async kill(redis: number): Promise<void> {
    await endChild((this.#redis[redis] as ReplicatedServer).child);
  }

  start(redis: number): void {
    const server = this.#redis[redis] as ReplicatedServer;
    server.child = this.#hosts.spawn(server.host, server.args, { log: server.log });
  }

  async restart(redis: number): Promise<void> {
    await this.kill(redis);
    this.start(redis);
  }

  /** A server stands still, as on a machine that is suspended, or goes on. */
  standStill(redis: number, signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#redis[redis]?.child.kill(signal);
  }

  workerStandsStill(host: number, signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#workers.get(host)?.kill(signal);
  }

  async restartSentinel(sentinel: number): Promise<void> {
    const server = this.#sentinels[sentinel] as ReplicatedServer;
    await endChild(server.child);
    server.child = this.#hosts.spawn(server.host, server.args, { log: server.log });
  }

  /** A planned failover, as an operator orders it. */
  async failOver(): Promise<void> {
    const [sentinel] = this.#sentinels;
    if (sentinel !== undefined) await this.#cli(sentinel.host, sentinel.port, 'SENTINEL', 'FAILOVER', MASTER_NAME);
  }

  /** Each Sentinel forgets what does not reply now, one after the other, as docs/runbooks/replicas-missing.md says. */
  async resetSentinels(): Promise<void> {
    for (const { host, port } of this.#sentinels) {
      await this.#cli(host, port, 'SENTINEL', 'RESET', MASTER_NAME);
      const known = /status=ok,address=[\d.:]+,slaves=1,sentinels=3/;
      await until('Sentinel knows what is left', async () =>
        known.test(await this.#cli(host, port, 'INFO', 'sentinel')),
      );
    }
  }

  /**
   * Makes one Redis the master, under the address that processes know (a world without Sentinels).
   * @param of - the servers that follow it; all others if undefined
   */
  async promote(redis: number, of?: readonly number[]): Promise<void> {
    const { host, port } = this.#redis[redis] as ReplicatedServer;
    const address = this.#hosts.addressOf(host);
    await this.ask(redis, 'REPLICAOF', 'NO', 'ONE');
    for (const [index, server] of this.#redis.entries()) {
      if (index === redis || of?.includes(index) === false) continue;
      if (server.child.exitCode !== null || server.child.signalCode !== null) this.start(index);
      await until('it replies', async () => (await this.ask(index, 'PING')) === 'PONG');
      await this.ask(index, 'REPLICAOF', address, String(port));
    }
    this.#url = `redis://${address}:${port}`;
    for (const each of this.#workers.keys()) await this.restartWorker(each);
  }

  #environment(host: number): Record<string, string> {
    return {
      PATH: process.env['PATH'] ?? '',
      HOME: process.env['HOME'] ?? '',
      REDIS_URL: this.#url,
      GATEWAY_PLATFORM_ID: '1',
      GATEWAY_SECRET_KEY: 'k',
      GATEWAY_BASE_URL: `http://127.0.0.1:${GATEWAY_PORT}`,
      SEND_JOURNAL_DIR: join(this.#dir, `journal-${host}`),
      HEALTH_PORT: String(HEALTH_PORT),
      LEASE_MS: '3000',
      STATUS_POLL_MIN_MS: '500',
      ...this.#control?.environment,
    };
  }

  startWorker(host: number): void {
    const command = [process.execPath, findBuiltProgram(), 'worker'] as const;
    const log = join(this.#dir, `worker-${host}.log`);
    this.#workers.set(host, this.#hosts.spawn(host, command, { env: this.#environment(host), log }));
  }

  async restartWorker(host: number): Promise<void> {
    const worker = this.#workers.get(host);
    if (worker !== undefined) await endChild(worker);
    this.startWorker(host);
  }

  workerLog(host: number): string {
    return readFileSync(join(this.#dir, `worker-${host}.log`), 'utf8');
  }

  async payouts(host: number, ...args: readonly string[]) {
    return this.#hosts.run(host, [process.execPath, findBuiltProgram(), ...args], this.#environment(host));
  }

  async readyz(host: number): Promise<string> {
    return (await this.#hosts.run(host, ['curl', '-s', '-m', '4', `http://127.0.0.1:${HEALTH_PORT}/readyz`])).text;
  }

  /** Payouts p1, p2, … of 1, 2, … */
  async import(count: number): Promise<void> {
    const file = join(this.#dir, 'payouts.jsonl');
    const lines = Array.from({ length: count }, (_, index) =>
      JSON.stringify({ payoutId: `p${index + 1}`, paymentId: 6, amount: String(index + 1), addressTo: WALLET }),
    );
    writeFileSync(file, `${lines.join('\n')}\n`);
    if (this.#control !== undefined) {
      for (const host of [1, 2]) await this.done(host, 'audit', 'adopt-journal', '--yes', '--reason', 'a new account');
    }
    await this.done(1, 'import', file, '--yes');
    await this.done(1, 'new-account', '--yes', '--reason', 'a test');
  }

  /** Runs a command that must succeed. @throws Error with what it said */
  async done(host: number, ...args: readonly string[]): Promise<string> {
    const { code, text } = await this.payouts(host, ...args);
    if (code !== 0) throw new Error(`payouts ${args.join(' ')} ended with ${code}: ${text}`);
    return text;
  }

  async untilSent(count: number): Promise<void> {
    await until(
      () => `${count} payouts are sent:\n${this.logs()}`,
      () => this.stats.arrivals >= count,
    );
  }

  logs(): string {
    return [...this.#workers.keys()].map((host) => `worker ${host}\n${this.workerLog(host).slice(-3_000)}`).join('\n');
  }

  async stateOf(payoutId: string, host = 1): Promise<string> {
    const { text } = await this.payouts(host, 'get', payoutId, '--json');
    return /"state": ?"(\w+)"/.exec(text)?.[1] ?? '';
  }

  async close(): Promise<void> {
    await this.#hosts.close();
    this.#gateway.close();
    await this.#sandbox.close();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

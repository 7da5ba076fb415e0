import { spawn } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '../../../src/sandbox/local-redis.js';
import { findBuiltProgram } from '../../support/built-program.js';
import { until } from '../../support/until.js';

export interface ShellResult {
  readonly code: number | null;
  readonly output: string;
}

export interface RunbookHostOptions {
  readonly gatewayUrl: string;
  readonly secretKey: string;
  /** Of another host whose Redis this one uses. */
  readonly redisPort?: number;
}

/** Of both Redis: the operator has exported it as REDISCLI_AUTH. */
const PASSWORD = 'runbook-0123456789';

/** Short times; the interval between sends is the real one. */
const QUICK = `LEASE_MS=1500
TAKEOVER_QUARANTINE_MS=1000
IN_FLIGHT_MAX_MS=2000
STATUS_POLL_MIN_MS=200
STATUS_POLL_MAX_MS=1000
HEALTH_PORT=0
`;

/**
 * A machine as docs/runbooks has it, in a folder: /etc/payouts, /var/lib and /backup lie there, `payouts` is the built
 * program with the settings of /etc/payouts/payouts.env, and `systemctl` starts and ends real processes.
 */
export class RunbookHost {
  readonly root: string;
  readonly redisPort: number;
  /** Of the Redis that a runbook moves to. */
  readonly newRedisPort: number;
  readonly #ownsRedis: boolean;
  readonly #words = new Map<string, string>();

  private constructor(root: string, ports: readonly [number, number], ownsRedis: boolean) {
    [this.root, [this.redisPort, this.newRedisPort], this.#ownsRedis] = [root, ports, ownsRedis];
  }

  static async open(options: RunbookHostOptions): Promise<RunbookHost> {
    const root = await mkdtemp(join(tmpdir(), 'payouts-runbook-'));
    const ports = [options.redisPort ?? (await findFreePort()), await findFreePort()] as const;
    const host = new RunbookHost(root, ports, options.redisPort === undefined);
    await host.#fill(options);
    if (host.#ownsRedis) {
      await host.shell('systemctl start redis-server');
      await until('Redis responds', async () => (await host.shell('redis-cli PING')).output.includes('PONG'));
    }
    return host;
  }

  get redisUrl(): string {
    return this.#urlOf(this.redisPort);
  }

  /** Of the Redis that a runbook moves to. */
  get newRedisUrl(): string {
    return this.#urlOf(this.newRedisPort);
  }

  /** Starts the Redis that a runbook moves to. */
  async startNewRedis(): Promise<void> {
    const folder = this.path('var/lib/redis-new');
    await mkdir(folder);
    await writeFile(join(folder, 'conf'), redisConf(folder, this.newRedisPort));
    await this.shell('redis-server /var/lib/redis-new/conf --daemonize yes --logfile /var/lib/redis-new/log');
  }

  /** A file of the host, by its path there. */
  path(path: string): string {
    return join(this.root, path);
  }

  /** What a word of the page stands for in this test. */
  says(word: string, meaning: string): void {
    this.#words.set(word, meaning);
  }

  async writeSettings(settings: string): Promise<void> {
    await writeFile(
      this.path('etc/payouts/payouts.env'),
      `REDIS_URL_FILE=${this.path('etc/payouts/secrets/redis-url')}
SEND_JOURNAL_DIR=${this.path('var/lib/payouts/journal')}
${QUICK}${settings}`,
    );
  }

  async shell(script: string): Promise<ShellResult> {
    const child = spawn('bash', ['-euo', 'pipefail', '-c', this.#translate(script)], {
      cwd: this.root,
      env: { PATH: `${this.path('bin')}:${process.env['PATH'] ?? ''}`, HOME: this.root, REDISCLI_AUTH: PASSWORD },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (output += text.toString()));
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
    return { code, output };
  }

  /** The pid of a service that was started. */
  async pidOf(unit: string): Promise<number> {
    return Number(await readFile(this.path(`run/${unit}.pid`), 'utf8'));
  }

  async log(unit = 'payouts-worker'): Promise<string> {
    return readFile(this.path(`run/${unit}.log`), 'utf8');
  }

  async close(): Promise<void> {
    await this.shell('systemctl stop payouts-worker');
    if (this.#ownsRedis) {
      for (const port of [this.redisPort, this.newRedisPort])
        await this.shell(`redis-cli -p ${port} SHUTDOWN NOSAVE || true`);
    }
    await rm(this.root, { recursive: true, force: true });
  }

  /** Paths and names of the page, as they are here. */
  #translate(script: string): string {
    let text = script
      .replace(/ -o \w+ -g \w+/g, '')
      .replaceAll('runuser -u redis -- ', '')
      .replaceAll('ssh redis-old.example ', '')
      .replaceAll('-h redis-old.example', `-p ${this.redisPort}`)
      .replaceAll('-h redis-new.example', `-p ${this.newRedisPort}`)
      .replaceAll('redis-old.example 6379', `127.0.0.1 ${this.redisPort}`)
      .replaceAll('redis-old.example', `127.0.0.1:${this.redisPort}`)
      .replaceAll('redis-new.example', `127.0.0.1:${this.newRedisPort}`)
      .replace(/\/(etc\/payouts|etc\/redis|var\/lib|backup)\b/g, `${this.root}/$1`);
    for (const [word, meaning] of this.#words) text = text.replaceAll(word, meaning);
    return text;
  }

  #urlOf(port: number): string {
    return `redis://:${PASSWORD}@127.0.0.1:${port}`;
  }

  async #fill({ gatewayUrl, secretKey }: RunbookHostOptions): Promise<void> {
    for (const folder of [
      'bin',
      'run',
      'backup',
      'etc/payouts/secrets',
      'etc/redis',
      'var/lib/payouts/journal',
      'var/lib/redis',
    ]) {
      await mkdir(this.path(folder), { recursive: true, mode: 0o700 });
    }
    await writeFile(this.path('etc/payouts/secrets/redis-url'), this.redisUrl, { mode: 0o600 });
    await writeFile(this.path('etc/payouts/secrets/gateway-secret-key'), secretKey, { mode: 0o600 });
    await this.writeSettings(`GATEWAY_PLATFORM_ID=4242
GATEWAY_BASE_URL=${gatewayUrl}
GATEWAY_SECRET_KEY_FILE=${this.path('etc/payouts/secrets/gateway-secret-key')}
`);
    const conf = this.path('etc/redis/redis.conf');
    await writeFile(conf, redisConf(this.path('var/lib/redis'), this.redisPort));
    await this.#program(
      'payouts',
      `set -a; . ${this.path('etc/payouts/payouts.env')}; set +a
exec ${process.execPath} ${findBuiltProgram()} "$@"`,
    );
    await this.#program('redis-cli', `PATH=\${PATH#*:}; exec redis-cli -p ${this.redisPort} "$@"`);
    await this.#program('npm', 'exit 0');
    await this.#program(
      'systemctl',
      `unit=$2; pidfile=${this.path('run')}/$unit.pid
runs() { [ -d /proc/$1 ] && ! grep -q '^State:.Z' /proc/$1/status; }
stop() {
  [ -f $pidfile ] || return 0
  pid=$(cat $pidfile); kill $pid || true
  while runs $pid; do sleep 0.1; done
  rm $pidfile
}
start() {
  case $unit in
  payouts-worker) set -- payouts worker ;;
  redis-server) set -- redis-server ${conf} ;;
  esac
  setsid "$@" >> ${this.path('run')}/$unit.log 2>&1 < /dev/null &
  echo $! > $pidfile
}
case $1 in
stop) stop ;;
start) start ;;
restart) stop; start ;;
disable) unit=$3; pidfile=${this.path('run')}/$unit.pid; stop ;;
try-restart) ;;
esac`,
    );
  }

  async #program(name: string, script: string): Promise<void> {
    await writeFile(this.path(`bin/${name}`), `#!/bin/sh\n${script}\n`);
    await chmod(this.path(`bin/${name}`), 0o755);
  }
}

/** With the settings that docs/redis.md asks for, and a password. */
function redisConf(folder: string, port: number): string {
  return `dir ${folder}
port ${port}
requirepass ${PASSWORD}
appendonly yes
appendfsync always
aof-load-truncated no
maxmemory-policy noeviction
save ""
`;
}

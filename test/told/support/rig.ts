import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { CheckResult } from '../../../src/cli/doctor/check-result.js';
import { type DashboardServer, startDashboard } from '../../../src/dashboard/start-dashboard.js';
import { systemClock } from '../../../src/base/clock.js';
import { createGatewayClient, type GatewayClient } from '../../../src/gateway/gateway-client.js';
import { silentLogger } from '../../../src/base/logger.js';
import { PayoutOperator } from '../../../src/control/payout-operator.js';
import { findFreePort } from '../../../src/sandbox/local-redis.js';
import { runCli, startCli, type RunningCli } from '../../support/cli.js';
import { until } from '../../support/until.js';
import { startOwnRedis, type OwnRedis } from '../../worker/support/own-redis.js';
import {
  openWorld,
  SECRET_KEY,
  untilSettled,
  type PayoutWorld,
  type PayoutWorldOptions,
} from '../../worker/support/payout-world.js';
import type { WorkerProcess, WorkerProcessOptions } from '../../worker/support/worker-process.js';
import type { Snapshot } from './series.js';

/** A worker process, and where it serves its health. */
export interface ServedWorker extends WorkerProcess {
  readonly port: number;
}

/** A process that reports the account beside its workers. */
export interface Exporter extends Pick<RunningCli, 'kill' | 'result'> {
  readonly instance: string;
  readonly port: number;
}

export interface DoctorReport {
  readonly exit: number | null;
  readonly checks: readonly CheckResult[];
}

export interface RigOptions {
  readonly environment?: Readonly<Record<string, string>>;
  readonly sandbox?: PayoutWorldOptions['sandbox'];
}

/** An account with a Redis of its own, a sandbox gateway and real `payouts` processes. */
export class Rig {
  readonly redis: OwnRedis;
  readonly world: PayoutWorld;
  /** For what a test changes in Redis by hand. */
  readonly client: Redis;
  readonly workers: ServedWorker[] = [];
  /** Read by {@link scrape} after the workers. */
  readonly exporters: Exporter[] = [];
  readonly operator: PayoutOperator;
  /** What else a row has started; closed with the rig. */
  readonly others: { close(): Promise<void> }[] = [];
  /** Changed by a row for what starts from then on. */
  environment: Record<string, string>;
  /** Of the workers and commands that start from then on. */
  gatewayUrl: string;

  #dashboard: Promise<DashboardServer> | undefined;

  private constructor(redis: OwnRedis, world: PayoutWorld, environment: Record<string, string>) {
    this.redis = redis;
    this.world = world;
    this.environment = environment;
    this.gatewayUrl = world.sandbox.url;
    this.client = new Redis(redis.url);
    this.operator = new PayoutOperator({ redisUrl: redis.url, platformId: world.platformId });
    this.client.on('error', () => undefined);
  }

  static async open({ environment = {}, sandbox = {} }: RigOptions = {}): Promise<Rig> {
    const redis = await startOwnRedis();
    const world = await openWorld({ redis, sandbox });
    return new Rig(redis, world, { LOG_LEVEL: 'info', ...environment });
  }

  get platformId(): number {
    return this.world.platformId;
  }

  get prefix(): string {
    return `{payouts:${this.platformId}}`;
  }

  get journalDir(): string {
    return join(this.world.dir, 'journal');
  }

  /** The worker that was started first. @throws Error when there is none */
  get worker(): ServedWorker {
    const [worker] = this.workers;
    if (worker === undefined) throw new Error('no worker was started');
    return worker;
  }

  async startWorker(options: Partial<WorkerProcessOptions> = {}): Promise<ServedWorker> {
    const port = await findFreePort();
    const environment = { ...this.environment, ...options.environment, HEALTH_PORT: String(port) };
    const worker = { ...this.world.startWorker({ baseUrl: this.gatewayUrl, ...options, environment }), port };
    this.workers.push(worker);
    return worker;
  }

  /** Of a command that an operator runs on the worker's host. */
  get commandEnvironment(): Record<string, string> {
    return {
      REDIS_URL: this.redis.url,
      GATEWAY_PLATFORM_ID: String(this.platformId),
      GATEWAY_BASE_URL: this.gatewayUrl,
      GATEWAY_SECRET_KEY: SECRET_KEY,
      SEND_JOURNAL_DIR: this.journalDir,
      ...this.environment,
    };
  }

  async startExporter(name: 'dashboard' | 'notify'): Promise<Exporter> {
    const port = await findFreePort();
    const own =
      name === 'dashboard'
        ? { DASHBOARD_PORT: String(port) }
        : {
            NOTIFY_HEALTH_PORT: String(port),
            NOTIFY_URL: 'http://127.0.0.1:9/nobody',
            NOTIFY_SECRET: 'whsec-0123456789abcdef',
          };
    const program = startCli([name], { env: { ...this.commandEnvironment, ...own } });
    const exporter = { ...program, instance: name, port };
    this.exporters.push(exporter);
    await program.waitForOutput(/Dashboard on|notifications start/);
    return exporter;
  }

  async startSender(): Promise<ServedWorker> {
    const worker = await this.startWorker();
    await until(
      () => `the worker is the sender:\n${worker.log()}`,
      async () => (await this.readyz(worker)).body.includes('"role":"sender"'),
    );
    return worker;
  }

  /** Kills the worker, and starts another in its place. @param between - what happens while none runs */
  async replaceWorker(
    between: () => Promise<void> = async () => Promise.resolve(),
    options: Partial<WorkerProcessOptions> = {},
  ): Promise<void> {
    const former = this.workers.shift();
    await former?.end();
    await between();
    await this.startWorker(options);
  }

  /** Enqueues payouts, and waits until the worker has paid them. */
  async pay(count: number): Promise<void> {
    await this.world.enqueue(count);
    await untilSettled(this.world, count);
  }

  /** The gateway for someone who has the account's secret key. */
  openGateway(): GatewayClient {
    const { platformId, sandbox } = this.world;
    const options = { baseUrl: sandbox.url, platformId, secretKey: SECRET_KEY };
    return createGatewayClient({ ...options, logger: silentLogger, clock: systemClock });
  }

  /** What `/readyz` says; status 0 when no process listens. */
  async readyz({ port }: ServedWorker = this.worker): Promise<{ status: number; body: string }> {
    const response = await request(port, '/readyz');
    return response === undefined ? { status: 0, body: '' } : response;
  }

  /** `/metrics` of every worker and exporter that responds. */
  async scrape(): Promise<Snapshot> {
    const workers = this.workers.map(({ port }, index) => ({ instance: `host-${index + 1}:9464`, port }));
    const scrapes = await Promise.all(
      [...workers, ...this.exporters].map(async ({ instance, port }) => {
        const response = await request(port, '/metrics');
        return response === undefined ? [] : [{ instance, text: response.body }];
      }),
    );
    return { at: performance.now() / 1_000, wallAt: Date.now() / 1_000, scrapes: scrapes.flat() };
  }

  /** `payouts doctor` as an operator runs it on the host of the first worker. */
  async doctor(): Promise<DoctorReport> {
    const [worker] = this.workers;
    const env = { ...this.commandEnvironment, ...(worker && { HEALTH_PORT: String(worker.port) }) };
    const { code, stdout, stderr } = await runCli(['doctor', '--json'], { env });
    if (stdout === '') throw new Error(`payouts doctor printed nothing on stdout:\n${stderr}`);
    return { exit: code, checks: (JSON.parse(stdout) as { checks: CheckResult[] }).checks };
  }

  /** The first words of the dashboard, and the runbook that it names; a dashboard is open from the first call. */
  async headline(): Promise<{ readonly words: string; readonly runbook: string | undefined }> {
    this.#dashboard ??= startDashboard({
      ...{ platformId: this.platformId, redisUrl: this.redis.url, host: '127.0.0.1', port: 0 },
    });
    const page = await (await fetch((await this.#dashboard).url)).text();
    const [card = page] = /<section class="pulse.*?<\/section>/s.exec(page) ?? [];
    const [, words = page] = /<h1[^>]*>(?:<span class="dot"[^>]*><\/span>)?([^<]*)<\/h1>/.exec(card) ?? [];
    return { words, runbook: /Runbook: docs\/runbooks\/([\w-]+)\.md/.exec(card)?.[1] };
  }

  async close(): Promise<void> {
    this.client.disconnect();
    await (await this.#dashboard)?.close();
    for (const { kill } of this.exporters) kill('SIGKILL');
    await Promise.all(this.exporters.map(async ({ result }) => result));
    await this.operator.close();
    for (const other of this.others) await other.close();
    await this.world.close();
    await this.redis.close();
  }
}

/** A process that hangs responds to nobody. */
const RESPOND_WITHIN_MS = 3_000;

async function request(port: number, path: string): Promise<{ status: number; body: string } | undefined> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(RESPOND_WITHIN_MS) });
    return { status: response.status, body: await response.text() };
  } catch {
    return undefined;
  }
}

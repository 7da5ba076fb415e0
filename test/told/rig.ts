import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { CheckResult } from '../../src/cli/doctor/check-result.js';
import { type DashboardServer, startDashboard } from '../../src/dashboard/start-dashboard.js';
import { systemClock } from '../../src/base/clock.js';
import { createGatewayClient } from '../../src/gateway/v1/client.js';
import { silentLogger } from '../../src/base/logger.js';
import { PayoutOperator } from '../../src/control/payout-operator.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { TEST_AUDIENCE, testSigner } from '../control/support/keys.js';
import { runCli, startCli, type RunningCli } from '../support/cli.js';
import { until } from '../support/until.js';
import { startOwnRedis, type OwnRedis } from '../worker/support/own-redis.js';
import { openWorld, SECRET_KEY, untilSettled } from '../worker/support/payout-world.js';
import type { PayoutWorld, PayoutWorldOptions } from '../worker/support/payout-world.js';
import type { WorkerProcess, WorkerProcessOptions } from '../worker/support/worker-process.js';

/** A process of the account, and where it serves its health. */
type Served<Process> = Omit<Process, 'port'> & { readonly port: number };

export interface RigOptions {
  readonly environment?: Readonly<Record<string, string>>;
  readonly sandbox?: PayoutWorldOptions['sandbox'];
}

interface Said {
  readonly headline?: string;
  readonly runbook?: string;
}

/** An account with a Redis of its own, a sandbox gateway and real `payouts` processes. */
export class Rig {
  readonly redis: OwnRedis;
  readonly world: PayoutWorld;
  readonly client: Redis;
  readonly operator: PayoutOperator;
  readonly workers: Served<WorkerProcess>[] = [];
  /** Read by {@link scrape} after the workers. */
  readonly exporters: (Served<RunningCli> & { readonly instance: string })[] = [];
  readonly others: { close(): Promise<void> }[] = [];
  /** Of what starts from now on. */
  readonly environment: Record<string, string>;
  #dashboard: Promise<DashboardServer> | undefined;

  protected constructor(redis: OwnRedis, world: PayoutWorld, environment: RigOptions['environment']) {
    this.redis = redis;
    this.world = world;
    this.environment = { LOG_LEVEL: 'info', ...environment };
    this.client = new Redis(redis.url).on('error', () => undefined);
    this.operator = new PayoutOperator(world.account);
  }

  static async open<R extends Rig = Rig>({ environment, sandbox = {} }: RigOptions = {}): Promise<R> {
    const redis = await startOwnRedis();
    return new this(redis, await openWorld({ redis, sandbox }), environment) as R;
  }

  get platformId() {
    return this.world.platformId;
  }

  get prefix() {
    return `{payouts:${this.platformId}}`;
  }

  get journalDir() {
    return join(this.world.dir, 'journal');
  }

  get worker() {
    const [worker] = this.workers;
    if (worker === undefined) throw new Error('no worker was started');
    return worker;
  }

  async startWorker(options: Partial<WorkerProcessOptions> = {}) {
    // A free port may be taken until the worker listens. Only a log that nobody can read needs one.
    const port = options.stderr === undefined ? 0 : await findFreePort();
    const environment = { ...this.environment, HEALTH_PORT: String(port) };
    const worker = this.world.startWorker({ ...options, environment });
    const served = { ...worker, port: port || (await worker.port()) };
    this.workers.push(served);
    return served;
  }

  async startSender() {
    const { log } = await this.startWorker();
    const isSender = async () => (await this.readyz()).body.includes('"role":"sender"');
    await until(() => `the worker is the sender:\n${log()}`, isSender);
  }

  /** Kills the worker, and starts another in its place. @param between - what happens while none runs */
  async replaceWorker(between?: () => Promise<unknown>, options: Partial<WorkerProcessOptions> = {}) {
    await this.workers.shift()?.end();
    await between?.();
    await this.startWorker(options);
  }

  get commandEnvironment() {
    const gateway = { GATEWAY_BASE_URL: this.world.sandbox.url, GATEWAY_SECRET_KEY: SECRET_KEY };
    return { ...this.world.env, ...gateway, ...this.environment };
  }

  async startExporter(name: 'dashboard' | 'notify' | 'worker') {
    const port = await findFreePort();
    const served = { dashboard: 'DASHBOARD_PORT', notify: 'NOTIFY_HEALTH_PORT', worker: 'HEALTH_PORT' }[name];
    const notify = { NOTIFY_URL: 'http://127.0.0.1:9/nobody', NOTIFY_SECRET: 'whsec-0123456789abcdef' };
    const program = startCli([name], { env: { ...notify, ...this.commandEnvironment, [served]: String(port) } });
    this.exporters.push({ ...program, instance: name, port });
    await program.waitForOutput(/Dashboard on|notifications start|worker started/);
    return port;
  }

  async pay(count: number) {
    await this.world.enqueue(count);
    await untilSettled(this.world, count);
  }

  /** Pays as another program does that has the account's secret key. */
  async payBeside(...amounts: readonly string[]) {
    const account = { baseUrl: this.world.sandbox.url, platformId: this.platformId, secretKey: SECRET_KEY };
    const gateway = createGatewayClient({ ...account, logger: silentLogger, clock: systemClock });
    for (const amount of amounts) {
      await gateway.withdraw({ paymentId: 1, amount, addressTo: ROGUE }).catch(() => undefined);
    }
    gateway.close();
  }

  openSigningProducer() {
    return new PayoutProducer({ ...this.world.account, signer: testSigner('shop', 1), audience: TEST_AUDIENCE });
  }

  /** Status 0 when no process listens. */
  async readyz({ port }: { readonly port: number } = this.worker) {
    return request(port, '/readyz');
  }

  async scrape() {
    const workers = this.workers.map(({ port }, index) => ({ instance: `host-${index + 1}:9464`, port }));
    const scrapes = await Promise.all(
      [...workers, ...this.exporters].map(async ({ instance, port }) => {
        const { status, body } = await request(port, '/metrics');
        return status === 0 ? [] : [{ instance, text: body }];
      }),
    );
    return { at: performance.now() / 1_000, wallAt: Date.now() / 1_000, scrapes: scrapes.flat() };
  }

  async doctor() {
    const [worker] = this.workers;
    const env = { ...this.commandEnvironment, ...(worker && { HEALTH_PORT: String(worker.port) }) };
    const { code, stdout, stderr } = await runCli(['doctor', '--json'], { env });
    if (stdout === '') throw new Error(`payouts doctor printed nothing on stdout:\n${stderr}`);
    return { exit: code, checks: (JSON.parse(stdout) as { checks: CheckResult[] }).checks };
  }

  /** What `payouts status` and `/readyz` say of the account. */
  async said() {
    const { stdout } = await runCli(['status', '--json'], { env: this.commandEnvironment });
    const { body } = this.workers.length === 0 ? { body: '{}' } : await this.readyz();
    const { accounts: [account] = [] } = JSON.parse(body || '{}') as { accounts?: Said[] };
    return { status: JSON.parse(stdout || '{}') as Said, readyz: account };
  }

  async headline() {
    const { STUCK_AFTER_MS } = this.environment;
    const stuck = STUCK_AFTER_MS === undefined ? {} : { stuckAfterMs: Number(STUCK_AFTER_MS) };
    this.#dashboard ??= startDashboard({ ...this.world.account, ...stuck, host: '127.0.0.1', port: 0 });
    const page = await (await fetch((await this.#dashboard).url)).text();
    const [card = page] = /<section class="pulse.*?<\/section>/s.exec(page) ?? [];
    const [, words = page] = /<h1[^>]*>(?:<span class="dot"[^>]*><\/span>)?([^<]*)<\/h1>/.exec(card) ?? [];
    return { words, runbook: /Runbook:\s*<a href=\"\/runbooks\/([\w-]+)\"/.exec(card)?.[1] };
  }

  async close() {
    this.client.disconnect();
    await (await this.#dashboard)?.close();
    for (const exporter of this.exporters) exporter.kill('SIGKILL');
    await Promise.all(this.exporters.map(async ({ result }) => result));
    for (const each of [this.operator, ...this.others, this.world, this.redis]) await each.close();
  }
}

export const ROGUE = 'wallet-roguexxxxxxxxxxxxxxxxxxxxxx';

/** Waits for an answer. The error has the last one. */
export async function untilAnswer<Answer>(
  what: string,
  ask: () => Promise<Answer>,
  isIt: (answer: Answer) => boolean,
  withinMs = 60_000,
) {
  let last: Answer | undefined;
  const holds = async () => isIt((last = await ask()));
  await until(() => `${what}, but: ${JSON.stringify(last)}`, holds, withinMs);
}

/** A process that hangs responds to nobody. */
async function request(port: number, path: string) {
  try {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(3_000) });
    return { status: response.status, body: await response.text() };
  } catch {
    return { status: 0, body: '' };
  }
}

import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { startSandbox, type SandboxStats } from '../../src/sandbox/index.js';
import type { PayoutState } from '../../src/ledger/states.js';
import { findFreePort, startLocalRedis } from '../../src/sandbox/local-redis.js';
import { TEST_AUDIENCE } from '../control/support/keys.js';
import { Random } from '../doubles/random.js';
import { runCli, startCli, type RunningCli } from '../support/cli.js';
import { until } from '../support/until.js';
import type { Snapshot } from '../told/support/series.js';

const EXAMPLES = new URL('../../examples/', import.meta.url);
/** The account of examples/policy.yaml. */
const PLATFORM_ID = 4242;
/** Two of its group finance. */
const APPROVERS = ['alice', 'bob'];
const SECRET_KEY = 'k-healthy-0123456789';

export const SCRAPE_EVERY_MS = 15_000;
const EXPORTERS = ['worker', 'dashboard', 'notify'] as const;

/** What is in `scrapes.jsonl`, once each 15 seconds. */
export interface HealthyScrape extends Snapshot {
  readonly readyz: string;
}

export interface HealthyRun {
  readonly enqueued: number;
  readonly states: Readonly<Record<PayoutState, number>>;
  readonly gateway: SandboxStats;
}

/**
 * Runs worker, dashboard, notify and sandbox with examples/policy.yaml, signed payouts and default settings, and writes
 * what all exporters say to `scrapes.jsonl`.
 * @param dir - made, for keys, journal and scrapes
 */
export async function runHealthySystem(dir: string, durationMs: number): Promise<HealthyRun> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const redis = await startLocalRedis();
  const sandbox = await startSandbox({
    accounts: [{ platformId: PLATFORM_ID, secretKey: SECRET_KEY }],
    latencyBeforeMs: { min: 20, max: 120 },
    latencyAfterMs: { min: 20, max: 180 },
    settleAfterMs: 12_000,
  });
  const webhook = await startWebhook();
  const ports = { worker: await findFreePort(), dashboard: await findFreePort(), notify: await findFreePort() };
  const env: Record<string, string> = {
    REDIS_URL: redis.url,
    GATEWAY_PLATFORM_ID: String(PLATFORM_ID),
    GATEWAY_BASE_URL: sandbox.url,
    GATEWAY_SECRET_KEY: SECRET_KEY,
    SEND_JOURNAL_DIR: join(dir, 'journal'),
    HEALTH_PORT: String(ports.worker),
    DASHBOARD_PORT: String(ports.dashboard),
    NOTIFY_HEALTH_PORT: String(ports.notify),
    NOTIFY_URL: webhook.url,
    NOTIFY_SECRET: 'a secret of the webhook',
  };
  const keys = await makeKeys(dir, env);
  Object.assign(env, keys.worker);
  const signingKey = { name: 'shop', privateKey: await readFile(keys.producer, 'utf8') };
  const producer = new PayoutProducer({
    redisUrl: redis.url,
    platformId: PLATFORM_ID,
    signingKey,
    audience: TEST_AUDIENCE,
  });
  const programs = EXPORTERS.map((name) => startCli([name], { env }));
  const killAll = (): void => {
    for (const program of programs) program.kill('SIGKILL');
  };
  process.once('exit', killAll);
  try {
    const end = endOf(programs, durationMs);
    const shop = new Shop(producer, async (payoutId) => approve(payoutId, dir, env));
    await Promise.all([shop.trade(end), keepScraping(join(dir, 'scrapes.jsonl'), ports, end)]);
    if (end.reason instanceof Error) throw end.reason;
    await until('nothing waits to be sent', async () => isDrained(await producer.stats()));
    return { enqueued: shop.enqueued, states: await producer.stats(), gateway: sandbox.stats() };
  } finally {
    process.removeListener('exit', killAll);
    killAll();
    await Promise.allSettled(programs.map(async ({ result }) => result));
    await producer.close();
    await sandbox.close();
    await webhook.close();
    await redis.stop();
  }
}

const isDrained = ({ queued, sending }: HealthyRun['states']): boolean => queued + sending === 0;

/** Aborted once the time is over, or with an error once a program ends. */
function endOf(programs: readonly RunningCli[], durationMs: number): AbortSignal {
  const end = new AbortController();
  setTimeout(() => {
    end.abort('the time is over');
  }, durationMs);
  for (const { result } of programs) {
    void result.then(({ code, stderr }) => {
      end.abort(new Error(`a program ended with ${String(code)}:\n${stderr.slice(-2_000)}`));
    });
  }
  return end.signal;
}

/** What `payouts keys init` makes, with the example's policy and keys for two approvers. */
async function makeKeys(dir: string, env: Record<string, string>) {
  const keysDir = join(dir, 'keys');
  const made = await run(['keys', 'init', keysDir, '--operator', 'carol', '--json'], env);
  const { keysFile, policyFile, environment } = JSON.parse(made) as {
    keysFile: string;
    policyFile: string;
    environment: { worker: Record<string, string>; producer: { PAYOUT_SIGNING_KEY_FILE: string } };
  };
  // A copy would have the checkout's mode, and the worker trusts no policy that others can write.
  const copies = { 'policy.yaml': policyFile, 'deny.txt': join(keysDir, 'deny.txt') };
  for (const [name, file] of Object.entries(copies)) {
    await writeFile(file, await readFile(new URL(name, EXAMPLES)), { mode: 0o600 });
  }
  const entries: string[] = [];
  for (const name of APPROVERS) {
    const role = ['--role', 'approver', '--person', name];
    entries.push(await run(['keys', 'generate', name, ...role, '--out', join(keysDir, `${name}.pem`)], env));
  }
  const keyring = await readFile(keysFile, 'utf8');
  await writeFile(keysFile, keyring.replace('keys:\n', `keys:\n${entries.join('')}`));
  return { worker: environment.worker, producer: environment.producer.PAYOUT_SIGNING_KEY_FILE };
}

async function approve(payoutId: string, dir: string, env: Record<string, string>): Promise<void> {
  for (const name of APPROVERS) {
    await run(['approve', payoutId, '--key', join(dir, 'keys', `${name}.pem`), '--yes'], env);
  }
}

async function run(args: readonly string[], env: Record<string, string>): Promise<string> {
  const { code, stdout, stderr } = await runCli(args, { env });
  if (code !== 0) throw new Error(`payouts ${args.join(' ')} ended with ${String(code)}:\n${stderr}`);
  return stdout;
}

const ORDER_EVERY_MS = 10_000;
const CUSTOMERS = 60;
const APPROVED_AFTER_MS = 60_000;

/** Small payouts to known customers mostly; what the policy delays comes in between. */
class Shop {
  readonly #producer: PayoutProducer;
  readonly #approve: (payoutId: string) => Promise<void>;
  readonly #random = new Random(20_300_131);
  enqueued = 0;

  constructor(producer: PayoutProducer, approvePayout: (payoutId: string) => Promise<void>) {
    this.#producer = producer;
    this.#approve = approvePayout;
  }

  async trade(end: AbortSignal): Promise<void> {
    await this.#order('40', 'wallet-supplierxxxxxxxxxxxxxxxxxxxx');
    // Longer than it takes until the first payout is sent.
    await pass(50_000, end);
    // To a known address, so only the rule four-eyes, and outside of office hours those, hold it.
    const large = await this.#order('5200', 'wallet-supplierxxxxxxxxxxxxxxxxxxxx');
    const approved = pass(APPROVED_AFTER_MS, end).then(async () => this.#approve(large));
    do {
      const count = this.#random.chance(0.1) ? this.#random.whole(2, 6) : 1;
      for (let made = 0; made < count; made += 1) await this.#orderSome();
    } while (await pass(this.#random.heavyTail(ORDER_EVERY_MS / 3, 6 * ORDER_EVERY_MS), end));
    await approved;
  }

  async #orderSome(): Promise<void> {
    const customer = this.#random.whole(1, CUSTOMERS);
    const isLargeForNew = this.#random.chance(0.02);
    const usd = isLargeForNew ? this.#random.between(210, 900) : this.#random.between(3, 60);
    const name = isLargeForNew ? `new-${this.enqueued}` : `customer-${customer}`;
    // No two orders are alike, since the gateway takes a repetition for a payment made twice.
    const amount = `${usd.toFixed(2)}${String(this.enqueued).padStart(4, '0')}`;
    await this.#order(amount, `wallet-${name}xxxxxxxxxxxxxxxxxxxxxxxx`, this.#random.pick([6, 6, 6, 7, 8]));
  }

  async #order(amount: string, addressTo: string, paymentId = 6): Promise<string> {
    const payoutId = `order-${(this.enqueued += 1)}`;
    await this.#producer.enqueue({ payoutId, paymentId, amount, addressTo });
    return payoutId;
  }
}

/** @returns whether the time has passed without the signal */
async function pass(ms: number, end: AbortSignal): Promise<boolean> {
  return delay(ms, true, { signal: end }).catch(() => false);
}

async function keepScraping(
  file: string,
  ports: Readonly<Record<(typeof EXPORTERS)[number], number>>,
  end: AbortSignal,
): Promise<void> {
  const startedAt = performance.now();
  for (let turn = 1; !end.aborted; turn += 1) {
    const [readyz, ...texts] = await Promise.all([
      read(ports.worker, '/readyz'),
      ...EXPORTERS.map(async (name) => read(ports[name], '/metrics')),
    ]);
    const scrapes = texts.flatMap((text, index) => (text === '' ? [] : [{ instance: EXPORTERS[index] ?? '', text }]));
    const at = (performance.now() - startedAt) / 1_000;
    const scrape: HealthyScrape = { at, wallAt: Date.now() / 1_000, scrapes, readyz };
    await appendFile(file, `${JSON.stringify(scrape)}\n`);
    await pass(startedAt + turn * SCRAPE_EVERY_MS - performance.now(), end);
  }
}

/** @returns an empty text if nothing responds */
async function read(port: number, path: string): Promise<string> {
  try {
    return await (await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(10_000) })).text();
  } catch {
    return '';
  }
}

async function startWebhook(): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    request.resume();
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = async (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => {
        resolve();
      });
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

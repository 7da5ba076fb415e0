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
import { runCli, startCli } from '../support/cli.js';
import { until } from '../support/until.js';
import type { Snapshot } from '../told/alerts.js';

const EXAMPLES = new URL('../../examples/', import.meta.url);
const PLATFORM_ID = 4242;
const SECRET_KEY = 'k-healthy-0123456789';

export const SCRAPE_EVERY_MS = 15_000;
const EXPORTERS = ['worker', 'dashboard', 'notify'] as const;

export interface HealthyScrape extends Snapshot {
  readonly readyz: string;
}

interface HealthyRun {
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
  const webhook = createServer((request, response) => {
    request.resume();
    response.end();
  });
  await new Promise<void>((done) => webhook.listen(0, '127.0.0.1', done));
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
    NOTIFY_URL: `http://127.0.0.1:${(webhook.address() as AddressInfo).port}`,
    NOTIFY_SECRET: 'a secret of the webhook',
  };
  const keys = await makeKeys(dir, env);
  Object.assign(env, keys.worker);
  const signingKey = { name: 'shop', privateKey: await readFile(keys.producer, 'utf8') };
  const account = { redisUrl: redis.url, platformId: PLATFORM_ID };
  const producer = new PayoutProducer({ ...account, signingKey, audience: TEST_AUDIENCE });
  const programs = EXPORTERS.map((name) => startCli([name], { env }));
  const killAll = (): void => {
    for (const program of programs) program.kill('SIGKILL');
  };
  process.once('exit', killAll);
  const end = new AbortController();
  setTimeout(() => {
    end.abort();
  }, durationMs);
  for (const { result } of programs) {
    void result.then(({ code, stderr }) => {
      end.abort(new Error(`a program ended with ${String(code)}:\n${stderr.slice(-2_000)}`));
    });
  }
  try {
    const [enqueued] = await Promise.all([
      trade(producer, end.signal),
      keepScraping(join(dir, 'scrapes.jsonl'), ports, end.signal),
    ]);
    const { reason } = end.signal as { reason: unknown };
    if (reason instanceof Error && reason.name !== 'AbortError') throw reason;
    await until('nothing waits to be sent', async () => {
      const { queued, sending } = await producer.stats();
      return queued + sending === 0;
    });
    return { enqueued, states: await producer.stats(), gateway: sandbox.stats() };
  } finally {
    process.removeListener('exit', killAll);
    killAll();
    await Promise.allSettled(programs.map(async ({ result }) => result));
    await producer.close();
    await sandbox.close();
    webhook.close();
    webhook.closeAllConnections();
    await redis.stop();
  }
}

/** What `payouts keys init` makes, with the example's policy. */
async function makeKeys(dir: string, env: Record<string, string>) {
  const keysDir = join(dir, 'keys');
  const made = await run(['keys', 'init', keysDir, '--operator', 'carol', '--json'], env);
  const { policyFile, environment } = JSON.parse(made) as {
    policyFile: string;
    environment: { worker: Record<string, string>; producer: { PAYOUT_SIGNING_KEY_FILE: string } };
  };
  // A copy would have the checkout's mode, and the worker trusts no policy that others can write.
  const copies = { 'policy.yaml': policyFile, 'deny.txt': join(keysDir, 'deny.txt') };
  for (const [name, file] of Object.entries(copies)) {
    await writeFile(file, await readFile(new URL(name, EXAMPLES)), { mode: 0o600 });
  }
  return { worker: environment.worker, producer: environment.producer.PAYOUT_SIGNING_KEY_FILE };
}

async function run(args: readonly string[], env: Record<string, string>): Promise<string> {
  const { code, stdout, stderr } = await runCli(args, { env });
  if (code !== 0) throw new Error(`payouts ${args.join(' ')} ended with ${String(code)}:\n${stderr}`);
  return stdout;
}

const ORDER_EVERY_MS = 10_000;
const CUSTOMERS = 60;

/** Small payouts to known customers mostly; what the policy delays comes in between. @returns how many */
async function trade(producer: PayoutProducer, end: AbortSignal): Promise<number> {
  const random = new Random(20_300_131);
  let enqueued = 0;
  const order = async (amount: string, name: string, paymentId = 6): Promise<void> => {
    const payment = { paymentId, amount, addressTo: `wallet-${name}xxxxxxxxxxxxxxxxxxxx` };
    await producer.enqueue({ payoutId: `order-${(enqueued += 1)}`, ...payment });
  };
  const orderSome = async (): Promise<void> => {
    const customer = random.whole(1, CUSTOMERS);
    const isLargeForNew = random.chance(0.02);
    const usd = isLargeForNew ? random.between(210, 900) : random.between(3, 60);
    // No two orders are alike, since the gateway takes a repetition for a payment made twice.
    const amount = `${usd.toFixed(2)}${String(enqueued).padStart(4, '0')}`;
    await order(amount, isLargeForNew ? `new-${enqueued}` : `customer-${customer}`, random.pick([6, 6, 6, 7, 8]));
  };
  await order('40', 'supplier');
  // Longer than it takes until the first payout is sent.
  await pass(50_000, end);
  do {
    const count = random.chance(0.1) ? random.whole(2, 6) : 1;
    for (let made = 0; made < count; made += 1) await orderSome();
  } while (await pass(random.heavyTail(ORDER_EVERY_MS / 3, 6 * ORDER_EVERY_MS), end));
  return enqueued;
}

async function pass(ms: number, end: AbortSignal): Promise<boolean> {
  return delay(ms, true, { signal: end }).catch(() => false);
}

async function keepScraping(
  file: string,
  ports: Readonly<Record<(typeof EXPORTERS)[number], number>>,
  end: AbortSignal,
): Promise<void> {
  const startedAt = performance.now();
  const read = async (port: number, path: string): Promise<string> =>
    fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(10_000) })
      .then(async (response) => response.text())
      .catch(() => '');
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

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { findFreePort, startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { endAllWorkers, startWorkerProcess } from './support/worker-process.js';
import { until } from '../support/until.js';

let redis: LocalRedis;
let dir: string;
const open: { close(): Promise<void> }[] = [];

beforeEach(async () => {
  redis = await startLocalRedis();
  dir = await mkdtemp(join(tmpdir(), 'payouts-several-'));
});

afterEach(async () => {
  await endAllWorkers();
  await Promise.all(open.splice(0).map(async (thing) => thing.close()));
  await redis.stop();
  await rm(dir, { recursive: true, force: true });
});

const PAYOUTS = 12;
const INTERVAL_MS = 1_010;
const SECRET_KEY = 'k-several-0123456789';

async function openSandbox(platformId: number): Promise<Sandbox> {
  const sandbox = await startSandbox({ accounts: [{ platformId, secretKey: SECRET_KEY }], settleAfterMs: 300 });
  open.push(sandbox);
  return sandbox;
}

async function enqueueFor(platformId: number): Promise<PayoutProducer> {
  const producer = new PayoutProducer({ redisUrl: redis.url, platformId });
  open.push(producer);
  await producer.enqueueMany(
    Array.from({ length: PAYOUTS }, (_, index) => ({
      payoutId: `P-${index}`,
      paymentId: 1,
      amount: '0.01',
      addressTo: `wallet-account${platformId}payout${index}`,
    })),
  );
  return producer;
}

it('one process works for several accounts, and the trouble of some does not slow another', async () => {
  const [well, blocked, hanging, unreachable, unkeyed] = [1, 2, 3, 4, 5] as const;
  const wellSandbox = await openSandbox(well);
  const blockedSandbox = await openSandbox(blocked);
  blockedSandbox.addFaults([{ kind: 'block', times: 1 }]);
  const hangingSandbox = await openSandbox(hanging);
  hangingSandbox.addFaults([{ kind: 'hang' }]);
  const unkeyedSandbox = await openSandbox(unkeyed);

  await writeFile(join(dir, 'right.key'), SECRET_KEY, { mode: 0o600 });
  await writeFile(join(dir, 'wrong.key'), 'k-wrong-0123456789', { mode: 0o600 });
  const account = (platformId: number, baseUrl: string, secretKeyFile = 'right.key'): unknown => ({
    platformId,
    baseUrl,
    secretKeyFile,
    intervalMs: INTERVAL_MS,
    withdrawTimeoutMs: 1_000,
    timeoutMs: 1_000,
  });
  const accountsFile = join(dir, 'accounts.json');
  await writeFile(
    accountsFile,
    JSON.stringify([
      account(well, wellSandbox.url),
      account(blocked, blockedSandbox.url),
      account(hanging, hangingSandbox.url),
      account(unreachable, `http://127.0.0.1:${await findFreePort()}`),
      account(unkeyed, unkeyedSandbox.url, 'wrong.key'),
    ]),
  );
  const producers = await Promise.all([well, blocked, hanging, unreachable, unkeyed].map(enqueueFor));

  startWorkerProcess({
    redisUrl: redis.url,
    platformId: well,
    baseUrl: wellSandbox.url,
    secretKey: SECRET_KEY,
    journalDir: join(dir, 'journal'),
    environment: { PAYOUT_ACCOUNTS_FILE: accountsFile },
  });

  await until('the first has been sent', () => wellSandbox.stats().arrivals > 0);
  const begunAt = performance.now();
  await until('all of the well account have been sent', () => wellSandbox.stats().arrivals === PAYOUTS);
  const periodMs = (performance.now() - begunAt) / (PAYOUTS - 1);
  expect(periodMs).toBeLessThan(INTERVAL_MS * 1.1);
  expect(wellSandbox.stats().smallestGapMs).toBeGreaterThanOrEqual(1_000);
  await until('all of the well account are final', async () => (await producers[0]?.stats())?.completed === PAYOUTS);

  const states = await Promise.all(producers.map(async (producer) => producer.stats()));
  expect(states[1]).toMatchObject({ paused: true, rejected: 1, queued: PAYOUTS - 1 });
  expect(states[2]).toMatchObject({ paused: true, unknown: 2, queued: PAYOUTS - 2 });
  expect(states[3]).toMatchObject({ queued: PAYOUTS, unknown: 0 });
  expect(states[4]).toMatchObject({ paused: true, completed: 0, unknown: 0 });
}, 120_000);

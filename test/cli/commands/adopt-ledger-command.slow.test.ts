import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { startLocalRedis, type LocalRedis } from '../../../src/sandbox/local-redis.js';
import { runCli, type CliResult } from '../../support/cli.js';
import { until } from '../../support/until.js';
import { expectPromisesKept, openWorld, SECRET_KEY, type PayoutWorld } from '../../worker/support/payout-world.js';
import { endAllWorkers, type WorkerProcess } from '../../worker/support/worker-process.js';

/** Real workers whose Redis comes back older, or flushed, and what an operator runs then; the rules are in test/operator. */

/** Workers reckon with it too; the doubt after which an operator may decide is as long. */
const IN_FLIGHT_MAX_MS = '4000';
const [HOST_A, HOST_B] = ['host-a', 'host-b'];

let dir: string;
let redis: LocalRedis;
let world: PayoutWorld;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-adopt-'));
  redis = await startLocalRedis({ dir });
  world = await openWorld({ redis });
});

afterEach(async () => {
  await endAllWorkers();
  await world.close();
  await redis.stop();
  await rm(dir, { recursive: true, force: true });
});

const journalDir = (host: string): string => join(world.dir, host);
const startWorker = (host: string): WorkerProcess => world.startWorker({ journalDir: journalDir(host) });
const arrivals = (): number => world.sandbox.stats().arrivals;
const untilSent = async (count: number): Promise<void> => until(`${count} arrived`, () => arrivals() >= count);

async function adopt(...args: string[]): Promise<CliResult> {
  const gateway = { GATEWAY_BASE_URL: world.sandbox.url, GATEWAY_SECRET_KEY: SECRET_KEY };
  const account = { REDIS_URL: world.redisUrl, GATEWAY_PLATFORM_ID: String(world.platformId) };
  return runCli(['adopt-ledger', ...args], { env: { ...gateway, ...account, IN_FLIGHT_MAX_MS } });
}

/** A worker of this host sends at least `count` payouts, and ends in good order. */
async function sendSome(count: number, host: string): Promise<void> {
  const before = arrivals();
  const worker = startWorker(host);
  await untilSent(before + count);
  worker.kill('SIGTERM');
  await worker.ended;
}

/** The payouts P-1 to P-9 that the gateway paid, in the order of their payments. */
const paidIds = (): string[] =>
  world.sandbox.payments().map(({ addressTo }) => `P-${/^wallet-p(\d)x/.exec(addressTo)?.[1] ?? '?'}`);

async function copyOfRedis(): Promise<string> {
  await redis.stop();
  await cp(dir, `${dir}-copy`, { recursive: true });
  redis = await startLocalRedis({ dir, port: redis.port });
  return `${dir}-copy`;
}

/** Puts the server back to how its folder was when the copy was made. */
async function putBack(copy: string): Promise<void> {
  await redis.stop();
  await rm(dir, { recursive: true });
  await cp(copy, dir, { recursive: true });
  await rm(copy, { recursive: true });
  redis = await startLocalRedis({ dir, port: redis.port });
}

/** Redis comes back as it was before host B had its turn, and then host A. @returns what it forgot */
async function takeTurns(): Promise<{ ofA: string[]; ofB: string[]; known: number }> {
  await world.enqueue(9);
  await sendSome(1, HOST_A);
  const backup = await copyOfRedis();
  const known = paidIds().length;
  await sendSome(2, HOST_B);
  const toB = paidIds().length;
  await sendSome(1, HOST_A);
  await putBack(backup);
  return { known, ofB: paidIds().slice(known, toB), ofA: paidIds().slice(toB) };
}

it('payouts adopt-ledger, where two hosts took turns, names what one journal alone does not have, and adopts with both', async () => {
  const { ofA, ofB, known } = await takeTurns();
  const workers = [startWorker(HOST_A), startWorker(HOST_B)];
  const journals = [HOST_A, HOST_B].flatMap((host) => ['--journal', journalDir(host)]);
  for (const { log } of workers) await until('the worker refuses', () => /older copy of the ledger/.test(log()));
  const alone = await adopt('--journal', journalDir(HOST_A), '--yes');
  expect(alone).toMatchObject({ code: 4, stdout: '' });
  const [first, last] = [known + 1, known + ofB.length];
  const missing = first === last ? `send number ${first}` : `the sends number ${first} to ${last}`;
  expect(alone.stderr).toContain(`no journal has ${missing}`);
  expect(alone.stderr).toContain(
    `payouts adopt-ledger --account ${world.platformId} ${journals.join(' ')} --reason WHY`,
  );
  await delay(4_000);
  expect(arrivals()).toBe(known + ofB.length + ofA.length);
  const both = await adopt(...journals, '--yes', '--json', '--reason', 'disk failure');
  const adopted = [...ofA, ...ofB].map((payoutId) => ({ payoutId, state: 'in_progress' }));
  expect(JSON.parse(both.stdout)).toMatchObject({ unknown: [], held: 0, adopted });
  await until('all are completed', async () => (await world.producer.stats()).completed === 9);
  await expectPromisesKept(world);
  expect(new Set(paidIds()).size).toBe(9);
}, 180_000);

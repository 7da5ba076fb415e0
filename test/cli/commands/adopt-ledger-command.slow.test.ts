import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
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
let client: Redis;
let world: PayoutWorld;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-adopt-'));
  redis = await startLocalRedis({ dir });
  world = await openWorld({ redis });
  client = new Redis(redis.url);
  // It is down while its folder is exchanged.
  client.on('error', () => undefined);
});

afterEach(async () => {
  await endAllWorkers();
  client.disconnect();
  await world.close();
  await redis.stop();
  await rm(dir, { recursive: true, force: true });
});

const journalDir = (host = 'journal'): string => join(world.dir, host);
const startWorker = (host?: string): WorkerProcess => world.startWorker({ journalDir: journalDir(host) });
const arrivals = (): number => world.sandbox.stats().arrivals;
const untilSent = async (count: number): Promise<void> => until(`${count} arrived`, () => arrivals() >= count);
const adopt = async (...args: string[]): Promise<CliResult> => run('adopt-ledger', ...args);

async function run(...args: string[]): Promise<CliResult> {
  const gateway = { GATEWAY_BASE_URL: world.sandbox.url, GATEWAY_SECRET_KEY: SECRET_KEY };
  const account = { REDIS_URL: world.redisUrl, GATEWAY_PLATFORM_ID: String(world.platformId) };
  return runCli(args, { env: { ...gateway, ...account, SEND_JOURNAL_DIR: journalDir(), IN_FLIGHT_MAX_MS } });
}

/** A worker of this host sends at least `count` payouts, and ends in good order. */
async function sendSome(count: number, host?: string): Promise<void> {
  const before = arrivals();
  const worker = startWorker(host);
  await untilSent(before + count);
  worker.kill('SIGTERM');
  await worker.ended;
}

/** @returns how many requests the gateway had by then */
async function untilRefused(worker: WorkerProcess, reason: RegExp): Promise<number> {
  await until('the worker refuses', () => reason.test(worker.log()));
  return arrivals();
}

/** The payouts P-1 to P-9 that the gateway paid, in the order of their payments. */
const paid = (): { payoutId: string; txhash: string }[] =>
  world.sandbox
    .payments()
    .map(({ addressTo, txhash }) => ({ payoutId: `P-${/^wallet-p(\d)x/.exec(addressTo)?.[1] ?? '?'}`, txhash }));
const paidIds = (): string[] => paid().map(({ payoutId }) => payoutId);
const idsIn = async (state: 'queued' | 'unknown'): Promise<string[]> =>
  (await world.producer.list({ state })).payouts.map(({ payoutId }) => payoutId).sort();

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

async function untilCompleted(completed: number): Promise<void> {
  await until(`${completed} are completed`, async () => (await world.producer.stats()).completed === completed);
  await expectPromisesKept(world);
}

const inProgress = (payoutIds: readonly string[]): unknown =>
  payoutIds.map((payoutId) => ({ payoutId, state: 'in_progress' }));

describe('payouts adopt-ledger', () => {
  it('brings back what a flushed Redis forgot, so that enqueueing it again pays nothing twice', async () => {
    await world.enqueue(4);
    const worker = startWorker();
    await untilSent(2);
    await client.flushall();
    await world.enqueue(2, 'Q');
    await untilRefused(worker, /flushed or exchanged/);
    const sent = paid();
    const adopted = await adopt('--yes');
    expect(adopted).toMatchObject({ code: 0, stdout: expect.stringMatching(/No payout became unknown/) });
    for (const { payoutId } of sent) expect(adopted.stdout).toMatch(new RegExp(`\n  ${payoutId}\n`));
    expect(await world.producer.get('P-1')).toMatchObject({ amount: '0.01', paymentId: 1, txhash: sent[0]?.txhash });
    await world.enqueue(4);
    await untilCompleted(6);
  }, 120_000);
});

describe('payouts adopt-ledger, where two hosts took turns', () => {
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

  it('names what one journal alone does not have, and adopts with both', async () => {
    const { ofA, ofB, known } = await takeTurns();
    const workers = [startWorker(HOST_A), startWorker(HOST_B)];
    const journals = [HOST_A, HOST_B].flatMap((host) => ['--journal', journalDir(host)]);
    for (const worker of workers) await untilRefused(worker, /older copy of the ledger/);
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
    expect(JSON.parse(both.stdout)).toMatchObject({ unknown: [], held: 0, adopted: inProgress([...ofA, ...ofB]) });
    expect((await idsIn('queued')).filter((payoutId) => paidIds().includes(payoutId))).toEqual([]);
    await untilCompleted(9);
    expect(new Set(paidIds()).size).toBe(9);
  }, 180_000);
});

import { appendFile, cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { connectLedger } from '../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../src/ledger/payout-ledger.js';
import { JOURNAL_WITNESS } from '../../src/ledger/witness.js';
import { startLocalRedis, type LocalRedis } from '../../src/sandbox/index.js';
import { runCli, type CliResult } from '../support/cli.js';
import { expectPromisesKept, openWorld, until, type PayoutWorld } from '../worker/support/payout-world.js';
import { endAllWorkers, type WorkerProcess } from '../worker/support/worker-process.js';

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

async function adopt(...args: string[]): Promise<CliResult> {
  const { platformId, redisUrl } = world;
  const env = {
    REDIS_URL: redisUrl,
    GATEWAY_PLATFORM_ID: String(platformId),
    SEND_JOURNAL_DIR: join(world.dir, 'journal'),
  };
  return runCli(['adopt-ledger', ...args], { env });
}

async function readJournal(): Promise<string> {
  return readFile(join(world.dir, 'journal', `${world.platformId}.journal`), 'utf8');
}

async function untilSent(count: number): Promise<void> {
  await until(`${count} payouts arrived`, () => world.sandbox.stats().arrivals >= count);
}

async function untilRefused(worker: WorkerProcess, reason: RegExp): Promise<number> {
  await until('the worker refuses', () => reason.test(worker.log()));
  return world.sandbox.stats().arrivals;
}

/** @returns the payouts that the gateway paid, by the address of each */
function paidPayouts(): string[] {
  return world.sandbox.payments().map(({ addressTo }) => `P-${/^bc1qp(\d)x/.exec(addressTo)?.[1] ?? '?'}`);
}

async function expectUnknown(payoutIds: readonly string[]): Promise<void> {
  const page = await world.producer.list({ state: 'unknown' });
  expect(page.payouts.map(({ payoutId }) => payoutId).sort()).toEqual([...payoutIds].sort());
}

async function untilRestCompleted(unknown: number, completed: number): Promise<void> {
  await until('the rest is completed', async () => {
    const stats = await world.producer.stats();
    return stats.unknown === unknown && stats.completed === completed;
  });
  await expectPromisesKept(world);
}

/** Puts the server back to how its folder was when `copy` was made. */
async function putBack(copy: string): Promise<void> {
  await redis.stop();
  await rm(dir, { recursive: true });
  await cp(copy, dir, { recursive: true });
  await rm(copy, { recursive: true });
  redis = await startLocalRedis({ dir, port: redis.port });
}

async function copyOfRedis(): Promise<string> {
  await redis.stop();
  const copy = `${dir}-copy`;
  await cp(dir, copy, { recursive: true });
  redis = await startLocalRedis({ dir, port: redis.port });
  return copy;
}

describe('payouts adopt-ledger', () => {
  it('makes unknown what an older copy of Redis forgot; the running worker goes on with the rest', async () => {
    await world.enqueue(6);
    const first = world.startWorker();
    await untilSent(1);
    first.kill('SIGTERM');
    await first.ended;
    const copy = await copyOfRedis();
    const worker = world.startWorker();
    await untilSent(3);
    await putBack(copy);
    const arrivals = await untilRefused(worker, /older copy of the ledger/);
    const [, ...forgotten] = paidPayouts();

    const asked = await adopt();
    expect(asked).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/--yes: is needed here/) });
    for (const payoutId of forgotten) expect(asked.stderr).toMatch(new RegExp(`${payoutId} +queued`));
    await delay(2_000);
    expect(world.sandbox.stats().arrivals).toBe(arrivals);

    const adopted = await adopt('--yes', '--by', 'ann', '--reason', 'backup restored', '--json');
    expect(adopted.code).toBe(0);
    expect(JSON.parse(adopted.stdout)).toMatchObject({
      disagreement: expect.stringMatching(/older copy/),
      unknown: forgotten,
    });
    await expectUnknown(forgotten);
    const payout = await world.producer.get(forgotten[0] ?? '');
    expect(payout?.history.at(-1)).toMatchObject({ by: 'ann', reason: expect.stringMatching(/forgot it: backup/) });
    await untilRestCompleted(forgotten.length, 6 - forgotten.length);
    expect(new Set(paidPayouts()).size).toBe(6);

    const journal = await readJournal();
    expect(await adopt()).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/nothing to adopt/) });
    expect(await readJournal()).toBe(journal);
  }, 120_000);

  it('brings back what a flushed Redis forgot as unknown, so that enqueueing it again pays nothing twice', async () => {
    await world.enqueue(4);
    const worker = world.startWorker();
    await untilSent(2);
    const person = new Redis(redis.url);
    await person.flushall();
    await world.enqueue(2, 'Q');
    await untilRefused(worker, /flushed or exchanged/);
    const sent = paidPayouts();

    const adopted = await adopt('--yes');
    expect(adopted.code).toBe(0);
    for (const payoutId of sent) expect(adopted.stdout).toMatch(new RegExp(`\n  ${payoutId}\n`));
    await expectUnknown(sent);
    expect(await world.producer.get('P-1')).toMatchObject({ amount: '0.01', paymentId: 1, state: 'unknown' });
    await world.enqueue(4);
    await untilRestCompleted(sent.length, 6 - sent.length);
    await person.quit();
  }, 120_000);

  it('leaves the worker refusing when it is interrupted, and ends it when it is run again', async () => {
    await world.enqueue(2);
    const worker = world.startWorker();
    await untilSent(2);
    await until('both are completed', async () => (await world.producer.stats()).completed === 2);
    worker.kill('SIGTERM');
    await worker.ended;
    const person = new Redis(redis.url);
    await person.flushall();
    const journal = await readJournal();
    expect((await adopt('--yes')).code).toBe(0);
    // As if the process had ended before its last step.
    const file = join(world.dir, 'journal', `${world.platformId}.journal`);
    await rm(file);
    await appendFile(file, journal);

    const again = world.startWorker();
    await untilRefused(again, /flushed or exchanged/);
    const adopted = await adopt('--yes', '--json');
    expect(JSON.parse(adopted.stdout)).toMatchObject({ unknown: [] });
    await expectUnknown(['P-1', 'P-2']);
    await world.enqueue(3);
    await untilRestCompleted(2, 1);
    await person.quit();
  }, 120_000);

  it("lifts a worker's objection that came to Redis when the ledger had just been adopted", async () => {
    await world.enqueue(1);
    const worker = world.startWorker();
    await until('it is completed', async () => (await world.producer.stats()).completed === 1);
    const person = new Redis(redis.url);
    const ledger = new PayoutLedger(connectLedger(person, world.platformId));
    await ledger.pause(JOURNAL_WITNESS, 'an older copy, as it was a moment ago');

    const adopted = await adopt('--yes', '--json');
    expect(JSON.parse(adopted.stdout)).toMatchObject({
      disagreement: expect.stringMatching(/agree, but .* pauses the account: an older copy/),
      unknown: [],
    });
    expect(await world.producer.stats()).toMatchObject({ paused: false });
    await world.enqueue(1, 'Q');
    await untilRestCompleted(0, 2);
    expect(worker.log()).not.toMatch(/Nothing is sent/);

    await ledger.pause('ann', 'holidays');
    expect(await adopt('--yes')).toMatchObject({ code: 0, stdout: expect.stringMatching(/nothing to adopt/) });
    expect(await world.producer.stats()).toMatchObject({ pausedBy: 'ann' });
    await person.quit();
  }, 120_000);

  it('says that it is run in the wrong place where there is no journal, and makes none', async () => {
    const result = await adopt('--yes');
    expect(result).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/no send journal of account \d+ in .*journal/),
    });
    await expect(readJournal()).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

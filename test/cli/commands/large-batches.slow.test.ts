import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { startLocalRedis, type LocalRedis } from '../../../src/sandbox/local-redis.js';
import { runCli, startCli } from '../../support/cli.js';
import { until } from '../../support/until.js';
import { untilSent, worldOfTest } from '../../worker/support/payout-world.js';

let redis: LocalRedis;
let client: Redis;

beforeAll(async () => {
  redis = await startLocalRedis();
  client = new Redis(redis.url);
});

afterAll(async () => {
  await client.quit();
  await redis.stop();
});

/** Writes to stderr, at the end of the process, the most memory that it ever had in kB, and its processor time in ms. */
const REPORT_USE = `process.on('exit', () => {
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage();
  process.stderr.write('maxRSS: ' + maxRSS + ', cpuMs: ' + (userCPUTime + systemCPUTime) / 1_000);
});`;
const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(REPORT_USE)}`;

const readUse = (stderr: string, name: 'maxRSS' | 'cpuMs') =>
  Number(new RegExp(`${name}: ([\\d.]+)`).exec(stderr)?.[1]);

/** Processor time of Redis, in ms. */
async function readRedisCpu() {
  const used = [...(await client.info('cpu')).matchAll(/^used_cpu_(?:sys|user):([\d.]+)/gm)];
  return used.reduce((sum, [, seconds]) => sum + Number(seconds) * 1_000, 0);
}

it('payouts import of 100,000 rows, killed twice and run again, makes each payout exactly once', async () => {
  const [ROWS, PREFIX] = [100_000, '{payouts:7}'];
  const dir = await mkdtemp(join(tmpdir(), 'payouts-large-'));
  const file = join(dir, 'large.csv');
  const row = (n: number) => `invoice-${n},6,${n + 1}.25,TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf,Invoice ${n}`;
  const rows = Array.from({ length: ROWS }, (_, n) => row(n));
  await writeFile(file, ['payout_id,payment_id,amount,address_to,reference', ...rows].join('\n'));
  const env = { REDIS_URL: redis.url, GATEWAY_PLATFORM_ID: '7', NODE_OPTIONS };
  const command = ['import', file, '--yes', '--batch', 'large'];
  const countQueued = async () => client.zcard(`${PREFIX}:state:queued`);
  for (const killAt of [10_000, 55_000]) {
    const killed = startCli(command, { env });
    while ((await countQueued()) < killAt) await delay(20);
    killed.kill('SIGKILL');
    expect(await killed.result).toMatchObject({ signal: 'SIGKILL' });
  }
  const there = await countQueued();
  expect(there).toBeLessThan(ROWS);
  const { code, stdout, stderr } = await runCli([...command, '--json'], { env });
  await rm(dir, { recursive: true });
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ payouts: ROWS, created: ROWS - there, existing: there, conflicts: 0 });
  expect(readUse(stderr, 'maxRSS') / 1024).toBeLessThan(450);
  const counts = {
    queued: await countQueued(),
    batch: await client.zcard(`${PREFIX}:batch:large`),
    transitions: Number(await client.hget(`${PREFIX}:ledger`, 'seq')),
    jobs: await client.llen(`${PREFIX}:withdraw:wait`),
  };
  expect(counts).toEqual({ queued: ROWS, batch: ROWS, transitions: ROWS, jobs: ROWS });
}, 180_000);

it('payouts import takes ten times the time for ten times the rows, and not ten times the memory', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'payouts-large-'));
  const measure = async (platformId: number, rows: number) => {
    const file = join(dir, `${rows}.csv`);
    const lines = Array.from({ length: rows }, (_, n) => `i-${n},6,${n + 1}.25,TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf`);
    await writeFile(file, ['payout_id,payment_id,amount,address_to', ...lines].join('\n'));
    const env = { REDIS_URL: redis.url, GATEWAY_PLATFORM_ID: String(platformId), NODE_OPTIONS };
    const redisBefore = await readRedisCpu();
    const { code, stderr } = await runCli(['import', file, '--yes', '--json'], { env });
    const redisMs = (await readRedisCpu()) - redisBefore;
    expect([code, await client.zcard(`{payouts:${platformId}}:state:queued`)]).toEqual([0, rows]);
    return { cpuMs: readUse(stderr, 'cpuMs') + redisMs, kB: readUse(stderr, 'maxRSS') };
  };
  const few = await measure(11, 10_000);
  const many = await measure(12, 100_000);
  await rm(dir, { recursive: true });
  // Processor time, also of Redis: a busy machine changes it little.
  expect(many.cpuMs / few.cpuMs).toBeLessThan(15);
  expect(many.kB / few.kB).toBeLessThan(4);
}, 180_000);

it('payouts cancel --batch that is ended by Ctrl-C says how many it cancelled, and continues where it is run again', async () => {
  const COUNT = 20_000;
  const world = await worldOfTest({ redis });
  const all = Array.from({ length: COUNT }, (_, index) => {
    const addressTo = `wallet-ended${index}xxxxxxxxxxxxxxxxxxxxxxxxxxxx`;
    return { payoutId: `ended-${index}`, paymentId: 1, amount: '0.01', addressTo, batch: 'ended' };
  });
  for (let at = 0; at < COUNT; at += 2_000) await world.producer.enqueueMany(all.slice(at, at + 2_000));
  const command = 'cancel --batch ended --json --yes --by ann --reason wrong'.split(' ');
  const ended = startCli(command, { env: world.env });
  await until('some are cancelled', async () => (await world.producer.stats()).cancelled > 500);
  ended.kill('SIGINT');
  const { code, signal, stdout, stderr } = await ended.result;
  const { changed = 0 } = JSON.parse(stdout) as Record<string, number>;
  const { cancelled, queued } = await world.producer.stats();
  expect({ code, signal, stderr }).toEqual({
    code: 1,
    signal: null,
    stderr: expect.stringContaining('run the same command again to continue'),
  });
  expect([cancelled, cancelled + queued]).toEqual([changed, COUNT]);
  expect(queued).toBeGreaterThan(0);
  const again = await runCli(command, { env: world.env });
  expect(again.code).toBe(0);
  expect(JSON.parse(again.stdout)).toMatchObject({ payouts: queued, changed: queued, refused: 0 });
  expect(await client.llen(`{payouts:${world.platformId}}:withdraw:wait`)).toBe(0);
}, 240_000);

it('payouts cancel --batch of 20,000 payouts among others cancels all that were not sent, soon', async () => {
  const WRONG = 20_000;
  const world = await worldOfTest({ redis });
  async function enqueue(batch: string, count: number) {
    const all = Array.from({ length: count }, (_, index) => {
      const addressTo = `wallet-${batch}${index}xxxxxxxxxxxxxxxxxxxxxxxxxxxx`;
      return { payoutId: `${batch}-${index}`, paymentId: 1, amount: '0.01', addressTo, batch };
    });
    for (let at = 0; at < count; at += 2_000) await world.producer.enqueueMany(all.slice(at, at + 2_000));
  }
  await enqueue('before', 80);
  const enqueuedFrom = performance.now();
  await enqueue('wrong', WRONG);
  const enqueuedInMs = performance.now() - enqueuedFrom;
  await enqueue('behind', 20_000);
  world.startWorker();
  await untilSent(world, 2);
  const countSent = () => world.sandbox.stats().arrivals;
  const [startedAt, startedWith] = [performance.now(), countSent()];
  await delay(8_000);
  const usualRate = (countSent() - startedWith) / (performance.now() - startedAt);

  const [began, sentBefore] = [performance.now(), countSent()];
  const command = 'cancel --batch wrong --json --yes --by ann --reason wrong'.split(' ');
  const summary = JSON.parse((await runCli(command, { env: world.env })).stdout) as Record<string, number>;
  const tookMs = performance.now() - began;
  const sent = countSent() - sentBefore;
  const { changed = 0, refused = 0, payouts } = summary;
  expect(changed + refused).toBe(payouts);
  expect(changed).toBeGreaterThan(WRONG - 30);
  expect(tookMs).toBeLessThan(5 * enqueuedInMs);
  // It is the pace of a machine that does all this at once.
  expect(sent / tookMs).toBeGreaterThan(0.6 * usualRate);

  const { cancelled, queued } = await world.producer.stats();
  expect(cancelled).toBe(changed);
  expect(await client.llen(`{payouts:${world.platformId}}:withdraw:wait`)).toBeLessThanOrEqual(queued);
  // The next to be sent are those behind: nobody waits for jobs that have nothing to do.
  const arrivals = countSent();
  await until('others are sent', () => countSent() >= arrivals + 3);
}, 240_000);

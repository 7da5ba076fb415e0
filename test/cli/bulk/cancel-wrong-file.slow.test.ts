import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { startLocalRedis, type LocalRedis } from '../../../src/sandbox/local-redis.js';
import { runCli, type CliResult } from '../../support/cli.js';
import { until } from '../../support/until.js';
import { openWorld, untilSent, type PayoutWorld } from '../../worker/support/payout-world.js';

const WRONG = 20_000;
const BEHIND = 20_000;

let redis: LocalRedis;
let client: Redis;
let world: PayoutWorld;

beforeAll(async () => {
  redis = await startLocalRedis();
  client = new Redis(redis.url);
  world = await openWorld({ redis });
}, 60_000);

afterAll(async () => {
  await world.close();
  await client.quit();
  await redis.stop();
});

async function enqueue(batch: string, count: number): Promise<void> {
  const all = Array.from({ length: count }, (_, index) => {
    const addressTo = `wallet-${batch}${index}xxxxxxxxxxxxxxxxxxxxxxxxxxxx`;
    return { payoutId: `${batch}-${index}`, paymentId: 1, amount: '0.01', addressTo, batch };
  });
  for (let start = 0; start < count; start += 2_000) await world.producer.enqueueMany(all.slice(start, start + 2_000));
}

const run = async (...args: string[]): Promise<CliResult> =>
  runCli(args, { env: { REDIS_URL: redis.url, GATEWAY_PLATFORM_ID: String(world.platformId) } });

describe('payouts cancel --batch of 20,000 payouts, with others before and behind', () => {
  it('cancels all but those that were sent, and their jobs, within 30 s', async () => {
    await enqueue('before', 80);
    await enqueue('wrong', WRONG);
    await enqueue('behind', BEHIND);
    world.startWorker();
    await untilSent(world, 2);
    const [startedAt, startedWith] = [performance.now(), world.sandbox.stats().arrivals];
    await delay(8_000);
    const usualRate = (world.sandbox.stats().arrivals - startedWith) / (performance.now() - startedAt);

    const sentBefore = world.sandbox.stats().arrivals;
    const began = performance.now();
    const result = await run(...'cancel --batch wrong --json --yes --by ann --reason'.split(' '), 'wrong file');
    const tookMs = performance.now() - began;
    const sent = world.sandbox.stats().arrivals - sentBefore;
    const summary = JSON.parse(result.stdout) as { changed: number; refused: number; payouts: number };
    expect(summary.changed + summary.refused).toBe(summary.payouts);
    expect(summary.changed).toBeGreaterThan(WRONG - 30);
    expect(tookMs).toBeLessThan(30_000);
    // It is the pace of a machine that does all this at once.
    expect(sent / tookMs).toBeGreaterThan(0.6 * usualRate);

    const { cancelled, queued } = await world.producer.stats();
    expect(cancelled).toBe(summary.changed);
    expect(await client.llen(`{payouts:${world.platformId}}:withdraw:wait`)).toBeLessThanOrEqual(queued);
    // The next to be sent are those behind: nobody waits for jobs that have nothing to do.
    const arrivals = world.sandbox.stats().arrivals;
    await until('others are sent', () => world.sandbox.stats().arrivals >= arrivals + 3);
  }, 240_000);
});

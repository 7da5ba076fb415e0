import { setTimeout as delay } from 'node:timers/promises';
import { PayoutProducer } from 'payout-queue';
import { startSandbox } from 'payout-queue/sandbox';
import { startRedisSentinel } from '../../test/support/replicated-redis.js';
import type { BenchmarkResult, BenchmarkRun } from '../benchmark.js';
import { figure } from '../figure.js';
import { newAccount, samplePayouts } from '../sample-payouts.js';
import { until } from '../until.js';
import { startWorkerProcess } from '../worker-process.js';

/** Calls of `enqueue` at the same time, of each producer. */
const LANES = 10;
/** Of what was acknowledged, this many are looked up at a time. */
const LOOKED_UP = 500;

/**
 * What failovers of Sentinel cost: payouts that `enqueue` had acknowledged and that are gone, with and without waiting
 * for the replicas; and how soon the next payout is sent once a replica that was missing is back.
 */
export async function run({ quick, note }: BenchmarkRun): Promise<BenchmarkResult> {
  const { failovers, outages, outageMs } = quick
    ? { failovers: 1, outages: 1, outageMs: 5_000 }
    : { failovers: 6, outages: 5, outageMs: 30_000 };
  const rows = await measureEnqueues(failovers);
  note(`${failovers} failovers: done`);
  const lateMs = await measureOutages(outages, outageMs);
  const [waits, hasty] = rows;
  return {
    rows,
    lateMs,
    figures: [
      figure('acknowledged payouts that failovers lost', waits.lost, { atMost: 0 }),
      figure('acknowledged meanwhile', waits.acknowledged, { atLeast: 1 }),
      figure('acknowledged with `confirm: false`', hasty.acknowledged, { atLeast: 1 }),
      figure('ms from a replica that is back to the next send, the longest', Math.max(...lateMs), { atMost: 3_000 }),
    ],
  };
}

async function measureEnqueues(failovers: number) {
  const redis = await startRedisSentinel();
  const { platformId } = newAccount();
  try {
    const lanes = [true, false].map((confirm) => keepEnqueueing(redis.url, platformId, confirm));
    for (let times = 0; times < failovers; times += 1) {
      await delay(6_000);
      await redis.failOver();
      await delay(7_000);
    }
    const ended = await Promise.all(lanes.map(async (lane) => lane.end()));
    await redis.untilWhole();
    const [waits, hasty] = await Promise.all(
      ended.map(async ({ confirm, acknowledged, failed }) => ({
        waitsForReplicas: confirm,
        failovers,
        acknowledged: acknowledged.length,
        failed,
        lost: await countMissing(redis.url, platformId, acknowledged),
      })),
    );
    if (waits === undefined || hasty === undefined) throw new Error('Nothing was measured');
    return [waits, hasty] as const;
  } finally {
    await redis.close();
  }
}

function keepEnqueueing(redisUrl: string, platformId: number, confirm: boolean) {
  const producer = new PayoutProducer({ redisUrl, platformId, confirm });
  const acknowledged: string[] = [];
  let [failed, number] = [0, 0];
  const ended = new AbortController();
  const lane = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      const [payout] = samplePayouts(1, `${confirm ? 'waits' : 'hasty'}-${(number += 1)}`);
      if (payout === undefined) throw new Error('no payout');
      try {
        await producer.enqueue(payout);
        acknowledged.push(payout.payoutId);
      } catch {
        failed += 1;
        await delay(100);
      }
    }
  };
  const running = Promise.all(Array.from({ length: LANES }, lane));
  return {
    async end() {
      ended.abort();
      await running;
      await producer.close();
      return { confirm, acknowledged, failed };
    },
  };
}

async function countMissing(redisUrl: string, platformId: number, payoutIds: readonly string[]): Promise<number> {
  const producer = new PayoutProducer({ redisUrl, platformId });
  let missing = 0;
  try {
    for (let from = 0; from < payoutIds.length; from += LOOKED_UP) {
      const found = await Promise.all(payoutIds.slice(from, from + LOOKED_UP).map(async (id) => producer.get(id)));
      missing += found.filter((payout) => payout === undefined).length;
    }
    return missing;
  } finally {
    await producer.close();
  }
}

/** @returns for each outage, how long the next send took once the replica was back, in ms */
async function measureOutages(outages: number, outageMs: number): Promise<readonly number[]> {
  const redis = await startRedisSentinel();
  const account = newAccount();
  const sandbox = await startSandbox({ accounts: [account] });
  const producer = new PayoutProducer({ redisUrl: redis.url, platformId: account.platformId });
  const countSends = (): number => sandbox.arrivals(account.platformId).length;
  let worker: Awaited<ReturnType<typeof startWorkerProcess>> | undefined;
  try {
    await producer.enqueueMany(samplePayouts(outages * 200));
    worker = await startWorkerProcess({ redisUrl: redis.url, accounts: [{ ...account, baseUrl: sandbox.url }] });
    const lateMs: number[] = [];
    for (let times = 0; times < outages; times += 1) {
      const before = countSends();
      await until('payouts are sent', () => countSends() > before + 2);
      await redis.killReplica('');
      await delay(outageMs);
      const missed = countSends();
      await redis.startReplicaAgain('');
      await redis.untilWhole();
      const wellAt = performance.now();
      await until('the next is sent', () => countSends() > missed);
      lateMs.push(performance.now() - wellAt);
    }
    return lateMs;
  } finally {
    await worker?.stop();
    await producer.close();
    await sandbox.close();
    await redis.close();
  }
}

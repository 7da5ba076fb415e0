import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AccountOptions, PayoutProducer } from 'payout-queue';
import { startSandbox } from 'payout-queue/sandbox';
import type { BenchmarkResult, BenchmarkRun } from '../benchmark.js';
import { type MeasuredRedis, startMeasuredRedis } from '../measured-redis.js';
import type { PeerRun } from '../pacing/peer-child.js';
import { PEERS } from '../pacing/peers.js';
import { drawPacing } from '../pacing/draw-pacing.js';
import { figure } from '../figure.js';
import { newAccount, samplePayouts } from '../sample-payouts.js';
import { gapsOf, rateOf } from '../statistics.js';
import { until } from '../until.js';
import { startWorkerProcess } from '../worker-process.js';

const PROJECT = 'payout-queue';
const PICTURE = new URL('../../docs/pacing.svg', import.meta.url);
const PEER_CHILD = new URL('../pacing/peer-child.ts', import.meta.url);

/**
 * The same payouts through the same gateway, paced by this project and by its peers at the same time, each with an account
 * and a process of its own. The network takes 0 to 300 ms until a request arrives and 20 to 80 until its response is back.
 * The sandbox records arrivals and blocks no account, so all can be measured to the end.
 */
export async function run({ quick, note }: BenchmarkRun): Promise<BenchmarkResult> {
  const count = quick ? 8 : 100;
  const redis = await startMeasuredRedis();
  const accounts = new Map([PROJECT, ...Object.keys(PEERS)].map((name) => [name, newAccount()]));
  const sandbox = await startSandbox({
    accounts: [...accounts.values()],
    latencyBeforeMs: { min: 0, max: 300 },
    latencyAfterMs: { min: 20, max: 80 },
    minGapMs: 0,
  });
  note(`${count} payouts by each of ${accounts.size}, at the same time; latencies from seed ${sandbox.seed}`);
  try {
    const runs = [...accounts].map(async ([name, account]) => {
      const own = { ...account, baseUrl: sandbox.url };
      return name === PROJECT ? runProject(own, count, redis) : runPeer(name, own, count, redis);
    });
    await Promise.all(runs);
    const rows = [...accounts].map(([name, { platformId }]) =>
      summarize(name, sandbox.stats(platformId).arrivalsAtMs, count),
    );
    if (!quick) await writeFile(PICTURE, drawPacing(rows, count));
    return {
      seed: sandbox.seed,
      rows,
      figures: [figure('gaps under 1000 ms', rows[0]?.tooClose ?? NaN, { atMost: 0 })],
    };
  } finally {
    await sandbox.close();
    await redis.close();
  }
}

async function runProject(account: AccountOptions, count: number, redis: MeasuredRedis): Promise<void> {
  const producer = new PayoutProducer({ redisUrl: redis.url, platformId: account.platformId });
  const worker = await startWorkerProcess({ redisUrl: redis.url, accounts: [account] });
  try {
    await producer.enqueueMany(samplePayouts(count));
    await until('all are sent', async () => {
      const { queued, sending } = await producer.stats();
      return queued + sending === 0;
    });
  } finally {
    await worker.stop();
    await producer.close();
  }
}

async function runPeer(name: string, account: PeerRun['account'], count: number, redis: MeasuredRedis): Promise<void> {
  const child = fork(PEER_CHILD);
  const asked: PeerRun = { name, account, payouts: samplePayouts(count), redisPort: Number(new URL(redis.url).port) };
  child.send(asked);
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`The process of ${name} ended with code ${code ?? 'none'}`);
}

function summarize(name: string, arrivalsAtMs: readonly number[], count: number) {
  if (arrivalsAtMs.length !== count) throw new Error(`${name} sent ${arrivalsAtMs.length} of ${count} payouts`);
  const gapsMs = gapsOf(arrivalsAtMs);
  return {
    name,
    gaps: gapsMs.length,
    tooClose: gapsMs.filter((gapMs) => gapMs < 1_000).length,
    smallestGapMs: Math.min(...gapsMs),
    payoutsPerSecond: rateOf(arrivalsAtMs),
    gapsMs: gapsMs.map((gapMs) => Math.round(gapMs * 10) / 10),
  };
}

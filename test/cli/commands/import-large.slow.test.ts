import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { startLocalRedis, type LocalRedis } from '../../../src/sandbox/local-redis.js';
import { runCli, startCli } from '../../support/cli.js';

const ROWS = 100_000;
const PLATFORM_ID = 7;
const PREFIX = `{payouts:${PLATFORM_ID}}`;

/** Writes the most memory that the process ever had, in kB, to stderr at its end. */
const REPORT_MEMORY = `import { readFileSync } from 'node:fs';
process.on('exit', () => process.stderr.write(/VmHWM:.*/.exec(readFileSync('/proc/self/status', 'utf8'))[0]));`;
const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(REPORT_MEMORY)}`;

let dir: string;
let redis: LocalRedis;
let client: Redis;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-large-'));
  redis = await startLocalRedis();
  client = new Redis(redis.url);
});

afterAll(async () => {
  await client.quit();
  await redis.stop();
  await rm(dir, { recursive: true });
});

describe('payouts import of 100,000 rows', () => {
  it('killed twice and run again, makes each payout exactly once', async () => {
    const file = join(dir, 'large.csv');
    const row = (n: number): string => `invoice-${n},6,${n + 1}.25,TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf,Invoice ${n}`;
    const rows = Array.from({ length: ROWS }, (_, n) => row(n));
    await writeFile(file, ['payout_id,payment_id,amount,address_to,reference', ...rows].join('\n'));
    const env = { REDIS_URL: redis.url, GATEWAY_PLATFORM_ID: String(PLATFORM_ID), NODE_OPTIONS };
    const command = ['import', file, '--yes', '--batch', 'large'];
    for (const killAt of [10_000, 55_000]) {
      const killed = startCli(command, { env });
      while ((await client.zcard(`${PREFIX}:state:queued`)) < killAt) await delay(20);
      killed.kill('SIGKILL');
      expect(await killed.result).toMatchObject({ signal: 'SIGKILL' });
    }
    const there = await client.zcard(`${PREFIX}:state:queued`);
    expect(there).toBeLessThan(ROWS);

    const { code, stdout, stderr } = await runCli([...command, '--json'], { env });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ payouts: ROWS, created: ROWS - there, existing: there, conflicts: 0 });
    if (process.platform === 'linux') {
      expect(Number(/VmHWM:\s*(\d+) kB/.exec(stderr)?.[1]) / 1024).toBeLessThan(450);
    }
    const counts = {
      queued: await client.zcard(`${PREFIX}:state:queued`),
      batch: await client.zcard(`${PREFIX}:batch:large`),
      transitions: Number(await client.hget(`${PREFIX}:ledger`, 'seq')),
      jobs: await client.llen(`${PREFIX}:withdraw:wait`),
    };
    expect(counts).toEqual({ queued: ROWS, batch: ROWS, transitions: ROWS, jobs: ROWS });
  }, 180_000);
});

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

function makeRows(): string[] {
  const address = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
  const rows = Array.from({ length: ROWS }, (_, n) => `invoice-${n},6,${n + 1}.25,${address},USD,Invoice ${n}`);
  return ['payout_id,payment_id,amount,address_to,symbol,reference', ...rows];
}

async function save(name: string, lines: readonly string[]): Promise<string> {
  const file = join(dir, name);
  await writeFile(file, lines.join('\n'));
  return file;
}

function environment(): Record<string, string> {
  return { REDIS_URL: redis.url, GATEWAY_PLATFORM_ID: String(PLATFORM_ID), NODE_OPTIONS };
}

function expectLittleMemory(stderr: string): void {
  if (process.platform !== 'linux') return;
  const usedKb = Number(/VmHWM:\s*(\d+) kB/.exec(stderr)?.[1]);
  expect(usedKb / 1024).toBeLessThan(450);
}

describe('payouts import of 100,000 rows', () => {
  it('killed twice and run again, makes each payout exactly once, in less than 450 MB', async () => {
    const file = await save('large.csv', makeRows());
    for (const killAt of [10_000, 55_000]) {
      const killed = startCli(['import', file, '--yes', '--batch', 'large'], { env: environment() });
      while ((await client.zcard(`${PREFIX}:state:queued`)) < killAt) await delay(20);
      killed.kill('SIGKILL');
      expect(await killed.result).toMatchObject({ signal: 'SIGKILL' });
    }
    const there = await client.zcard(`${PREFIX}:state:queued`);
    expect(there).toBeLessThan(ROWS);

    const { code, stdout, stderr } = await runCli(['import', file, '--yes', '--batch', 'large', '--json'], {
      env: environment(),
    });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ payouts: ROWS, created: ROWS - there, existing: there, conflicts: 0 });
    expectLittleMemory(stderr);
    const counts = {
      queued: await client.zcard(`${PREFIX}:state:queued`),
      batch: await client.zcard(`${PREFIX}:batch:large`),
      transitions: Number(await client.hget(`${PREFIX}:ledger`, 'seq')),
      jobs: await client.llen(`${PREFIX}:withdraw:wait`),
    };
    expect(counts).toEqual({ queued: ROWS, batch: ROWS, transitions: ROWS, jobs: ROWS });
  }, 180_000);

  it('with errors in rows 3 and 99,999 names both and enqueues nothing', async () => {
    const lines = makeRows();
    lines[2] = 'invoice-1,6,-1,T,USD,';
    lines[99_998] = 'invoice-7,6,1,T,USD,';
    const file = await save('wrong.csv', lines);
    const before = await client.dbsize();
    const { code, stdout, stderr } = await runCli(['import', file, '--yes'], { env: environment() });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(
      /^line 3: amount: must be a decimal string.*\nline 99999: payout_id: already used in line 9 with a different amount, address_to, reference/,
    );
    expect(stderr).toMatch(/2 of 100,000 rows have errors, nothing was enqueued/);
    expectLittleMemory(stderr);
    expect(await client.dbsize()).toBe(before);
  }, 60_000);
});

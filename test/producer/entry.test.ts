import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { startSandbox } from '../../src/sandbox/index.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';
import { findBuiltProgram } from '../support/built-program.js';
import { closeAfterTest, folderOfTest } from '../worker/support/close-after-test.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const manifest = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { dependencies: object };
const ROUNDS = 5;
/** The least of many rounds is what it costs; a busy machine adds to each. */
const MOST_ROUNDS = 25;

type Figure = 'modules' | 'cpuMs' | 'memoryMB';

/** What it costs a new process. */
interface Cost {
  readonly modules: number;
  /** Of all its threads: a busy machine changes it less than the time that passes. */
  readonly cpuMs: number;
  /** The most that it ever had. */
  readonly memoryMB: number;
  /** Names of packages. */
  readonly loaded: readonly string[];
}

/**
 * Of the time. The modules cannot be so few: BullMQ is 305 after one `add`, and zod, which checks options and fields,
 * brings 95 (62 are its translations), so that not one of ours would be left below 1.3.
 */
const LITTLE = { modules: 1.65, cpuMs: 1.3, memoryMB: 1.3 };

it('costs a process that enqueues once little more than one `add` of BullMQ', async () => {
  findBuiltProgram();
  const [redisUrl, platformId] = [testRedisUrl(), newPlatformId()];
  const add = `
    const { Queue } = await import('bullmq');
    await new Queue('entry-${platformId}', { connection: { url: '${redisUrl}' } }).add('once', {});`;
  const enqueue = `
    const { PayoutProducer } = await import('payout-queue/producer');
    const producer = new PayoutProducer({ redisUrl: '${redisUrl}', platformId: ${platformId} });
    const addressTo = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
    await producer.enqueue({ payoutId: String(process.pid), paymentId: 6, amount: '12.5', addressTo });`;
  const { ratioOf } = await compare(
    { add: async () => measure(add), enqueue: async () => measure(enqueue) },
    LITTLE.cpuMs,
  );
  for (const key of ['modules', 'cpuMs', 'memoryMB'] as const) expect(ratioOf(key)).toBeLessThan(LITTLE[key]);
  // Without `yaml`, which reads a keyring, and `@opentelemetry/api`, which traces for a provider.
  const { loaded } = await measure(enqueue);
  const dependencies = Object.keys(manifest.dependencies).filter((name) => loaded.includes(name));
  expect(dependencies).toEqual(['@noble/hashes', '@scure/base', 'bullmq', 'ioredis', 'zod']);
});

it('costs a process that has not enqueued yet little more than loading BullMQ', async () => {
  findBuiltProgram();
  const load = (name: string) => async () => measure(`await import('${name}')`);
  const { ratioOf, least } = await compare({ bullmq: load('bullmq'), light: load('payout-queue/producer') }, 1.3);
  for (const key of ['modules', 'cpuMs', 'memoryMB'] as const) expect(ratioOf(key)).toBeLessThan(1.3);
  const main = await measure("await import('payout-queue')");
  expect(main.modules).toBeGreaterThan(1.5 * least('light', 'modules'));
});

it('loads the worker for a process with CommonJS once it is used', async () => {
  findBuiltProgram();
  const script = `
    const count = () => Object.keys(require.cache).length;
    const { PayoutProducer } = require('payout-queue');
    const producer = count();
    const { createPayoutWorker } = require('payout-queue');
    console.log(JSON.stringify({ producer, worker: count(), names: [typeof PayoutProducer, typeof createPayoutWorker] }));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--eval', script], { cwd: ROOT });
  const loaded = JSON.parse(stdout) as { producer: number; worker: number; names: string[] };
  expect(loaded.names).toEqual(['function', 'function']);
  expect(loaded.worker).toBeGreaterThan(1.5 * loaded.producer);
});

/** What dashboard, door, notifier, sandbox and commands alone need, and `yaml`, which reads a keyring or a policy. */
const OF_OTHERS = [
  ...['@bull-board/api', '@bull-board/express', 'express', 'helmet', 'rate-limiter-flexible'],
  ...['cli-progress', 'commander', 'csv-parse', 'picocolors', 'yaml'],
];

/** So that the lease comes at once. */
const QUICK = { leaseMs: 500, quarantineMs: 0, inFlightMaxMs: 1_000 };

it('a worker of the main entry starts with few more modules, and no slower than if all were loaded at once', async () => {
  findBuiltProgram();
  const start =
    (path: string, first = '') =>
    async () => {
      const [platformId, journalDir, secretKey] = [newPlatformId(), await folderOfTest('start'), 'k-test-0123456789'];
      const sandbox = closeAfterTest(await startSandbox({ accounts: [{ platformId, secretKey }] }));
      const account = { platformId, secretKey, baseUrl: sandbox.url, ...QUICK };
      const options = { redisUrl: testRedisUrl(), journalDir, accounts: [account] };
      const script = `
      const require = process.getBuiltinModule('node:module').createRequire('${ROOT}package.json');
      ${first};
      const { createPayoutWorker } = require('${path}');
      const none = () => undefined;
      await new Promise((resolve) => {
        const info = (_, text) => text === 'acquired sender lease' && resolve();
        const logger = { debug: none, info, warn: none, error: none, child: () => logger };
        void createPayoutWorker({ ...${JSON.stringify(options)}, logger });
      });`;
      return measure(script);
    };
  const eager = start('payout-queue', "Object.values(require('payout-queue'))");
  const late = start('payout-queue');
  const { ratioOf } = await compare({ eager, late }, 1.1);
  for (const key of ['modules', 'cpuMs', 'memoryMB'] as const) expect(ratioOf(key)).toBeLessThan(1.1);
  const direct = await start('./dist/control/payout-worker.js')();
  const { loaded, modules } = await late();
  expect(modules / direct.modules).toBeLessThan(1.1);
  expect(loaded).toContain('axios');
  expect(loaded.filter((name) => OF_OTHERS.includes(name))).toEqual([]);
});

/** Measures two ways in turns, until the second costs less than `most` times the first, or often enough. */
async function compare(ways: Readonly<Record<string, () => Promise<Cost>>>, most: number) {
  const costs = new Map(Object.keys(ways).map((name) => [name, [] as Cost[]]));
  const least = (name: string, key: Figure) => Math.min(...(costs.get(name) ?? []).map((cost) => cost[key]));
  const [first = '', second = ''] = Object.keys(ways);
  const ratioOf = (key: Figure) => least(second, key) / least(first, key);
  for (let round = 0; round < ROUNDS || (round < MOST_ROUNDS && ratioOf('cpuMs') >= most); round += 1) {
    for (const [name, way] of Object.entries(ways)) costs.get(name)?.push(await way());
  }
  return { ratioOf, least };
}

/** @param statement - of a module */
async function measure(statement: string): Promise<Cost> {
  const script = `
    const before = process.cpuUsage();
    ${statement};
    const { user, system } = process.cpuUsage(before);
    const { cache } = process.getBuiltinModule('node:module').createRequire('${ROOT}package.json');
    const files = Object.keys(cache);
    const nameOf = (file) => /.*\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(file)?.[1] ?? 'payout-queue';
    const memoryMB = process.resourceUsage().maxRSS / 1024;
    const [modules, cpuMs, loaded] = [files.length, (user + system) / 1_000, [...new Set(files.map(nameOf))]];
    process.stdout.write(JSON.stringify({ modules, cpuMs, memoryMB, loaded }), () => process.exit());`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: ROOT,
  });
  return JSON.parse(stdout) as Cost;
}

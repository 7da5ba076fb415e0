import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { newPlatformId, testRedisUrl } from '../support/account.js';
import { findBuiltProgram } from '../support/built-program.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const ROUNDS = 5;
/** The least of many rounds is what it costs; a busy machine adds to each. */
const MOST_ROUNDS = 25;

/** What it costs a new process. */
interface Cost {
  readonly modules: number;
  /** Of all its threads: a busy machine changes it less than the time that passes. */
  readonly cpuMs: number;
  /** Names of packages. */
  readonly loaded: readonly string[];
}

/**
 * Of the time. The modules cannot be so few: BullMQ is 305 after one `add`, and zod, which checks options and fields,
 * brings 95 (62 are its translations), so that not one of ours would be left below 1.3.
 */
const LITTLE = { modules: 1.65, cpuMs: 1.3 };

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
    { add: async () => measure('module', add), enqueue: async () => measure('module', enqueue) },
    LITTLE.cpuMs,
  );
  for (const key of ['modules', 'cpuMs'] as const) expect(ratioOf(key)).toBeLessThan(LITTLE[key]);
  const { loaded } = await measure('module', enqueue);
  expect(loaded).toContain('bullmq');
  // The one reads a keyring, the other traces for a provider.
  for (const late of ['yaml', '@opentelemetry/api']) expect(loaded).not.toContain(late);
});

it('costs a process that has not enqueued yet little more than loading BullMQ', async () => {
  findBuiltProgram();
  const load = (name: string) => async () => measure('module', `await import('${name}')`);
  const { ratioOf, least } = await compare({ bullmq: load('bullmq'), light: load('payout-queue/producer') }, 1.3);
  for (const key of ['modules', 'cpuMs'] as const) expect(ratioOf(key)).toBeLessThan(1.3);
  const main = await measure('module', "await import('payout-queue')");
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

/** Of loading alone, some 0.3 s of processor time, on Node 22 between 1.08 and 1.12: of a start of a worker far less. */
const LATE = { modules: 1.1, cpuMs: 1.2 };

it('loads the worker late at a tenth more modules and a fifth more time at most', async () => {
  findBuiltProgram();
  const name = (path: string) => async () => measure('commonjs', `require('${path}').createPayoutWorker`);
  const ways = { direct: name('./dist/control/payout-worker.js'), late: name('payout-queue') };
  const { ratioOf } = await compare(ways, LATE.cpuMs);
  for (const key of ['modules', 'cpuMs'] as const) expect(ratioOf(key)).toBeLessThan(LATE[key]);
});

/** Measures two ways in turns, until the second costs less than `most` times the first, or often enough. */
async function compare(ways: Readonly<Record<string, () => Promise<Cost>>>, most: number) {
  const costs = new Map(Object.keys(ways).map((name) => [name, [] as Cost[]]));
  const least = (name: string, key: 'modules' | 'cpuMs') =>
    Math.min(...(costs.get(name) ?? []).map((cost) => cost[key]));
  const [first = '', second = ''] = Object.keys(ways);
  const ratioOf = (key: 'modules' | 'cpuMs') => least(second, key) / least(first, key);
  for (let round = 0; round < ROUNDS || (round < MOST_ROUNDS && ratioOf('cpuMs') >= most); round += 1) {
    for (const [name, way] of Object.entries(ways)) costs.get(name)?.push(await way());
  }
  return { ratioOf, least };
}

async function measure(type: 'module' | 'commonjs', statement: string): Promise<Cost> {
  const script = `
    const before = process.cpuUsage();
    ${statement};
    const { user, system } = process.cpuUsage(before);
    const { cache } = process.getBuiltinModule('node:module').createRequire('${ROOT}package.json');
    const files = Object.keys(cache);
    const nameOf = (file) => /.*\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(file)?.[1] ?? 'payout-queue';
    const cost = { modules: files.length, cpuMs: (user + system) / 1_000, loaded: [...new Set(files.map(nameOf))] };
    process.stdout.write(JSON.stringify(cost), () => process.exit());`;
  const { stdout } = await promisify(execFile)(process.execPath, [`--input-type=${type}`, '--eval', script], {
    cwd: ROOT,
  });
  return JSON.parse(stdout) as Cost;
}

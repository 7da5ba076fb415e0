import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { findBuiltProgram } from '../support/built-program.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const ROUNDS = 5;

/** What importing it costs a new process. */
interface Cost {
  readonly modules: number;
  /** Of all its threads: a busy machine changes it less than the time that passes. */
  readonly cpuMs: number;
}

it('costs a process that only enqueues little more than BullMQ', async () => {
  findBuiltProgram();
  const costs: Record<string, Cost[]> = { bullmq: [], 'payout-queue/producer': [], 'payout-queue': [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [name, measured] of Object.entries(costs)) measured.push(await importInProcess(name));
  }
  const least = (name: string, key: keyof Cost) => Math.min(...(costs[name] ?? []).map((cost) => cost[key]));
  for (const key of ['modules', 'cpuMs'] as const) {
    expect(least('payout-queue/producer', key)).toBeLessThan(1.3 * least('bullmq', key));
    expect(least('payout-queue', key)).toBeGreaterThan(1.5 * least('payout-queue/producer', key));
  }
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

async function importInProcess(name: string): Promise<Cost> {
  const script = `
    import { createRequire } from 'node:module';
    const before = process.cpuUsage();
    await import('${name}');
    const { user, system } = process.cpuUsage(before);
    const { cache } = createRequire('${ROOT}package.json');
    console.log(JSON.stringify({ modules: Object.keys(cache).length, cpuMs: (user + system) / 1_000 }));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: ROOT,
  });
  return JSON.parse(stdout) as Cost;
}

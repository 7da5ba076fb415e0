import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { findBuiltProgram } from '../support/built-program.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const ROUNDS = 5;
/** The least of many rounds is what it costs; a busy machine adds to each. */
const MOST_ROUNDS = 25;

/** What loading it costs a new process. */
interface Cost {
  readonly modules: number;
  /** Of all its threads: a busy machine changes it less than the time that passes. */
  readonly cpuMs: number;
}

it('costs a process that only enqueues little more than BullMQ', async () => {
  findBuiltProgram();
  const costs: Record<string, Cost[]> = { bullmq: [], 'payout-queue/producer': [], 'payout-queue': [] };
  const least = (name: string, key: keyof Cost) => Math.min(...(costs[name] ?? []).map((cost) => cost[key]));
  const isLittle = () => least('payout-queue/producer', 'cpuMs') < 1.3 * least('bullmq', 'cpuMs');
  for (let round = 0; round < ROUNDS || (round < MOST_ROUNDS && !isLittle()); round += 1) {
    for (const [name, measured] of Object.entries(costs)) measured.push(await importInProcess(name));
  }
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

/** Of loading alone, some 0.3 s of processor time, on Node 22 between 1.08 and 1.12: of a start of a worker far less. */
const LATE = { modules: 1.1, cpuMs: 1.2 };

it('loads the worker late at a tenth more modules and a fifth more time at most', async () => {
  findBuiltProgram();
  const ways = ['./dist/control/payout-worker.js', 'payout-queue'];
  const costs = ways.map(() => [] as Cost[]);
  const least = (key: keyof Cost) => costs.map((measured) => Math.min(...measured.map((cost) => cost[key])));
  const ratioOf = (key: keyof Cost) => {
    const [direct = NaN, late = NaN] = least(key);
    return late / direct;
  };
  for (let round = 0; round < ROUNDS || (round < MOST_ROUNDS && ratioOf('cpuMs') >= LATE.cpuMs); round += 1) {
    for (const [index, name] of ways.entries()) {
      costs[index]?.push(await measure('commonjs', `require('${name}').createPayoutWorker`));
    }
  }
  for (const key of ['modules', 'cpuMs'] as const) expect(ratioOf(key)).toBeLessThan(LATE[key]);
});

async function importInProcess(name: string): Promise<Cost> {
  return measure('module', `await import('${name}')`);
}

async function measure(type: 'module' | 'commonjs', statement: string): Promise<Cost> {
  const script = `
    const before = process.cpuUsage();
    ${statement};
    const { user, system } = process.cpuUsage(before);
    const { cache } = process.getBuiltinModule('node:module').createRequire('${ROOT}package.json');
    console.log(JSON.stringify({ modules: Object.keys(cache).length, cpuMs: (user + system) / 1_000 }));`;
  const { stdout } = await promisify(execFile)(process.execPath, [`--input-type=${type}`, '--eval', script], {
    cwd: ROOT,
  });
  return JSON.parse(stdout) as Cost;
}

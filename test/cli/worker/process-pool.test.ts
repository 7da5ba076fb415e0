import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { silentLogger, type Logger } from '../../../src/base/logger.js';
import { ProcessPool, type PoolEnd, type PoolProcess } from '../../../src/cli/worker/process-pool.js';
import { ManualClock } from '../../doubles/manual-clock.js';

class FakeProcess extends EventEmitter implements PoolProcess {
  pid = 1;
  connected = true;
  readonly told: unknown[] = [];
  readonly signals: unknown[] = [];
  readonly send = (message: unknown) => this.told.push(message) > 0;
  readonly kill = (signal?: unknown) => this.signals.push(signal) > 0;
  readonly index: number;

  constructor(index: number) {
    super();
    this.index = index;
  }

  exit(code: number | null, signal: NodeJS.Signals | null = null) {
    this.connected = false;
    this.emit('exit', code, signal);
  }
}

let clock: ManualClock;
let started: FakeProcess[];
let stop: AbortController;
let logged: Record<string, unknown>[];
let pool: ProcessPool;
let startError: Error | undefined;
let end: PoolEnd | undefined;

beforeEach(() => {
  clock = new ManualClock();
  [started, logged, end, startError] = [[], [], undefined, undefined];
  stop = new AbortController();
});
afterEach(async () => {
  stop.abort();
  for (const child of started) child.exit(0);
  await clock.advance(0);
});

async function run(count: number) {
  const logger: Logger = { ...silentLogger, error: (fields) => void logged.push(fields as Record<string, unknown>) };
  const start = (index: number): FakeProcess => {
    if (startError !== undefined) throw startError;
    started.push(new FakeProcess(index));
    return last();
  };
  pool = new ProcessPool(count, start, clock, logger);
  void pool.run(stop.signal).then((found) => (end = found));
  await clock.advance(0);
}

const last = (): FakeProcess => {
  const child = started.at(-1);
  if (child === undefined) throw new Error('nothing was started');
  return child;
};
const TEN_MINUTES_MS = 600_000;
const told = (): unknown[] => started.flatMap((child) => child.told);

it('processes that end by themselves are started again, after a pause that grows as long as they end soon', async () => {
  await run(2);
  expect(started.map(({ index }) => index)).toEqual([0, 1]);
  for (const seconds of [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]) {
    const count = started.length;
    last().exit(null, 'SIGKILL');
    await clock.advance(seconds * 1_000 - 1);
    expect(started).toHaveLength(count);
    await clock.advance(1);
    expect(last().index).toBe(1);
    const restart = { process: 2, code: null, signal: 'SIGKILL', restartInMs: seconds * 1_000 };
    expect(logged.at(-1)).toMatchObject(restart);
  }
  await clock.advance(TEN_MINUTES_MS);
  last().exit(1);
  await clock.advance(1_000);
  expect(logged.at(-1)).toMatchObject({ restartInMs: 1_000 });
  expect(started).toHaveLength(14);
});

it('processes that end by themselves also one that cannot be started, one that someone stopped in good order', async () => {
  await run(2);
  last().emit('error', new Error('spawn ENOMEM'));
  await clock.advance(1_000);
  expect(logged).toMatchObject([{ error: 'spawn ENOMEM' }]);
  last().exit(0);
  await clock.advance(2_000);
  startError = new Error('spawn EAGAIN');
  last().exit(null, 'SIGKILL');
  await clock.advance(4_000);
  expect(logged.at(-1)).toMatchObject({ process: 2, error: 'spawn EAGAIN', restartInMs: 8_000 });
  startError = undefined;
  await clock.advance(8_000);
  expect(started.map(({ index }) => index)).toEqual([0, 1, 1, 1, 1]);
  // The other works on.
  expect([end, told()]).toEqual([undefined, []]);
});

it('processes that end by themselves with wrong settings at the first start end all; later they are tried again', async () => {
  await run(2);
  const [first, second] = started;
  first?.exit(1);
  await clock.advance(1_000);
  last().exit(2);
  await clock.advance(0);
  expect([end, second?.told]).toEqual([undefined, []]);
  second?.exit(2);
  await clock.advance(0);
  expect([end, started.length]).toEqual(['usage', 3]);
});

it('a pool that is to stop tells every process by a message, and waits for all', async () => {
  await run(2);
  stop.abort();
  expect(told()).toEqual(['stop', 'stop']);
  started[0]?.exit(0);
  await clock.advance(100_000);
  expect([end, started.flatMap(({ signals }) => signals)]).toEqual([undefined, []]);
  started[1]?.exit(0);
  await clock.advance(0);
  expect([end, started.length]).toEqual(['done', 2]);
});

it('a pool that is to stop starts nothing more, also where one waits to be started again', async () => {
  await run(1);
  last().exit(1);
  await clock.advance(500);
  stop.abort();
  await clock.advance(60_000);
  expect([end, started.length]).toEqual(['done', 1]);
});

it('hands a signal on to the processes that run', async () => {
  await run(2);
  started[0]?.exit(1);
  await clock.advance(0);
  pool.signal('SIGHUP');
  expect(started.map(({ signals }) => signals)).toEqual([[], ['SIGHUP']]);
});

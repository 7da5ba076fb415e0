import { createServer } from 'node:net';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { until } from '../../support/until.js';
import { openSharedAccounts, type SharedAccounts } from '../../worker/support/shared-accounts.js';
import { endAllWorkers, type WorkerProcess } from '../../worker/support/worker-process.js';

/** `payouts worker --processes` with real processes. */
const ACCOUNTS = 6;

let shared: SharedAccounts;
beforeEach(async () => {
  shared = await openSharedAccounts(ACCOUNTS);
});
afterEach(async () => {
  await endAllWorkers();
  // Children whose parent was killed end by themselves.
  for (const pid of seen) await until(`process ${pid} is gone`, () => !isRunning(pid));
  await shared.close();
});

const seen = new Set<number>();

function start(environment: Readonly<Record<string, string>> = {}, processes = '3'): WorkerProcess {
  return shared.startWorker({
    args: ['--processes', processes],
    environment: { ...shared.processOptions.environment, ...environment },
  });
}

const isRunning = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** The first of so many in a row that are free. What the system gives out is above them, so nobody takes one meanwhile. */
async function findFreePorts(count: number): Promise<number> {
  for (;;) {
    const first = 20_000 + Math.floor(Math.random() * 10_000);
    const ports = Array.from({ length: count }, (_, index) => first + index);
    if ((await Promise.all(ports.map(isFree))).every(Boolean)) return first;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const isListening = await new Promise<boolean>((resolve) => {
    server.once('error', () => {
      resolve(false);
    });
    server.listen(port, '127.0.0.1', () => {
      resolve(true);
    });
  });
  if (isListening) await new Promise((resolve) => server.close(resolve));
  return isListening;
}

/** The processes that hold leases, as soon as each of three holds two, without the one that died. */
async function untilShared(dead?: number): Promise<number[]> {
  let counts = new Map<number, number>();
  await until(
    () => `each holds two: ${JSON.stringify([...counts])}`,
    async () => {
      const holders = [...(await shared.holders()).values()];
      counts = new Map(holders.map((pid) => [pid, holders.filter((other) => other === pid).length]));
      return counts.size === 3 && !counts.has(dead ?? 0) && [...counts.values()].every((count) => count === 2);
    },
  );
  for (const pid of counts.keys()) seen.add(pid);
  return [...counts.keys()];
}

it('shares the accounts out, starts another for one that dies', async () => {
  const port = await findFreePorts(3);
  await shared.enqueue(25);
  const parent = start({ HEALTH_PORT: String(port) });
  const [first = 0] = await untilShared();
  for (const each of [port, port + 1, port + 2]) {
    const readiness = (await (await fetch(`http://127.0.0.1:${each}/readyz`)).json()) as { ready: boolean };
    expect({ each, ready: readiness.ready }).toEqual({ each, ready: true });
  }
  process.kill(first, 'SIGKILL');
  await until('it says so', () => parent.log().includes('a worker process ended; starting another'));
  await until('another one is there', () => parent.log().split('started a worker process').length === 5);
  await untilShared(first);
  await until('all is settled', async () => shared.isSettled(25), 120_000);
  parent.kill('SIGTERM');
  expect(await parent.ended).toBe(0);
  expect([...seen].filter(isRunning)).toEqual([]);
  expect(await shared.holders()).toEqual(new Map());
  shared.expectPromisesKept();
}, 240_000);

it('leaves nothing unknown where the whole group gets the signal', async () => {
  await shared.enqueue(30);
  const parent = start();
  const pids = await untilShared();
  await until('each was sent for twice', () =>
    shared.platformIds.every((platformId) => shared.sandbox.arrivals(platformId).length > 1),
  );
  for (const pid of [...pids, parent.pid]) process.kill(pid, 'SIGTERM');
  expect(await parent.ended).toBe(0);
  expect(await shared.holders()).toEqual(new Map());
  for (const platformId of shared.platformIds)
    expect(await shared.redis.zcard(`{payouts:${platformId}}:state:sending`)).toBe(0);
  shared.expectPromisesKept();
}, 120_000);

it('its processes end in good order where it is killed', async () => {
  const parent = start();
  const pids = await untilShared();
  parent.kill('SIGKILL');
  await until('they are gone', () => pids.every((pid) => !isRunning(pid)));
  expect(await shared.holders()).toEqual(new Map());
}, 120_000);

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { InvalidConfigError, StoppedError } from '../../src/base/errors.js';
import type { AccountOptions } from '../../src/worker/payout-worker.js';
import { createPayoutWorker } from '../../src/control/payout-worker.js';
import { testRedisUrl } from '../support/account.js';
import { until } from '../support/until.js';
import { endAllWorkers, startWorkerProcess, type WorkerProcess } from './support/worker-process.js';

const NOBODY_THERE = 'redis://127.0.0.1:1';
const ACCOUNT: AccountOptions = { platformId: 4242, baseUrl: 'http://127.0.0.1:1', secretKey: 'k-start' };

let journalDir: string;
const ends: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  journalDir = await mkdtemp(join(tmpdir(), 'payouts-start-'));
});

afterEach(async () => {
  await endAllWorkers();
  for (const end of ends.splice(0)) await end();
  await rm(journalDir, { recursive: true, force: true });
});

/** A server that takes connections and never says a word, as a Redis that hangs. */
async function startSilentServer(): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => sockets.add(socket)).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  ends.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function startProcess(redisUrl: string): WorkerProcess {
  const { platformId, baseUrl, secretKey } = ACCOUNT;
  return startWorkerProcess({ redisUrl, platformId, baseUrl, secretKey, journalDir });
}

describe('a worker that waits for Redis at the start', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('ends with 0 on %s, and says so', async (signal) => {
    const worker = startProcess(NOBODY_THERE);
    await until('it waits', () => worker.log().includes('waiting for Redis'));
    worker.kill(signal);
    expect(await worker.ended).toBe(0);
    expect(worker.log()).toMatch(/"msg":"worker stopped"/);
    expect(worker.log()).not.toContain('should not have happened');
  });

  it('ends with 0 before the Redis that hangs has had its time', async () => {
    const worker = startProcess(await startSilentServer());
    await until('it has begun', () => worker.log().includes('serving /healthz'));
    worker.kill('SIGTERM');
    expect(await worker.ended).toBe(0);
  });

  it('ends with 2 if its health port is taken: nothing could probe it', async () => {
    const port = new URL(await startSilentServer()).port;
    const { platformId, baseUrl, secretKey } = ACCOUNT;
    const options = { redisUrl: NOBODY_THERE, platformId, baseUrl, secretKey, journalDir };
    const worker = startWorkerProcess({ ...options, environment: { HEALTH_PORT: port } });
    expect(await worker.ended).toBe(2);
    expect(worker.log()).toMatch(
      /^payouts: HEALTH_PORT: the health server cannot listen on .*EADDRINUSE.* a port of its own$/m,
    );
  });

  it('rejects with StoppedError inside an application, and leaves no journal', async () => {
    const stop = new AbortController();
    const starting = createPayoutWorker({ redisUrl: NOBODY_THERE, accounts: [ACCOUNT], journalDir }, stop.signal);
    setTimeout(() => {
      stop.abort();
    }, 300);
    await expect(starting).rejects.toThrow(StoppedError);
    expect(await readdir(journalDir)).toEqual([]);
  });
});

it('ends soon after SIGTERM if its journal folder cannot be made, and does not burn a core', async () => {
  const { platformId, baseUrl, secretKey } = ACCOUNT;
  const worker = startWorkerProcess({
    ...{ redisUrl: testRedisUrl(), platformId, baseUrl, secretKey, journalDir: '/proc/none/journal' },
    environment: { ALLOW_VOLATILE_REDIS: 'true', WITHDRAW_INTERVALL_MS: '98765' },
  });
  await until('it says why', () => worker.log().includes('nothing is sent without the send journal'));
  const before = await cpuTicks(worker.pid);
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  // A tick is 10 ms. Node's own recursive mkdir takes more than a core.
  expect((await cpuTicks(worker.pid)) - before).toBeLessThan(100);
  const stoppedAt = performance.now();
  worker.kill('SIGTERM');
  expect(await worker.ended).toBe(0);
  expect(performance.now() - stoppedAt).toBeLessThan(5_000);
  expect(worker.log()).toMatch(/"variable":"WITHDRAW_INTERVALL_MS".*did you mean WITHDRAW_INTERVAL_MS\?/);
  expect(worker.log()).not.toContain('98765');
});

async function cpuTicks(pid: number): Promise<number> {
  const [, fields = ''] = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ');
  const [user, system] = fields.split(' ').slice(11, 13).map(Number);
  return (user ?? 0) + (system ?? 0);
}

it('refuses the same platformId twice, before it does anything', async () => {
  const others = [{ ...ACCOUNT, platformId: 4243 }, ACCOUNT];
  const starting = createPayoutWorker({ redisUrl: testRedisUrl(), accounts: [ACCOUNT, ...others], journalDir });
  ends.push(async () => starting.then(async (worker) => worker.stop()).catch(() => undefined));
  await expect(starting).rejects.toThrow(InvalidConfigError);
  await expect(starting).rejects.toThrow('accounts: must name each platformId once (4242 is there twice)');
  expect(await readdir(journalDir)).toEqual([]);
});

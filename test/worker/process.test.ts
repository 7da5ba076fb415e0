import { execFileSync } from 'node:child_process';
import { open, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { readArchive } from '../../src/archive/read-archive.js';
import { findArchived } from '../../src/archive/find-archived.js';
import { systemClock } from '../../src/base/clock.js';
import { InvalidConfigError, StoppedError } from '../../src/base/errors.js';
import { createPayoutWorker } from '../../src/control/payout-worker.js';
import { connectLedger } from '../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../src/ledger/payout-ledger.js';
import { openLedger } from '../../src/queues/open-ledger.js';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { testRedisUrl } from '../support/account.js';
import { startCli } from '../support/cli.js';
import { until } from '../support/until.js';
import { closeAfterTest, folderOfTest } from './support/close-after-test.js';
import { expectPromisesKept, untilSettled, worldOfTest } from './support/payout-world.js';
import { readMetric } from './support/watched-worker.js';
import type { WorkerProcess } from './support/worker-process.js';

/** A `payouts worker` process beside what it pays: its start, its end, and what it shows of itself. */

const NOBODY_THERE = 'redis://127.0.0.1:1';
const ACCOUNT = { platformId: 4242, baseUrl: 'http://127.0.0.1:1', secretKey: 'k-start' };
const pause = async (ms: number): Promise<void> => systemClock.sleep(ms);

/** A server that takes connections and never says a word, as a Redis that hangs. */
async function startSilentServer(): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => sockets.add(socket)).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  closeAfterTest({
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise<unknown>((resolve) => server.close(resolve));
    },
  });
  return String((server.address() as AddressInfo).port);
}

async function stop(worker: WorkerProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  worker.kill(signal);
  expect(await worker.ended).toBe(0);
}

describe('a worker that waits for Redis at the start', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('ends with 0 on %s, and says so', async (signal) => {
    const worker = (await worldOfTest()).startWorker({ redisUrl: NOBODY_THERE });
    await worker.said('waiting for Redis');
    await stop(worker, signal);
    expect(worker.log()).toMatch(/"msg":"worker stopped"/);
    expect(worker.log()).not.toContain('should not have happened');
  });

  it('ends with 0 before the Redis that hangs has had its time', async () => {
    const redisUrl = `redis://127.0.0.1:${await startSilentServer()}`;
    const worker = (await worldOfTest()).startWorker({ redisUrl });
    await worker.said('serving /healthz');
    await stop(worker);
  });

  it('ends with 2 if its health port is taken: nothing could probe it', async () => {
    const environment = { HEALTH_PORT: await startSilentServer() };
    const worker = (await worldOfTest()).startWorker({ redisUrl: NOBODY_THERE, environment });
    expect(await worker.ended).toBe(2);
    const words = /^payouts: HEALTH_PORT: the health server cannot listen on .*EADDRINUSE.* a port of its own$/m;
    expect(worker.log()).toMatch(words);
  });
});

describe('a worker inside an application', () => {
  it('rejects with StoppedError where it was stopped while it waited for Redis, and leaves no journal', async () => {
    const journalDir = await folderOfTest('start');
    const options = { redisUrl: NOBODY_THERE, accounts: [ACCOUNT], journalDir };
    await expect(createPayoutWorker(options, AbortSignal.timeout(300))).rejects.toThrow(StoppedError);
    expect(await readdir(journalDir)).toEqual([]);
  });

  it('refuses the same platformId twice, before it does anything', async () => {
    const journalDir = await folderOfTest('start');
    const accounts = [ACCOUNT, { ...ACCOUNT, platformId: 4243 }, ACCOUNT];
    const starting = createPayoutWorker({ redisUrl: testRedisUrl(), accounts, journalDir });
    await expect(starting).rejects.toThrow(InvalidConfigError);
    await expect(starting).rejects.toThrow('accounts: must name each platformId once (4242 is there twice)');
    expect(await readdir(journalDir)).toEqual([]);
  });
});

describe('a worker that cannot write its journal', () => {
  it.each([
    ['a path through a file', /ENOTDIR/, async (disk: string) => writeFile(disk, '')],
    ['a read-only file system', /EPERM|EROFS|EACCES/, async (disk: string) => symlink('/sys', disk)],
  ])('because of %s says it, at little cost, and goes on once it can', async (_, reason, block) => {
    const world = await worldOfTest();
    const disk = join(world.dir, 'disk');
    await block(disk);
    const environment = { WITHDRAW_INTERVALL_MS: '98765' };
    const worker = world.startWorker({ journalDir: join(disk, 'journal'), environment });
    await until('it says it', async () => (await worker.get('/readyz')).body.includes('Journal disk'), 30_000);
    const { status, body } = await worker.get('/readyz');
    const account = { headline: 'Journal disk', role: 'refused', cause: 'disk', reason: expect.stringMatching(reason) };
    expect([status, JSON.parse(body)]).toMatchObject([503, { accounts: [account] }]);
    await worker.said('"msg":"nothing is sent without the send journal"');
    const before = await cpuTicks(worker.pid);
    await pause(2_000);
    // A tick is 10 ms. Node's own recursive mkdir takes more than a core.
    expect((await cpuTicks(worker.pid)) - before).toBeLessThan(100);
    expect(worker.log()).toMatch(/"variable":"WITHDRAW_INTERVALL_MS".*did you mean WITHDRAW_INTERVAL_MS\?/);
    expect(worker.log()).not.toContain('98765');
    await rm(disk);
    await until('it is ready', async () => (await worker.get('/readyz')).status === 200, 30_000);
    await stop(worker);
  });

  const cpuTicks = async (pid: number): Promise<number> => {
    const [, fields = ''] = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ');
    const [user = 0, system = 0] = fields.split(' ').slice(11, 13).map(Number);
    return user + system;
  };

  it.each([
    ['a folder that cannot be made', 'nothing is sent without', async () => Promise.resolve('/proc/none/journal')],
    [
      'a system call that does not return',
      'has not answered for',
      async (dir: string, platformId: number) => {
        // Nothing ever opens the other end.
        execFileSync('mkfifo', [join(dir, `${platformId}.journal`)]);
        return Promise.resolve(dir);
      },
    ],
  ])('because of %s ends within 5 s after SIGTERM', async (_, words, block) => {
    const world = await worldOfTest();
    const worker = world.startWorker({ journalDir: await block(world.dir, world.platformId) });
    await until('it says it', async () => (await worker.get('/readyz')).body.includes('Journal disk'), 30_000);
    expect(worker.log() + (await worker.get('/readyz')).body).toContain(words);
    const killedAt = performance.now();
    worker.kill('SIGTERM');
    expect(['SIGTERM', 0]).toContain(await worker.ended);
    expect(performance.now() - killedAt).toBeLessThan(5_000);
    expect(worker.log()).toContain('worker stopped');
  });
});

it.each(['to a full disk', 'to nobody who reads'])(
  'a worker whose log goes %s pays, and counts the lost lines',
  async (where) => {
    const full = await open('/dev/full', 'w');
    closeAfterTest({ close: async () => full.close() });
    const world = await worldOfTest();
    const port = String(await findFreePort());
    const payoutIds = await world.enqueue(2);
    const stderr = where === 'to a full disk' ? full.fd : 'broken-pipe';
    const worker = world.startWorker({ stderr, environment: { HEALTH_PORT: port } });
    await untilSettled(world, 2);
    for (const payoutId of payoutIds) {
      const paid = { state: 'completed', txhash: expect.stringMatching(/^[0-9a-f]{64}$/) };
      expect(await world.producer.get(payoutId)).toMatchObject(paid);
    }
    await expectPromisesKept(world);
    expect((await world.producer.stats()).sender?.epoch).toBe(1);
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(readMetric(metrics, 'payouts_log_failures_total')).toBeGreaterThan(0);
    await stop(worker);
  },
);

it('SIGUSR1 opens no inspector in any process, and a worker works on', async () => {
  const isInspectorOpen = async (): Promise<boolean> =>
    new Promise((resolve) => {
      const socket = connect(9_229, '127.0.0.1');
      socket.once('connect', () => {
        socket.destroy();
        resolve(true);
      });
      socket.once('error', () => {
        resolve(false);
      });
    });
  expect(await isInspectorOpen()).toBe(false);
  const world = await worldOfTest();
  const { platformId } = world;
  const environment = await world.writeAccounts([platformId, platformId + 1].map((id) => ({ platformId: id })));
  const worker = world.startWorker({ args: ['--processes', '2'], environment });
  const notify = { NOTIFY_URL: 'http://127.0.0.1:1', NOTIFY_SECRET: 'x'.repeat(32), NOTIFY_HEALTH_PORT: '0' };
  const others = [
    startCli(['dashboard'], { env: { ...world.env, DASHBOARD_PORT: '0' } }),
    startCli(['notify'], { env: { ...world.env, ...notify } }),
  ];
  for (const other of others) await other.waitForOutput(/Dashboard on|serving/);
  await until('both serve', () => worker.log().split('serving /healthz').length > 2);
  const pids = new Set([...worker.log().matchAll(/"pid":(\d+)/g)].map(([, pid]) => Number(pid)));
  expect(pids.size).toBe(3);
  for (const pid of pids) process.kill(pid, 'SIGUSR1');
  for (const other of others) other.kill('SIGUSR1');
  await pause(500);
  expect(await isInspectorOpen()).toBe(false);
  await world.enqueue(1);
  await untilSettled(world, 1);
  expect(worker.log()).not.toMatch(/debugger/i);
  for (const other of others) {
    other.kill('SIGTERM');
    expect((await other.result).stderr).not.toMatch(/debugger/i);
  }
  await stop(worker);
});

it('a worker that is killed between archive and removal loses nothing, and the next one shows nothing twice', async () => {
  const world = await worldOfTest();
  const { connection } = closeAfterTest(openLedger(world.account, 'reply')).ledger;
  const threeDaysAgo = { ...systemClock, wallNow: () => Date.now() - 3 * 24 * 3_600_000 };
  const ledger = new PayoutLedger(connectLedger(connection.redis, world.platformId, threeDaysAgo));
  const folder = { dir: join(world.dir, 'archive'), platformId: world.platformId };
  const environment = { PAYOUT_RETENTION_DAYS: '1', PAYOUT_ARCHIVE_DIR: folder.dir };
  await ledger.enqueue([aPayout('old-1'), aPayout('old-2')]);
  for (const payoutId of ['old-1', 'old-2']) await ledger.change({ payoutId, from: 'queued', to: 'cancelled' });
  const expectArchived = async (): Promise<void> => {
    const found: string[] = [];
    for await (const payouts of readArchive(folder, { onDamage: () => undefined })) {
      found.push(...payouts.map(({ payoutId }) => payoutId));
    }
    expect(found.sort()).toEqual(['old-1', 'old-2']);
  };
  const preload = `--import ${new URL('support/crash-after-keep.mjs', import.meta.url).href}`;
  const killed = world.startWorker({ environment: { ...environment, NODE_OPTIONS: preload } });
  expect(await killed.ended).toBe('SIGKILL');
  await expectArchived();
  const payout = await ledger.require('old-1');
  world.startWorker({ environment });
  await until('the payouts are removed', async () => (await ledger.get('old-1')) === undefined);
  await expectArchived();
  const found = await findArchived(folder, { payoutId: 'old-1' }, { onDamage: () => undefined });
  expect(found).toEqual({ ...payout, archivedIn: found?.archivedIn });
  expect(found?.archivedIn).toContain(payout.updatedAt.slice(0, 10));
});

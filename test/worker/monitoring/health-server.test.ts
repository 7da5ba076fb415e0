import { mkdir, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { InvalidConfigError } from '../../../src/base/errors.js';
import { startHealthServer } from '../../../src/worker/monitoring/health-server.js';
import { createWorkerMetrics } from '../../../src/worker/monitoring/worker-metrics.js';
import { startOwnRedis } from '../support/own-redis.js';
import { closeAfterTest, startWatchedWorker } from '../support/watched-worker.js';
import { until } from '../../support/until.js';

/** The first line of a journal that a later version wrote. */
const NEWER = JSON.stringify({ v: 99 });

/** @returns the status and the body of the response */
async function ask(url: string, init: RequestInit = {}): Promise<[status: number, body: unknown]> {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(5_000) });
  return [response.status, await response.json()];
}

describe('/readyz', () => {
  it('says standing by, sending, paused, and stopped', async () => {
    const { url, platformId, worker } = await startWatchedWorker();
    const readyz = async () => ask(`${url}/readyz`);
    const notPaused = { paused: false, pausedReason: null, stopped: [], warnings: [] };
    expect(await readyz()).toEqual([
      200,
      {
        ready: true,
        redis: 'up',
        accounts: [{ platformId, headline: 'Waiting for a sender', role: 'standby', ...notPaused }],
      },
    ]);
    await until('the lease', () => worker.accounts[0]?.status.role === 'sender');
    expect(await readyz()).toEqual([
      200,
      {
        ready: true,
        redis: 'up',
        accounts: [{ platformId, headline: 'Idle', role: 'sender', epoch: 1, ...notPaused }],
      },
    ]);
    await worker.accounts[0]?.ledger.pause('an operator', 'to check it');
    expect(await readyz()).toEqual([
      200,
      {
        ready: true,
        redis: 'up',
        accounts: [
          {
            platformId,
            headline: 'Paused',
            role: 'sender',
            epoch: 1,
            paused: true,
            pausedReason: 'to check it',
            stopped: [
              { problem: 'paused: to check it', command: `payouts resume --account ${platformId} --reason WHY` },
            ],
            warnings: [],
          },
        ],
      },
    ]);
    await worker.stop();
    expect(await readyz()).toMatchObject([503, { ready: false, accounts: [{ role: 'stopped' }] }]);
    expect(await ask(`${url}/healthz`)).toEqual([200, { alive: true }]);
  });

  it('is not ready where the ledger is refused, says why, and the metrics say so too', async () => {
    const { url, worker, metric } = await startWatchedWorker({
      prepare: async (journalDir, platformId) => {
        await mkdir(journalDir, { recursive: true });
        const line = JSON.stringify({ ledgerId: 'of-another-redis', epoch: 3, sends: 9 });
        await writeFile(join(journalDir, `${platformId}.journal`), `${line}\n`);
      },
    });
    await until('the role refused', () => worker.accounts[0]?.status.role === 'refused');
    expect(await ask(`${url}/readyz`)).toMatchObject([
      503,
      {
        ready: false,
        redis: 'up',
        accounts: [{ role: 'refused', reason: expect.stringContaining('another ledger') }],
      },
    ]);
    expect(await metric('payouts_sending_refused')).toBe(1);
    expect(await metric('payouts_lease_held')).toBe(0);
    expect(await metric('payouts_lease_epoch')).toBe(0);
  });

  it.each<[string, string | undefined, (path: string) => Promise<unknown>]>([
    ['its disk, if it cannot be read', 'disk', async (path) => mkdir(path)],
    ['nothing of the disk, if its format is newer', undefined, async (path) => writeFile(path, `${NEWER}\n`)],
  ])('says of a journal that stops the account: %s', async (_, cause, make) => {
    const { url, worker } = await startWatchedWorker({
      prepare: async (journalDir, platformId) => {
        await mkdir(journalDir, { recursive: true });
        await make(join(journalDir, `${platformId}.journal`));
      },
    });
    await until('the role refused', () => worker.accounts[0]?.status.role === 'refused');
    const { accounts } = (await (await fetch(`${url}/readyz`)).json()) as { accounts: { cause?: string }[] };
    expect(accounts[0]?.cause).toBe(cause);
  });

  it('is not ready while Redis is unavailable, and is again when it is back', async () => {
    const redis = closeAfterTest(await startOwnRedis());
    const { url } = await startWatchedWorker({ redisUrl: redis.url });
    expect(await ask(`${url}/readyz`)).toMatchObject([200, { redis: 'up' }]);
    await redis.stop();
    expect(await ask(`${url}/readyz`)).toMatchObject([
      503,
      {
        ready: false,
        redis: 'unavailable',
        accounts: [
          {
            headline: 'Redis does not respond',
            role: expect.any(String),
            paused: null,
            pausedReason: null,
          },
        ],
      },
    ]);
    expect(await ask(`${url}/healthz`)).toEqual([200, { alive: true }]);
    await redis.startAgain();
    await until('ready again', async () => (await ask(`${url}/readyz`))[0] === 200);
  });
});

describe('the health server', () => {
  const metrics = createWorkerMetrics({ version: '1.2.3' });
  const options = { host: '127.0.0.1', port: 0, metrics, accounts: () => [] };

  it('is alive but not ready while the worker is still being created', async () => {
    const health = closeAfterTest(await startHealthServer(options));
    expect(await ask(`${health.url}/healthz`)).toEqual([200, { alive: true }]);
    expect(await ask(`${health.url}/readyz`)).toEqual([503, { ready: false, redis: 'unavailable', accounts: [] }]);
    expect(await (await fetch(`${health.url}/metrics`)).text()).toContain('\npayouts_redis_up 0\n');
  });

  it('has no other pages and takes nothing', async () => {
    const health = closeAfterTest(await startHealthServer(options));
    expect((await ask(`${health.url}/`))[0]).toBe(404);
    expect((await ask(`${health.url}/healthz`, { method: 'POST', body: 'x' }))[0]).toBe(405);
    const head = await fetch(`${health.url}/healthz?from=probe`, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
  });

  it('closes although a client never ends its request, and twice', async () => {
    const health = await startHealthServer(options);
    const client = connect(health.port, '127.0.0.1');
    const ended = new Promise((resolve) => client.once('close', resolve).once('error', () => undefined));
    await new Promise<void>((resolve) =>
      client.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /', () => {
        resolve();
      }),
    );
    await new Promise((resolve) => client.once('data', resolve));
    const startedAt = performance.now();
    await health.close();
    await health.close();
    await ended;
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    await expect(fetch(`${health.url}/healthz`)).rejects.toThrow();
  });

  it('says where it cannot listen', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as AddressInfo;
    try {
      await expect(startHealthServer({ ...options, port })).rejects.toThrow(InvalidConfigError);
      await expect(startHealthServer({ ...options, port })).rejects.toThrow(`127.0.0.1 port ${port}`);
    } finally {
      other.close();
    }
  });
});

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { connectRedis, closeRedis, type RedisClient } from '../../src/base/redis.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { runCli, type CliResult } from '../support/cli.js';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { until } from '../support/until.js';
import { expectPromisesKept, openWorld, SECRET_KEY, untilSettled, type PayoutWorld } from './support/payout-world.js';
import type { WorkerProcess } from './support/worker-process.js';

/** Workers of a production gateway and of a staging gateway, by mistake on the same Redis. Nothing is signed. */

let world: PayoutWorld;
let staging: Sandbox;
let redis: RedisClient;

beforeEach(async () => {
  world = await openWorld({ sandbox: { settleAfterMs: 3_000 } });
  staging = await startSandbox({ accounts: [{ platformId: world.platformId, secretKey: SECRET_KEY }] });
  redis = connectRedis(world.redisUrl, 'commands');
});
afterEach(async () => {
  await closeRedis(redis);
  await world.close();
  await staging.close();
});

const production = (): string => `${world.sandbox.url}#${world.platformId}`;
const ofStaging = (): string => `${staging.url}#${world.platformId}`;
const ledgerKey = (): string => `{payouts:${world.platformId}}:ledger`;

/** Without PAYOUT_AUDIENCE: the gateway's URL and the account say which it is. */
function startProduction(): WorkerProcess {
  return world.startWorker({ environment: { PAYOUT_AUDIENCE: '' } });
}

interface Staging extends WorkerProcess {
  readonly readyz: () => Promise<{ status: number; body: string }>;
}

/** A worker with staging's GATEWAY_BASE_URL, and a journal of its own. */
async function startStaging(baseUrl = staging.url): Promise<Staging> {
  const port = String(await findFreePort());
  const worker = world.startWorker({
    baseUrl,
    journalDir: join(world.dir, 'staging'),
    environment: { PAYOUT_AUDIENCE: '', HEALTH_PORT: port },
  });
  return {
    ...worker,
    readyz: async () => {
      const response = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
      return { status: response?.status ?? 0, body: (await response?.text()) ?? '' };
    },
  };
}

async function refuses(worker: Staging, url = staging.url): Promise<void> {
  await until('it says that the ledger is of another gateway', async () => {
    const { status, body } = await worker.readyz();
    return status === 503 && body.includes(production()) && body.includes(`${url}#${world.platformId}`);
  });
}

const adoptGateway = async (...args: string[]): Promise<CliResult> =>
  runCli(['adopt-ledger', '--gateway', '--reason', 'moved', ...args], {
    env: {
      ...{ REDIS_URL: world.redisUrl, GATEWAY_PLATFORM_ID: String(world.platformId), GATEWAY_BASE_URL: staging.url },
      PAYOUT_AUDIENCE: '',
    },
  });

describe('a worker of another gateway', () => {
  it('pays nothing and polls nothing, says why, and leaves the account to the others', async () => {
    const first = startProduction();
    await world.enqueue(6);
    await until('some are sent', () => world.sandbox.stats().arrivals >= 2);
    // Another process than the sandbox notes whatever is asked.
    const asked: string[] = [];
    const gateway = createServer((request, response) => {
      asked.push(request.url ?? '');
      response.writeHead(500).end();
    });
    await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`;
    const other = await startStaging(url);
    await refuses(other, url);
    first.kill('SIGTERM');
    await first.ended;
    const arrivals = world.sandbox.stats().arrivals;
    // Longer than a lease, its quarantine and some polls.
    await delay(6_000);
    expect(asked).toEqual([]);
    expect(other.log().match(/the ledger is of another gateway/g)).toHaveLength(1);
    const { queued, sender, objections } = await world.producer.stats();
    expect({ queued, sender, objections }).toEqual({ queued: 6 - arrivals, sender: null, objections: [] });
    startProduction();
    await untilSettled(world, 6);
    await expectPromisesKept(world);
    expect(asked).toEqual([]);
    gateway.close();
  }, 90_000);

  it('sends once an operator has bound the ledger to it; the former one then refuses', async () => {
    const first = startProduction();
    await world.enqueue(1);
    await untilSettled(world, 1);
    const other = await startStaging();
    await refuses(other);
    expect(await adoptGateway()).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') });
    const adopted = await adoptGateway('--yes', '--json');
    expect(adopted).toMatchObject({ code: 0 });
    expect(JSON.parse(adopted.stdout)).toEqual({ audience: ofStaging(), before: production(), changed: true });
    await world.enqueue(2, 'Q');
    // The former sender finds out at its next begin, and gives the lease back.
    await untilSettled(world, 3);
    expect([world.sandbox.stats().arrivals, staging.stats().arrivals]).toEqual([1, 2]);
    expect(first.log()).toContain('the ledger is of another gateway');
    expect((await other.readyz()).status).toBe(200);
    expect((await adoptGateway()).stdout).toContain('already');
  }, 90_000);

  it('is the one that a ledger of an earlier version is bound to, where it sends first', async () => {
    await redis.hset(ledgerKey(), { id: 'former', format: '2' });
    startProduction();
    await world.enqueue(1);
    await untilSettled(world, 1);
    expect(await redis.hget(ledgerKey(), 'audience')).toBe(production());
  }, 60_000);
});

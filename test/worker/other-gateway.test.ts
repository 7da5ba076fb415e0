import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { openLedger } from '../../src/queues/open-ledger.js';
import { runCli, type CliResult } from '../support/cli.js';
import { until } from '../support/until.js';
import { closeAfterTest } from './support/close-after-test.js';
import { expectPromisesKept, untilSent, untilSettled, worldOfTest, type PayoutWorld } from './support/payout-world.js';
import type { WorkerProcess } from './support/worker-process.js';

/** Workers of a production gateway and of a staging gateway, by mistake on the same Redis. Nothing is signed. */
describe('a worker of another gateway', () => {
  let world: PayoutWorld;
  beforeEach(async () => {
    world = await worldOfTest({ sandbox: { settleAfterMs: 3_000 } });
  });

  const audienceOf = (url: string): string => `${url}#${world.platformId}`;
  // Without PAYOUT_AUDIENCE: the gateway's URL and the account say which it is.
  const environment = { PAYOUT_AUDIENCE: '' };

  /** A worker with staging's GATEWAY_BASE_URL, and a journal of its own. It refuses. */
  async function startStaging(baseUrl: string): Promise<WorkerProcess> {
    const worker = world.startWorker({ baseUrl, journalDir: join(world.dir, 'staging'), environment });
    await until('it says that the ledger is of another gateway', async () => {
      const { status, body } = await worker.get('/readyz');
      return status === 503 && [world.sandbox.url, baseUrl].every((url) => body.includes(audienceOf(url)));
    });
    return worker;
  }

  it('pays nothing and polls nothing, says why, and leaves the account to the others', async () => {
    const first = world.startWorker({ environment });
    await world.enqueue(6);
    await untilSent(world, 2);
    // Another process than the sandbox notes whatever is asked.
    const asked: string[] = [];
    const gateway = createServer((request, response) => {
      asked.push(request.url ?? '');
      response.writeHead(500).end();
    });
    await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve));
    const other = await startStaging(`http://127.0.0.1:${(gateway.address() as AddressInfo).port}`);
    first.kill('SIGTERM');
    await first.ended;
    const { arrivals } = world.sandbox.stats();
    // Longer than a lease, its quarantine and some polls.
    await delay(6_000);
    const { queued, sender, objections } = await world.producer.stats();
    expect({ queued, sender, objections }).toEqual({ queued: 6 - arrivals, sender: null, objections: [] });
    world.startWorker({ environment });
    await untilSettled(world, 6);
    await expectPromisesKept(world);
    expect(asked).toEqual([]);
    gateway.close();
  });

  it('sends once an operator has bound the ledger to it; the former one then refuses', async () => {
    const staging = (await worldOfTest({ platformIds: [world.platformId] })).sandbox;
    const ledger = closeAfterTest(openLedger(world.account, 'reply')).ledger.connection;
    const first = world.startWorker({ environment });
    await world.enqueue(1);
    await untilSettled(world, 1);
    const before = audienceOf(world.sandbox.url);
    expect(await ledger.redis.hget(ledger.keys.ledger, 'audience')).toBe(before);
    const other = await startStaging(staging.url);
    const adopt = async (...args: string[]): Promise<CliResult> =>
      runCli(['adopt-ledger', '--gateway', '--reason', 'moved', ...args], {
        env: { ...world.env, ...environment, GATEWAY_BASE_URL: staging.url },
      });
    const adopted = await adopt('--yes', '--json');
    expect(adopted).toMatchObject({ code: 0 });
    expect(JSON.parse(adopted.stdout)).toEqual({ audience: audienceOf(staging.url), before, changed: true });
    await world.enqueue(2, 'Q');
    // The former sender finds out at its next begin, and gives the lease back.
    await untilSettled(world, 3);
    expect([world.sandbox.stats().arrivals, staging.stats().arrivals]).toEqual([1, 2]);
    expect(first.log()).toContain('the ledger is of another gateway');
    expect((await other.get('/readyz')).status).toBe(200);
  }, 90_000);
});

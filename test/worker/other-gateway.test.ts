import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { openLedger } from '../../src/queues/open-ledger.js';
import { runCli } from '../support/cli.js';
import { until } from '../support/until.js';
import { closeAfterTest } from './support/close-after-test.js';
import { untilLeased, untilSent, untilSettled, worldOfTest, type PayoutWorld } from './support/payout-world.js';
import type { WorkerProcess } from './support/worker-process.js';

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

  it('pays nothing until an operator has bound the ledger to it; the former one then refuses', async () => {
    const staging = (await worldOfTest({ platformIds: [world.platformId] })).sandbox;
    const ledger = closeAfterTest(openLedger(world.account, 'reply')).ledger.connection;
    const first = world.startWorker({ environment });
    await world.enqueue(6);
    await untilSent(world, 1);
    const before = audienceOf(world.sandbox.url);
    expect(await ledger.redis.hget(ledger.keys.ledger, 'audience')).toBe(before);
    const other = await startStaging(staging.url);
    first.kill('SIGTERM');
    await first.ended;
    // Longer than a lease, its quarantine and some polls.
    await delay(6_000);
    const { arrivals } = world.sandbox.stats();
    const { queued, sender, objections } = await world.producer.stats();
    expect({ queued, sender, objections }).toEqual({ queued: 6 - arrivals, sender: null, objections: [] });
    const second = world.startWorker({ environment });
    await untilLeased(second);
    await untilSettled(world, 6);
    expect(staging.stats().arrivals).toBe(0);
    const env = { ...world.env, ...environment, GATEWAY_BASE_URL: staging.url };
    const adopted = await runCli(['adopt-ledger', '--gateway', '--reason', 'moved', '--yes', '--json'], { env });
    expect(JSON.parse(adopted.stdout)).toEqual({ audience: audienceOf(staging.url), before, changed: true });
    await world.enqueue(2, 'Q');
    // The former sender finds out at its next begin, and gives the lease back.
    await untilSettled(world, 8);
    expect([world.sandbox.stats().arrivals, staging.stats().arrivals]).toEqual([6, 2]);
    await second.said('the ledger is of another gateway');
    expect((await other.get('/readyz')).status).toBe(200);
  }, 90_000);
});

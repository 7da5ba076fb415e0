import { setTimeout as delay } from 'node:timers/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { endAllWorkers, type WorkerProcess } from './support/worker-process.js';
import { expectPromisesKept, openWorld, untilSent, untilSettled, type PayoutWorld } from './support/payout-world.js';
import { runCli } from '../support/cli.js';
import { until } from '../support/until.js';

let world: PayoutWorld;
let redis: Redis | undefined;
afterEach(async () => {
  await redis?.quit();
  redis = undefined;
  await endAllWorkers();
  await world.close();
});

const JITTER = { latencyBeforeMs: { min: 0, max: 300 }, latencyAfterMs: { min: 20, max: 80 } };

/** The worker process that holds the lease. */
async function findSender(workers: readonly WorkerProcess[]): Promise<WorkerProcess> {
  let found: WorkerProcess | undefined;
  await until('one of the workers is the sender', async () => {
    const { sender } = await world.producer.stats();
    found = workers.find(({ pid }) => sender?.owner.includes(`:${pid}:`));
    return found !== undefined;
  });
  return found as WorkerProcess;
}

describe('the first worker of an account', () => {
  it('sends at once where someone states that the account is new, also while it waits already', async () => {
    const LONG = { LEASE_MS: '15000', TAKEOVER_QUARANTINE_MS: '5000' };
    world = await openWorld({ sandbox: JITTER });
    await world.enqueue(2);
    const worker = world.startWorker({ environment: LONG });
    const { redisUrl, platformId } = world;
    redis = new Redis(redisUrl);
    await until('the worker reports', async () => (await redis?.hlen(`{payouts:${platformId}}:workers`)) === 1);
    expect(world.sandbox.arrivals()).toEqual([]);
    const env = {
      REDIS_URL: redisUrl,
      GATEWAY_PLATFORM_ID: String(platformId),
      SEND_JOURNAL_DIR: join(world.dir, 'journal'),
    };
    const statedAt = performance.now();
    const { code, stdout } = await runCli(['new-account', '--yes', '--reason', 'first deployment'], { env });
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^Noted: account \d+ is new/) as unknown,
    });
    await untilSent(world, 1);
    expect(performance.now() - statedAt).toBeLessThan(15_000);
    expect(worker.log()).toContain('acquired sender lease');
    expect(await runCli(['new-account', '--yes', '--reason', 'once more'], { env })).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/is not new: the send journal in .* has [12] sends?/) as unknown,
    });
    await untilSettled(world, 2);
    await expectPromisesKept(world);
  }, 60_000);

  it('shows for how long it sends nothing yet', async () => {
    world = await openWorld({ sandbox: JITTER });
    await world.enqueue(1);
    const worker = world.startWorker({ environment: { LEASE_MS: '1000', TAKEOVER_QUARANTINE_MS: '20000' } });
    await until('it has the lease', () => worker.log().includes('acquired sender lease'));
    const env = { REDIS_URL: world.redisUrl, GATEWAY_PLATFORM_ID: String(world.platformId) };
    await until('stats count it down', async () =>
      /: First send in \d+ s/.test((await runCli(['stats'], { env })).stdout),
    );
  }, 60_000);
});

describe('several workers for one account', () => {
  it('send one at a time, and another takes over from one that was killed', async () => {
    world = await openWorld({ sandbox: JITTER });
    await world.enqueue(8);
    const workers = [world.startWorker(), world.startWorker(), world.startWorker()];
    await untilSent(world, 3);
    const first = await findSender(workers);
    first.kill('SIGKILL');
    await first.ended;
    await untilSettled(world, 8);
    expect((await world.producer.stats()).unknown).toBeLessThanOrEqual(1);
    expect((await world.producer.stats()).sender?.epoch).toBeGreaterThanOrEqual(2);
    await expectPromisesKept(world);
  }, 120_000);

  it('one that was stopped for longer than the lease sends nothing more', async () => {
    world = await openWorld({ sandbox: JITTER });
    await world.enqueue(8);
    const workers = [world.startWorker(), world.startWorker()];
    await untilSent(world, 2);
    const stopped = await findSender(workers);
    stopped.kill('SIGSTOP');
    await until('the other one is the sender', async () => {
      const { sender } = await world.producer.stats();
      return sender !== null && !sender.owner.includes(`:${stopped.pid}:`);
    });
    await untilSent(world, 4);
    stopped.kill('SIGCONT');
    await untilSettled(world, 8);
    await until('the continued one knows that it lost the lease', () =>
      stopped.log().includes('another process has taken the lease'),
    );
    await expectPromisesKept(world);
  }, 120_000);

  it('hand over within seconds when one ends in good order', async () => {
    world = await openWorld({ sandbox: JITTER });
    await world.enqueue(5);
    const workers = [world.startWorker(), world.startWorker()];
    await untilSent(world, 2);
    const first = await findSender(workers);
    first.kill('SIGTERM');
    expect(await first.ended).toBe(0);
    await until('all are completed', async () => (await world.producer.stats()).completed === 5);
    await expectPromisesKept(world);
  }, 60_000);
});

describe('SIGTERM', () => {
  it('waits for the response under way, begins no new send, and exits 0', async () => {
    world = await openWorld({ sandbox: { latencyAfterMs: 1_500 } });
    await world.enqueue(3);
    const worker = world.startWorker();
    await untilSent(world, 1);
    worker.kill('SIGTERM');
    expect(await worker.ended).toBe(0);
    expect(world.sandbox.stats().arrivals).toBe(1);
    expect(await world.producer.stats()).toMatchObject({ queued: 2, in_progress: 1, unknown: 0, sender: null });
  }, 60_000);

  it('a second signal ends at once, and what was under way becomes unknown', async () => {
    world = await openWorld({ sandbox: { latencyAfterMs: 20_000 } });
    await world.enqueue(1);
    const worker = world.startWorker();
    await untilSent(world, 1);
    worker.kill('SIGTERM');
    await delay(300);
    worker.kill('SIGTERM');
    expect(await worker.ended).toBe('SIGTERM');
    world.startWorker();
    await until('it is unknown', async () => (await world.producer.stats()).unknown === 1);
    expect(world.sandbox.stats().arrivals).toBe(1);
  }, 60_000);
});

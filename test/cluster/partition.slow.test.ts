import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { startSplitSentinel, type SplitRedis } from '../support/split-sentinel.js';
import { expectPromisesKept, openWorld, untilSent, type PayoutWorld } from '../worker/support/payout-world.js';
import { until } from '../support/until.js';
import { endAllWorkers, type WorkerProcess } from '../worker/support/worker-process.js';

const PAYOUTS = 16;
/** Longer than the cut-off master remembers its replicas. */
const STAYS_CUT_MS = 8_000;

let redis: SplitRedis;
let world: PayoutWorld;

afterEach(async () => {
  await endAllWorkers();
  await world.close();
  await redis.close();
});

async function untilSender({ pid, log }: WorkerProcess): Promise<void> {
  await until(`${pid} is the sender:\n${log()}`, async () => {
    const stats = await world.producer.stats().catch(() => undefined);
    return stats?.sender?.owner.includes(`:${pid}:`) ?? false;
  });
}

describe('a cut between a master with its worker and the rest', () => {
  it('has one sender at a time, and pays nothing twice', async () => {
    redis = await startSplitSentinel();
    world = await openWorld({
      redis: { url: redis.otherSideUrl },
      sandbox: { minGapMs: 1, latencyBeforeMs: { min: 0, max: 200 } },
    });
    await world.enqueue(PAYOUTS);
    const left = world.startWorker({ redisUrl: redis.masterSideUrl, journalDir: join(world.dir, 'left') });
    await untilSent(world, 3);
    const other = world.startWorker({ journalDir: join(world.dir, 'other') });
    await until('the other stands by', () => /worker started/.test(other.log()));
    await untilSent(world, 4);

    redis.cut();
    await untilSender(other);
    const { arrivals } = world.sandbox.stats();
    await untilSent(world, arrivals + 2);
    await delay(STAYS_CUT_MS);
    redis.heal();

    // The gateway of this test blocks nobody, so that its book shows every payment that was asked for.
    const { duplicatePayments, smallestGapMs } = world.sandbox.stats();
    expect(duplicatePayments).toEqual([]);
    expect(smallestGapMs).toBeGreaterThanOrEqual(1_000);
    await until('every payout is settled', async () => {
      const stats = await world.producer.stats().catch(() => undefined);
      return stats !== undefined && stats.completed + stats.unknown === PAYOUTS;
    }).catch((error: unknown) => {
      throw new Error(`${String(error)}\nleft:\n${left.log()}\nother:\n${other.log()}`);
    });
    await expectPromisesKept(world);
    expect(left.log()).toMatch(/replicas .*acknowledge/);
    for (const worker of [left, other]) {
      worker.kill('SIGTERM');
      expect(await worker.ended).toBe(0);
    }
  }, 150_000);
});

import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { startSplitSentinel } from '../support/redis-sentinel.js';
import { closeAfterTest } from '../worker/support/close-after-test.js';
import { expectPromisesKept, untilSent, worldOfTest } from '../worker/support/payout-world.js';
import { until } from '../support/until.js';

const PAYOUTS = 16;
/** Longer than the cut-off master remembers its replicas. */
const STAYS_CUT_MS = 8_000;

describe('a cut between a master with its worker and the rest', () => {
  it('has one sender at a time, and pays nothing twice', async () => {
    const redis = closeAfterTest(await startSplitSentinel());
    const world = await worldOfTest({
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
    const readStats = async () => world.producer.stats().catch(() => undefined);
    await until('the other is the sender', async () =>
      Boolean((await readStats())?.sender?.owner.includes(`:${other.pid}:`)),
    );
    const { arrivals } = world.sandbox.stats();
    await untilSent(world, arrivals + 2);
    await delay(STAYS_CUT_MS);
    redis.heal();

    // The gateway of this test blocks nobody, so that its book shows every payment that was asked for.
    const { duplicatePayments, smallestGapMs } = world.sandbox.stats();
    expect(duplicatePayments).toEqual([]);
    expect(smallestGapMs).toBeGreaterThanOrEqual(1_000);
    await until('every payout is settled', async () => {
      const stats = await readStats();
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

import { jest } from '@jest/globals';
import { Worker } from 'bullmq';
import { systemClock, type Clock } from '../../../src/base/clock.js';
import { silentLogger } from '../../../src/base/logger.js';
import { closeRedis, connectRedis } from '../../../src/base/redis.js';
import { completeSettings } from '../../../src/base/settings.js';
import type { GatewayClient } from '../../../src/gateway/v1/client.js';
import { JobWorker } from '../../../src/worker/job-worker.js';
import { noObserver } from '../../../src/worker/sender/worker-observer.js';
import { StatusJobs } from '../../../src/worker/status-jobs.js';
import { openQueueRig, type QueueRig } from '../../queues/support/queue-rig.js';
import { testRedisUrl } from '../../support/account.js';
import { afterTest, closeAfterTest } from './close-after-test.js';
import { comparePayment } from '../../../src/gateway/compare-payment.js';

export const queuesOfTest = () => closeAfterTest(openQueueRig());

function connect() {
  const redis = connectRedis(testRedisUrl(), 'queue');
  afterTest(async () => closeRedis(redis));
  return redis;
}

/** A clock that runs faster than the machine's. */
export const fastClock = (speed: number): Clock => ({
  ...systemClock,
  now: () => systemClock.now() * speed,
  sleep: async (ms, signal) => systemClock.sleep(ms / speed, signal),
});

const quiet = { clock: systemClock, observer: noObserver, logger: silentLogger };

export class JobRig {
  readonly rig = queuesOfTest();
  readonly ran: string[] = [];
  readonly running = new Set<string>();
  mostRunning = 0;
  /** Jobs of these payouts end only when they are let go. */
  held = new Set<string>();
  readonly replaced: string[] = [];
  readonly #redis = connect();

  start(limits: { concurrency: number; ratePerSecond?: number }, clock: Clock = systemClock) {
    const { account, queues } = this.rig;
    const observer = { ...noObserver, jobWorkerReplaced: (queue: string) => void this.replaced.push(queue) };
    const runtime = { ...quiet, clock, observer, queueRedis: this.#redis, ledger: account.ledger, queues };
    const worker = new JobWorker(
      runtime,
      'withdraw',
      async ({ data: { payoutId } }) => {
        this.running.add(payoutId);
        this.mostRunning = Math.max(this.mostRunning, this.running.size);
        do await systemClock.sleep(20);
        while (this.held.has(payoutId));
        this.running.delete(payoutId);
        this.ran.push(payoutId);
        return 'done';
      },
      { ratePerSecond: 1_000, ...limits },
    );
    afterTest(async () => {
      jest.restoreAllMocks();
      this.held.clear();
      await worker.close();
    });
    return worker;
  }
}

type Internals = Record<'moveToActive', (this: Worker, ...args: unknown[]) => Promise<unknown>>;

export const internals = Worker.prototype as unknown as Internals;

interface Polls {
  readonly pollMinMs: number;
  readonly pollMaxMs: number;
  readonly pollRate: number;
}

export function startPolls(
  { account: { ledger }, queues }: QueueRig,
  polls: Polls,
  getStatus: GatewayClient['getStatus'],
): StatusJobs {
  const jobs = new StatusJobs({
    ...{ ...quiet, queueRedis: connect(), queues, ledger, polledLedger: ledger, audience: 'test', control: undefined },
    gateway: { getStatus, comparePayment } as unknown as GatewayClient,
    settings: completeSettings(polls),
  });
  return closeAfterTest(jobs);
}

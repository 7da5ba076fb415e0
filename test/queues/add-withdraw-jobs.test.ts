import { describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/clock.js';
import { silentLogger } from '../../src/logger.js';
import type { AccountAccess } from '../../src/queues/open-account.js';
import { addWithdrawJobs } from '../../src/queues/add-withdraw-jobs.js';

describe('addWithdrawJobs', () => {
  it('waits no longer than 5 s for a queue that hangs, and says so in the log', async () => {
    const sleeps: number[] = [];
    const warnings: object[] = [];
    const account = {
      queues: { addWithdrawJobs: async () => new Promise(() => undefined) },
      clock: {
        ...systemClock,
        sleep: async (ms: number) => {
          sleeps.push(ms);
          return Promise.resolve();
        },
      },
      logger: { ...silentLogger, warn: (fields: object) => void warnings.push(fields) },
    } as unknown as AccountAccess;
    const payout = { payoutId: 'p-1', paymentId: 6, amount: '1', addressTo: 'T' };
    await addWithdrawJobs(account, { fresh: [payout], waiting: [] });
    expect(sleeps).toEqual([5_000]);
    expect(warnings).toEqual([{ payoutId: 'p-1', payouts: 1, reason: 'Redis did not answer within 5000 ms' }]);
  });
});

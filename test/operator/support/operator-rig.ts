import type { PayoutState } from '../../../src/ledger/states.js';
import { PayoutOperator } from '../../../src/control/payout-operator.js';
import { PayoutQueues } from '../../../src/queues/payout-queues.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { openTestAccount } from '../../ledger/support/test-account.js';
import { testRedisUrl } from '../../support/account.js';

export const ANN = { by: 'ann', reason: 'ticket 812' };

/** How a payout comes into a state. */
const WAYS = {
  queued: [],
  rejected: ['sending', 'rejected'],
  unknown: ['sending', 'unknown'],
  in_progress: ['sending', 'in_progress'],
} as const satisfies Partial<Record<PayoutState, readonly PayoutState[]>>;

/** An account of the test's own, and an operator without a gateway. */
export type OperatorRig = Awaited<ReturnType<typeof openOperatorRig>>;

export async function openOperatorRig() {
  const account = openTestAccount();
  const { redis, connection, ledger } = account;
  const { keys, platformId } = connection;
  const operator = new PayoutOperator({ platformId, redisUrl: testRedisUrl() });
  const queues = new PayoutQueues(connection);
  return Promise.resolve({
    account,
    operator,
    /** Enqueues a payout and brings it into a state, without a job. */
    async bring(payoutId: string, state: keyof typeof WAYS) {
      await ledger.enqueue([aPayout(payoutId)]);
      let from: PayoutState = 'queued';
      for (const to of WAYS[state]) {
        await ledger.change({ payoutId, from, to });
        from = to;
      }
      await redis.del(keys.outbox);
    },
    /** Has a journal object to the ledger. */
    object: async () =>
      new RedisSenderLedger(connection, 'reply').object({
        ...{ journalId: 'j-two', kind: 'ledger', reason: 'It forgot a send.', host: 'h', dir: '/j', sends: 7, at: 1 },
      }),
    withdrawJobs: async () => (await queues.withdraw.getWaiting()).map(({ id }) => id),
    statusJobs: async () => (await queues.transactionstatus.getJobs(['wait', 'delayed'])).map(({ id }) => id),
    outbox: async () => redis.zrange(keys.outbox, '0', '-1'),
    async close() {
      await operator.close();
      await queues.close();
      await account.close();
    },
  });
}

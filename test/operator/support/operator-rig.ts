import type { PayoutState } from '../../../src/ledger/states.js';
import { PayoutOperator } from '../../../src/control/payout-operator.js';
import { PayoutQueues } from '../../../src/queues/payout-queues.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { openTestAccount, type TestAccount } from '../../ledger/support/test-account.js';
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
export interface OperatorRig {
  readonly account: TestAccount;
  readonly operator: PayoutOperator;
  /** Enqueues a payout and brings it into a state, without a job. */
  bring(payoutId: string, state: keyof typeof WAYS): Promise<void>;
  /** Has a journal object to the ledger. */
  object(): Promise<void>;
  withdrawJobs(): Promise<(string | undefined)[]>;
  statusJobs(): Promise<(string | undefined)[]>;
  outbox(): Promise<string[]>;
  close(): Promise<void>;
}

export async function openOperatorRig(): Promise<OperatorRig> {
  const account = openTestAccount();
  const { redis, connection, ledger } = account;
  const { keys, platformId } = connection;
  const operator = new PayoutOperator({ platformId, redisUrl: testRedisUrl() });
  const queues = new PayoutQueues(connection);
  return Promise.resolve({
    account,
    operator,
    async bring(payoutId, state) {
      await ledger.enqueue([aPayout(payoutId)]);
      let from: PayoutState = 'queued';
      for (const to of WAYS[state]) {
        await ledger.change({ payoutId, from, to });
        from = to;
      }
      await redis.del(keys.outbox);
    },
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

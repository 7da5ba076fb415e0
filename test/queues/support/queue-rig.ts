import { afterEach, beforeEach } from '@jest/globals';
import type { Queue } from 'bullmq';
import type { ValidPayout } from '../../../src/ledger/payout.js';
import { silentLogger, type Logger } from '../../../src/base/logger.js';
import { OutboxRelay } from '../../../src/queues/outbox-relay.js';
import { JobReconciler } from '../../../src/queues/job-reconciler.js';
import { PayoutQueues } from '../../../src/queues/payout-queues.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { openTestAccount, type TestAccount } from '../../ledger/support/test-account.js';
import { account, useAccount } from '../../ledger/support/use-account.js';

export const STRUCTURES = ['active', 'wait', 'paused', 'prioritized', 'delayed'] as const;

export type QueueRig = ReturnType<typeof openQueueRig>;

/** The rig of the running test, for `account`, in a file that called `useRig`. */
export let rig: QueueRig;
export let queues: PayoutQueues;

export function useRig() {
  afterEach(async () => queues.close());
  useAccount();
  beforeEach(() => {
    rig = openQueueRig(account);
    ({ queues } = rig);
  });
}

export function openQueueRig(account = openTestAccount()) {
  const { connection, ledger } = account;
  const queues = new PayoutQueues(connection);
  const errors: [object, string][] = [];
  const logger: Logger = { ...silentLogger, error: (fields, text) => void errors.push([fields, text]) };
  const relay = new OutboxRelay(ledger, queues, { firstPollAfterMs: 5_000, logger });
  const reconciler = new JobReconciler(ledger, { queues, relay }, logger);
  return {
    account,
    queues,
    relay,
    reconciler,
    errors,
    async enqueue(given: readonly (string | ValidPayout)[]) {
      const payouts = given.map((each) => (typeof each === 'string' ? aPayout(each) : each));
      await ledger.enqueue(payouts);
      await relay.tryAddAccepted(payouts);
      await relay.tryClearAccepted(payouts);
    },
    async accept(payoutId: string) {
      await queues.removeWithdrawJob({ payoutId });
      await makeInProgress({ account }, payoutId);
      await relay.deliver('in_progress', [payoutId]);
    },
    async places(queue: Queue) {
      const places = STRUCTURES.map(async (structure) => {
        const key = queue.toKey(structure);
        const isSet = structure === 'prioritized' || structure === 'delayed';
        const jobIds = isSet ? await account.redis.zrange(key, '0', '-1') : await account.redis.lrange(key, 0, -1);
        return jobIds.map((jobId) => `${structure} ${jobId}`);
      });
      return (await Promise.all(places)).flat().sort();
    },
    async close() {
      await queues.close();
      await account.close();
    },
  };
}

/** Has the gateway accept a queued payout, which gets no job. */
export async function makeInProgress(
  { account }: { account: Pick<TestAccount, 'ledger'> },
  payoutId: string,
): Promise<void> {
  await account.ledger.change({ payoutId, from: 'queued', to: 'sending' });
  await account.ledger.change({ payoutId, from: 'sending', to: 'in_progress', gatewayId: `hash-${payoutId}` });
}

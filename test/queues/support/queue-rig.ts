import { afterEach, beforeEach } from '@jest/globals';
import type { Queue } from 'bullmq';
import type { ValidPayout } from '../../../src/ledger/payout.js';
import { silentLogger, type Logger } from '../../../src/base/logger.js';
import { OutboxRelay } from '../../../src/queues/outbox-relay.js';
import { JobReconciler } from '../../../src/queues/job-reconciler.js';
import { PayoutQueues } from '../../../src/queues/payout-queues.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { openTestAccount, type TestAccount } from '../../ledger/support/test-account.js';

export const STRUCTURES = ['active', 'wait', 'paused', 'prioritized', 'delayed'] as const;

/** An account with its queues and what keeps the two together. */
export interface QueueRig {
  readonly account: TestAccount;
  readonly queues: PayoutQueues;
  readonly relay: OutboxRelay;
  readonly reconciler: JobReconciler;
  /** What was logged as an error: fields and text. */
  readonly errors: readonly (readonly [object, string])[];
  /** Accepts payouts and gives them their jobs, as a producer does. */
  enqueue(payouts: readonly (string | ValidPayout)[]): Promise<void>;
  /** Has the gateway accept a queued payout: it gets its poll job. */
  accept(payoutId: string): Promise<void>;
  /** Every place of every job in the queue: structure and job id, sorted. */
  places(queue: Queue): Promise<string[]>;
  close(): Promise<void>;
}

/** The rig of the running test, in a file that called `useRig`. */
export let rig: QueueRig;

/** Gives each test of a file a rig of its own. */
export function useRig(): void {
  beforeEach(() => {
    rig = openQueueRig();
  });
  afterEach(async () => rig.close());
}

export function openQueueRig(): QueueRig {
  const account = openTestAccount();
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
    async enqueue(given) {
      const payouts = given.map((each) => (typeof each === 'string' ? aPayout(each) : each));
      await ledger.enqueue(payouts);
      await relay.tryAddAccepted(payouts);
      await relay.tryClearAccepted(payouts);
    },
    async accept(payoutId) {
      await queues.removeWithdrawJob({ payoutId });
      await makeInProgress({ account }, payoutId);
      await relay.deliver('in_progress', [payoutId]);
    },
    places: async (queue) => readPlaces(account, queue),
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
  await account.ledger.change({ payoutId, from: 'sending', to: 'in_progress', txhash: `hash-${payoutId}` });
}

async function readPlaces({ redis }: TestAccount, queue: Queue): Promise<string[]> {
  const places: string[] = [];
  for (const structure of STRUCTURES) {
    const key = queue.toKey(structure);
    const isSet = structure === 'prioritized' || structure === 'delayed';
    const jobIds = isSet ? await redis.zrange(key, '0', '-1') : await redis.lrange(key, 0, -1);
    places.push(...jobIds.map((jobId) => `${structure} ${jobId}`));
  }
  return places.sort();
}

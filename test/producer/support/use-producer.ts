import { afterEach, beforeEach } from '@jest/globals';
import { PayoutProducer, type PayoutProducerOptions } from '../../../src/control/payout-producer.js';
import { account, useAccount } from '../../ledger/support/use-account.js';
import { testRedisUrl } from '../../support/account.js';

/** The producer of the running test, in a file that called `useProducer`, for `account`. */
export let producer: PayoutProducer;

const opened: PayoutProducer[] = [];

export function useProducer(options: Partial<PayoutProducerOptions> = {}) {
  afterEach(async () => {
    await Promise.all(opened.splice(0).map(async (each) => each.close()));
  });
  useAccount();
  beforeEach(() => {
    producer = openProducer(options);
  });
}

/** Another producer of the same account, which ends with the test. */
export function openProducer(options: Partial<PayoutProducerOptions> = {}): PayoutProducer {
  const connection = options.connection === undefined ? { redisUrl: testRedisUrl() } : {};
  const made = new PayoutProducer({ platformId: account.platformId, ...connection, ...options });
  opened.push(made);
  return made;
}

/** A key of the account. */
export const key = (name: string) => `${account.connection.keys.prefix}:${name}`;

const toPayoutIds = (jobIds: readonly string[]) => jobIds.map((jobId) => jobId.replace('~0', ''));

/** The payouts whose job waits, in the order in which they will be sent. */
export async function waiting() {
  return toPayoutIds((await account.redis.lrange(key('withdraw:wait'), 0, -1)).reverse());
}

/** The payouts whose job is in another structure of the queue, in its order. */
export async function inStructure(structure: 'delayed' | 'prioritized') {
  return toPayoutIds(await account.redis.zrange(key(`withdraw:${structure}`), '0', '-1'));
}

export const outbox = async () => account.redis.zrange(key('outbox'), '0', '-1');

import type { Way } from '../way.js';

/** Someone stopped the account, or one of its queues. */
export const ACCOUNT_WAYS: readonly Way[] = [
  {
    name: 'The account is paused',
    happens: async ({ operator }) => {
      await operator.pause({ by: 'an operator', reason: 'to check it' });
    },
    told: {
      headline: 'paused',
      alerts: ['PayoutsPaused'],
      readyz: { status: 200, words: '"problem":"paused: to check it"' },
      doctor: { exit: 1, check: 'pause', words: 'nothing is sent: paused: to check it' },
      runbook: 'paused',
    },
  },
  {
    name: 'The withdraw queue is paused by hand in BullMQ',
    happens: async ({ world, client, prefix }) => {
      await client.hset(`${prefix}:withdraw:meta`, 'paused', '1');
      await world.enqueue(1);
    },
    minutes: 8 * 60,
    told: {
      headline: 'standsStill',
      alerts: ['PayoutsStandStill', 'PayoutsQueuedTooLong'],
      readyz: { status: 200, words: 'withdraw queue: paused in BullMQ' },
      doctor: { exit: 1, check: 'withdraw queue', words: 'paused in BullMQ' },
      runbook: 'nothing-is-sent',
    },
  },
  {
    name: 'The ledger was written by a newer version',
    happens: async ({ client, prefix }) => {
      await client.hset(`${prefix}:ledger`, 'format', '99');
    },
    told: {
      headline: 'otherVersion',
      alerts: ['PayoutsSendingRefused', 'PayoutsNoSender'],
      readyz: { status: 503, words: 'The ledger in Redis has format 99' },
      doctor: { exit: 1, check: 'pause', words: 'The ledger in Redis has format 99' },
      runbook: 'journal',
    },
  },
];

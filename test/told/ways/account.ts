import { told, type Way } from '../way.js';

/** Someone stopped the account, or one of its queues. */
export const ACCOUNT_WAYS: readonly Way[] = [
  {
    name: 'The account is paused',
    happens: async ({ operator }) => {
      await operator.pause({ by: 'an operator', reason: 'to check it' });
    },
    told: told(
      'paused',
      ['PayoutsPaused'],
      [200, '"problem":"paused: to check it"'],
      [1, 'pause', 'nothing is sent: paused: to check it'],
      'paused',
    ),
  },
  {
    name: 'The withdraw queue is paused by hand in BullMQ',
    happens: async ({ world, client, prefix }) => {
      await client.hset(`${prefix}:withdraw:meta`, 'paused', '1');
      await world.enqueue(1);
    },
    minutes: 8 * 60,
    told: told(
      'standsStill',
      ['PayoutsStandStill', 'PayoutsQueuedTooLong'],
      [200, 'withdraw queue: paused in BullMQ'],
      [1, 'withdraw queue', 'paused in BullMQ'],
      'nothing-is-sent',
    ),
  },
  {
    name: 'The ledger was written by a newer version',
    happens: async ({ client, prefix }) => {
      await client.hset(`${prefix}:ledger`, 'format', '99');
    },
    told: told(
      'otherVersion',
      ['PayoutsSendingRefused', 'PayoutsNoSender'],
      [503, 'The ledger in Redis has format 99'],
      [1, 'pause', 'The ledger in Redis has format 99'],
      'journal',
    ),
  },
];

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { aPayout } from '../../ledger/support/a-payout.js';
import type { Rig } from '../support/rig.js';
import { told, type Way } from '../way.js';

const HANGING_BULLMQ = new URL('../support/hanging-bullmq.mjs', import.meta.url).href;

/** More payouts than are sent while an operator is told, some of them urgent, some for later. */
async function enqueueMany({ world }: Rig): Promise<void> {
  await world.enqueue(100);
  const notBefore = new Date(Date.now() + 3_600_000).toISOString();
  const others = Array.from({ length: 50 }, (_, index) => [
    { ...aPayout(`P-urgent-${index}`), priority: 1 },
    { ...aPayout(`P-later-${index}`), notBefore },
  ]);
  await world.producer.enqueueMany(others.flat());
}

/** As a script or an operator may who cleans up. */
async function deleteJobs({ client, prefix }: Rig): Promise<void> {
  await client.del(['wait', 'prioritized', 'delayed'].map((structure) => `${prefix}:withdraw:${structure}`));
}

/** The queues or the outbox in Redis are not as the worker left them, or BullMQ does not work. */
export const QUEUE_WAYS: readonly Way[] = [
  {
    name: 'Someone deletes the lists of jobs in Redis',
    happens: async (rig) => {
      await enqueueMany(rig);
      await deleteJobs(rig);
    },
    repeats: true,
    told: told(
      'sending',
      ['PayoutsJobsRecreated'],
      [200, 'missing in Redis had to be added again'],
      [0, 'worker', 'missing in Redis had to be added again'],
      'redis-altered',
    ),
  },
  {
    name: 'Someone deletes the lists of jobs in Redis, and no worker adds them again',
    happens: async (rig) => {
      await enqueueMany(rig);
      await rig.worker.end();
      await deleteJobs(rig);
    },
    told: told('silent', ['PayoutsWorkerMissing'], ['none', ''], [1, 'sender', 'payouts queued'], 'worker-missing'),
  },
  {
    name: 'Someone deletes the lists of jobs in Redis while the worker must not send',
    happens: async (rig) => {
      // None is being sent when the worker ends.
      await rig.replaceWorker(async () => {
        await enqueueMany(rig);
        await deleteJobs(rig);
        await writeFile(join(rig.journalDir, `${rig.platformId}.journal`), 'nonsense\n');
      });
    },
    told: told(
      'refused',
      ['PayoutsSendingRefused', 'PayoutsNoSender', 'PayoutsStandStill'],
      [503, 'cannot be read'],
      [1, 'journal and ledger', 'cannot be read'],
      'journal',
    ),
  },
  {
    name: 'The record of the next payout cannot be read',
    happens: async (rig) =>
      rig.replaceWorker(async () => {
        await rig.world.enqueue(2);
        await rig.client.hset(`${rig.prefix}:payout:P-1`, 'metadata', '{');
      }),
    told: told(
      'holds',
      ['PayoutsTampering', 'PayoutsHeld'],
      [200, '1 payout held, and not sent'],
      [0, 'worker', '1 payout held, and not sent'],
      'tampering',
    ),
  },
  {
    name: 'The outbox holds what no worker understands',
    happens: async ({ client, prefix }) => {
      const strange = Array.from({ length: 700 }, (_, index) => [1, Buffer.of(index % 256, index >> 8, 0xff)]);
      await client.zadd(`${prefix}:outbox`, ...strange.flat());
    },
    told: told(
      'idle',
      ['PayoutsOutboxUnreadable'],
      [200, 'The outbox holds 700 members that this version does not understand'],
      [0, 'outbox', '700 members that this version does not understand'],
      'redis-altered',
    ),
  },
  {
    name: 'A BullMQ worker hangs',
    environment: { NODE_OPTIONS: `--import=${HANGING_BULLMQ}` },
    happens: async ({ world }) => {
      await world.enqueue(1);
    },
    repeats: true,
    told: told(
      'idle',
      ['PayoutsJobWorkerReplaced'],
      [200, '1 BullMQ worker hung and had to be replaced'],
      [0, 'worker', '1 BullMQ worker hung and had to be replaced'],
      'worker-missing',
    ),
  },
];

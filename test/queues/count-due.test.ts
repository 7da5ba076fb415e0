import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { countDuePayouts } from '../../src/queues/job-balance.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { openQueueRig, type QueueRig } from './support/queue-rig.js';

let rig: QueueRig;
beforeEach(() => {
  rig = openQueueRig();
});
afterEach(async () => {
  await rig.close();
});

it('counts queued payouts but for those whose notBefore is in the future', async () => {
  const { clock, connection } = rig.account;
  const count = async (): Promise<number> => countDuePayouts(connection, rig.queues);
  expect(await count()).toBe(0);
  const notBefore = (delayMs: number): string => new Date(clock.wallNow() + delayMs).toISOString();
  await rig.enqueue([
    'P-1',
    aPayout('P-2', { priority: 3 }),
    aPayout('P-3', { notBefore: notBefore(3_600_000) }),
    aPayout('P-4', { notBefore: notBefore(2_000) }),
  ]);
  expect(await count()).toBe(2);
  clock.advance(1_999);
  expect(await count()).toBe(2);
  clock.advance(2);
  expect(await count()).toBe(3);
});

import { expect, it } from '@jest/globals';
import { openLedger } from '../../../src/queues/open-ledger.js';
import type { FaultRule } from '../../../src/sandbox/index.js';
import { until } from '../../support/until.js';
import { closeAfterTest } from '../support/close-after-test.js';
import { worldOfTest } from '../support/payout-world.js';

it.each<[string, FaultRule | undefined, RegExp, Partial<Record<'rejected' | 'unknown', number>>]>([
  [
    'a signature that it does not accept',
    undefined,
    /response looks like wrong credentials: wrong sign/,
    { rejected: 1 },
  ],
  ['five rejections', { kind: 'reject', message: 'not today' }, /5 rejections in a row.*not today/, { rejected: 5 }],
  ['two without a response', { kind: 'html-502' }, /2 sends in a row without a trustworthy resp/, { unknown: 2 }],
])('the account pauses by itself: %s', async (_, fault, reason, sent) => {
  const world = await worldOfTest();
  if (fault !== undefined) world.sandbox.addFaults([fault]);
  await world.enqueue(2 + (sent.rejected ?? 0) + (sent.unknown ?? 0));
  world.startWorker(fault === undefined ? { secretKey: 'k-of-yesterday' } : {});
  await until('the account is paused', async () => (await world.producer.stats()).paused);
  expect(await world.producer.stats()).toMatchObject({
    queued: 2,
    ...sent,
    pausedReason: expect.stringMatching(reason),
  });
});

it('nothing begins from a block, or from a pause by hand, until an operator resumes', async () => {
  const world = await worldOfTest();
  world.sandbox.addFaults([{ kind: 'block', times: 1 }]);
  await world.enqueue(6);
  const { ledger } = closeAfterTest(openLedger(world.account, 'reply'));
  const worker = world.startWorker();
  await worker.said('the account is paused');
  expect(await world.producer.stats()).toMatchObject({ queued: 5, rejected: 1, paused: true });
  expect(world.sandbox.stats().arrivals).toBe(1);
  await ledger.resume('tester', 'unblocked');
  await until('sending continues', () => world.sandbox.stats().arrivals >= 3);
  await ledger.pause('tester', 'lunch');
  const { sends } = await world.producer.stats();
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  expect((await world.producer.stats()).sends).toBe(sends);
});

import { afterEach, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { readStatistics } from '../../src/ledger/reads/statistics.js';
import { openTestAccount } from '../ledger/support/test-account.js';
import { until } from '../support/until.js';
import { endAllWorkers } from './support/worker-process.js';
import { expectPromisesKept, openWorld, untilSettled, type PayoutWorld } from './support/payout-world.js';

let world: PayoutWorld;
afterEach(async () => {
  await endAllWorkers();
  await world.close();
});

it('follows payouts to completed and failed, with the fee and the times', async () => {
  world = await openWorld({ sandbox: { failAddresses: ['wallet-p2xxxxxxxxxxxxxxxxxxxxxxxxxxxx'] } });
  const [completes = '', fails = ''] = await world.enqueue(2);
  world.startWorker();
  expect(await world.producer.waitFor(completes, { timeoutMs: 30_000 })).toMatchObject({
    state: 'completed',
    fee: '0.00012',
  });
  const failed = await world.producer.waitFor(fails, { timeoutMs: 30_000 });
  expect(failed).toMatchObject({ state: 'failed', attempt: 1 });
  expect(failed.history.map(({ to }) => to)).toEqual(['queued', 'sending', 'in_progress', 'failed']);
  expect(Date.parse(failed.updatedAt)).toBeGreaterThan(Date.parse(failed.createdAt));
}, 60_000);

it('a gateway that responds to polls with errors for a while changes nothing but the delay', async () => {
  world = await openWorld();
  world.sandbox.setFaults([
    { kind: 'json-500', endpoint: 'transactionstatus', times: 2 },
    { kind: 'html-502', endpoint: 'transactionstatus', times: 2 },
    { kind: 'reject', endpoint: 'transactionstatus', times: 2, message: 'unknown transaction' },
    { kind: 'wrong-json', endpoint: 'transactionstatus', times: 2 },
  ]);
  const [payoutId = ''] = await world.enqueue(1);
  const worker = world.startWorker();
  const payout = await world.producer.waitFor(payoutId, { timeoutMs: 40_000 });
  expect(payout.state).toBe('completed');
  expect(payout.history.map(({ to }) => to)).toEqual(['queued', 'sending', 'in_progress', 'completed']);
  expect(worker.log()).toContain('status poll failed, will retry');
  await expectPromisesKept(world);
}, 60_000);

it('publishes the gaps between writes as the sender measured them, not between begins', async () => {
  world = await openWorld();
  await world.enqueue(4);
  world.startWorker();
  await untilSettled(world, 4);
  const account = openTestAccount(world.platformId);
  const gaps = async (): Promise<number[]> => {
    const { minutes } = await readStatistics({ ...account.connection, clock: systemClock });
    return minutes.flatMap(({ smallestGapMs }) => smallestGapMs ?? []);
  };
  await until('they are counted', async () => (await gaps()).length > 0, 20_000);
  expect(Math.min(...(await gaps()))).toBeGreaterThanOrEqual(1_000);
  await account.close();
}, 60_000);

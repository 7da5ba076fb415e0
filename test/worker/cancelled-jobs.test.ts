import { afterEach, beforeEach, it } from '@jest/globals';
import { PAYOUTS_PER_CHANGE } from '../../src/ledger/payout-ledger.js';
import { openLedger } from '../../src/queues/open-ledger.js';
import { until } from '../support/until.js';
import { endAllWorkers } from './support/worker-process.js';
import { expectPromisesKept, openWorld, type PayoutWorld } from './support/payout-world.js';

const CANCELLED = 300;

let world: PayoutWorld;

beforeEach(async () => {
  world = await openWorld();
});
afterEach(async () => {
  await endAllWorkers();
  await world.close();
});

it('a worker that meets the jobs of cancelled payouts does not spend a second on each', async () => {
  const payoutIds = await world.enqueue(CANCELLED, 'C');
  const [live = ''] = await world.enqueue(1, 'L');
  const { platformId, redisUrl } = world;
  const access = openLedger({ platformId, redisUrl }, 'reply');
  for (let start = 0; start < CANCELLED; start += PAYOUTS_PER_CHANGE) {
    const payouts = payoutIds.slice(start, start + PAYOUTS_PER_CHANGE).map((payoutId) => ({ payoutId }));
    await access.ledger.changeMany({
      from: 'queued',
      to: 'cancelled',
      payouts,
      isOneAct: true,
      by: 'ann',
      reason: 'x',
    });
  }
  await access.close();
  world.startWorker();
  // Each second one would be CANCELLED seconds.
  await until(
    'the payout behind is completed',
    async () => (await world.producer.get(live))?.state === 'completed',
    45_000,
  );
  await expectPromisesKept(world);
}, 90_000);

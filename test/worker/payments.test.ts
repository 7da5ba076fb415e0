import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { PAYOUTS_PER_CHANGE } from '../../src/ledger/payout-ledger.js';
import { openLedger } from '../../src/queues/open-ledger.js';
import { adoptJournal, SIGNING, writeKeyFiles } from '../proofs/signing.js';
import { until } from '../support/until.js';
import { closeAfterTest } from './support/close-after-test.js';
import { expectPromisesKept, untilLeased, untilSettled, worldOfTest } from './support/payout-world.js';
import { cents } from '../support/account.js';

it('a gateway behind a proxy that answers 502 to everything costs one unknown payout, not two', async () => {
  const world = await worldOfTest({ sandbox: { faults: [{ kind: 'html-502', endpoint: 'any' }] } });
  await world.enqueue(4);
  const worker = world.startWorker({ environment: { MAX_UNKNOWNS_IN_A_ROW: '100' } });
  const words = 'ended before anything was written: The gateway did not respond to /balance: HTTP 502';
  await until('it says why it sends no more', async () => (await worker.get('/readyz')).body.includes(words));
  const { unknown, queued } = await world.producer.stats();
  expect({ unknown, queued, arrivals: world.sandbox.stats().arrivals }).toEqual({ unknown: 1, queued: 3, arrivals: 1 });
  world.sandbox.setFaults([]);
  await untilSettled(world, 4);
  expect((await world.producer.stats()).unknown).toBe(1);
  await expectPromisesKept(world);
});

it('payouts that are held or cancelled take no slot of a second from those behind them', async () => {
  const world = await worldOfTest();
  await adoptJournal(join(world.dir, 'journal'), world.platformId);
  const { workerEnvironment: environment } = await writeKeyFiles(world.dir);
  const producer = closeAfterTest(new PayoutProducer({ ...world.account, ...SIGNING }));
  const { ledger } = closeAfterTest(openLedger(world.account, 'reply'));
  await world.enqueue(40, 'U');
  const cancelled = (await world.enqueue(300, 'C')).map((payoutId) => ({ payoutId }));
  for (let start = 0; start < cancelled.length; start += PAYOUTS_PER_CHANGE) {
    const payouts = cancelled.slice(start, start + PAYOUTS_PER_CHANGE);
    const change = { from: 'queued', to: 'cancelled', by: 'ann', reason: 'x', isOneAct: true } as const;
    await ledger.changeMany({ ...change, payouts });
  }
  await producer.enqueueMany(cents(['S-1']));
  const worker = world.startWorker({ environment });
  await untilLeased(worker);
  // A second for each would be 340 s.
  await until('the signed one is completed', async () => (await producer.stats()).completed === 1, 45_000);
  expect((await producer.stats()).held).toBe(40);
  await expectPromisesKept(world);
});

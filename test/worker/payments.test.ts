import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { PAYOUTS_PER_CHANGE } from '../../src/ledger/payout-ledger.js';
import { RedisSenderLedger } from '../../src/ledger/redis-sender-ledger.js';
import { openLedger } from '../../src/queues/open-ledger.js';
import { adoptJournal, SIGNING, writeKeyFiles } from '../proofs/signing.js';
import { until } from '../support/until.js';
import { closeAfterTest } from './support/close-after-test.js';
import { cents, expectPromisesKept, untilLeased, untilSettled, worldOfTest } from './support/payout-world.js';

/** What becomes of payouts in a real worker, where each of these rules has its own exact tests elsewhere. */

it('payouts are followed to their ends; errors of polls delay them only', async () => {
  const world = await worldOfTest({ sandbox: { failAddresses: ['wallet-p2xxxxxxxxxxxxxxxxxxxxxxxxxxxx'] } });
  const poll = { endpoint: 'transactionstatus', times: 2 } as const;
  const reject = { kind: 'reject', message: 'unknown transaction' } as const;
  world.sandbox.setFaults([
    { kind: 'json-500', ...poll },
    { kind: 'wrong-json', ...poll },
    { ...reject, ...poll },
  ]);
  const [completes = '', fails = ''] = await world.enqueue(3);
  const worker = world.startWorker();
  await until('all are final', async () => {
    const { completed, failed } = await world.producer.stats();
    return completed === 2 && failed === 1;
  });
  const completed = await world.producer.get(completes);
  expect(completed).toMatchObject({ state: 'completed', fee: '0.00012' });
  expect(completed?.history.map(({ to }) => to)).toEqual(['queued', 'sending', 'in_progress', 'completed']);
  expect(await world.producer.get(fails)).toMatchObject({ state: 'failed', attempt: 1 });
  await worker.said('status poll failed, will retry');
  await expectPromisesKept(world);
});

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
  const isCompleted = async (payoutId: string): Promise<boolean> =>
    (await producer.get(payoutId))?.state === 'completed';
  // Held for the lack of a journal: once it is adopted, P-1 needs no release.
  await producer.enqueueMany(cents(['P-1', 'P-2']));
  const sender = new RedisSenderLedger(ledger.connection, 'reply');
  const hold = { kind: 'journal', message: 'signed before the journal began', isTampering: false } as const;
  await sender.holdPayout('P-1', 0, { ...hold, reason: 'before_birth' });
  await sender.holdPayout('P-2', 0, { ...hold, reason: 'sent_before' });
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
  await until('the signed one is completed', async () => isCompleted('S-1'), 45_000);
  expect((await producer.stats()).held).toBe(41);
  await until('it is released', async () => isCompleted('P-1'));
  expect((await producer.get('P-1'))?.history.map(({ reason }) => reason)).toContain('the send journal was adopted');
  expect((await producer.get('P-2'))?.state).toBe('held');
  await expectPromisesKept(world);
});

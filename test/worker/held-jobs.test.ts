import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { RedisSenderLedger } from '../../src/ledger/redis-sender-ledger.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { openLedger } from '../../src/queues/open-ledger.js';
import { adoptJournal, SIGNING, writeKeyFiles } from '../proofs/signing.js';
import { until } from '../support/until.js';
import { endAllWorkers } from './support/worker-process.js';
import { expectPromisesKept, openWorld, type PayoutWorld } from './support/payout-world.js';

const UNSIGNED = 40;

let world: PayoutWorld;
let producer: PayoutProducer;
let environment: Readonly<Record<string, string>>;

beforeEach(async () => {
  world = await openWorld();
  await adoptJournal(join(world.dir, 'journal'), world.platformId);
  ({ workerEnvironment: environment } = await writeKeyFiles(world.dir));
  const { redisUrl, platformId } = world;
  producer = new PayoutProducer({ redisUrl, platformId, ...SIGNING });
});
afterEach(async () => {
  await producer.close();
  await endAllWorkers();
  await world.close();
});

const enqueueSigned = async (payoutId: string): Promise<unknown> =>
  producer.enqueue({
    payoutId,
    paymentId: 1,
    amount: '0.01',
    addressTo: `wallet-${payoutId}`,
  });
const isCompleted = async (payoutId: string): Promise<boolean> => (await producer.get(payoutId))?.state === 'completed';

it('a payout that is held takes no slot of a second from those behind it', async () => {
  await world.enqueue(UNSIGNED, 'U');
  await enqueueSigned('S');
  const worker = world.startWorker({ environment });
  await until('it sends', () => worker.log().includes('acquired sender lease'));
  const startedAt = performance.now();
  await until('the signed one is completed', async () => isCompleted('S'), 120_000);
  expect((await producer.stats()).held).toBe(UNSIGNED);
  // A second for each would be 40 s.
  expect(performance.now() - startedAt).toBeLessThan(25_000);
  await expectPromisesKept(world);
}, 180_000);

it('a worker whose journal was adopted sends what the version before held for the lack of it, without a release', async () => {
  const { redisUrl, platformId } = world;
  for (const payoutId of ['P', 'Q']) await enqueueSigned(payoutId);
  const access = openLedger({ platformId, redisUrl }, 'reply');
  const senderLedger = new RedisSenderLedger(access.ledger.connection, 'reply');
  const hold = { kind: 'journal', message: 'signed before the journal began', isTampering: false } as const;
  await senderLedger.holdPayout('P', 0, { ...hold, reason: 'before_birth' });
  await senderLedger.holdPayout('Q', 0, { ...hold, reason: 'sent_before' });
  await access.close();
  world.startWorker({ environment });
  await until('it is completed', async () => isCompleted('P'));
  expect((await producer.get('P'))?.history.map(({ reason }) => reason)).toContain('the send journal was adopted');
  expect((await producer.get('Q'))?.state).toBe('held');
});

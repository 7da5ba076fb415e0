import { describe, expect, it } from '@jest/globals';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import {
  loggerWithThrowingChildren,
  throwingLogger,
  throwingObserver,
  throwingTelemetry,
} from '../support/throwing-watchers.js';
import { until } from '../support/until.js';
import { expectPromisesKept, openWorkerIn, worldOfTest, type PayoutWorld } from './support/payout-world.js';

const cannotBeMade = (): never => {
  throw new Error('no observer today');
};

const epochOf = async ({ producer }: PayoutWorld): Promise<number | undefined> =>
  (await producer.stats()).sender?.epoch;

/** Two payouts are paid once, with their txhashes. */
async function expectPaid(world: PayoutWorld): Promise<void> {
  const payoutIds = await world.enqueue(2);
  await until('all completed', async () => (await world.producer.stats()).completed === 2);
  for (const payoutId of payoutIds) expect((await world.producer.get(payoutId))?.txhash).toMatch(/^[0-9a-f]{64}$/);
  await expectPromisesKept(world);
}

describe('what throws where it is called', () => {
  it.each([
    ['a logger', { logger: throwingLogger }],
    ['the children of a logger', { logger: loggerWithThrowingChildren }],
    ['an observer', { observe: () => throwingObserver }],
    ['the making of an observer', { observe: cannotBeMade }],
    ['telemetry', { telemetry: throwingTelemetry }],
  ])('%s: the worker pays every payout once and records its txhash', async (_, watchers) => {
    const world = await worldOfTest();
    await openWorkerIn(world, watchers);
    await expectPaid(world);
    expect(await epochOf(world)).toBe(1);
  });

  it('telemetry and a logger of a producer: it enqueues', async () => {
    const { account, producer: reader } = await worldOfTest();
    const producer = new PayoutProducer({ ...account, logger: throwingLogger, telemetry: throwingTelemetry });
    await producer.enqueue({ payoutId: 'P-1', paymentId: 1, amount: '0.01', addressTo: 'wallet-thrown' });
    await until('it has a job', async () => (await reader.stats()).withoutJob === 0);
    expect(await producer.cancel('P-1')).toMatchObject({ state: 'cancelled' });
    await producer.close();
  });
});

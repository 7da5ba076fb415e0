import { expect, it } from '@jest/globals';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { cents, numbered } from '../support/account.js';
import {
  loggerWithThrowingChildren,
  throwingLogger,
  throwingObserver,
  throwingTelemetry,
} from '../support/throwing-watchers.js';
import { until } from '../support/until.js';
import { closeAfterTest } from './support/close-after-test.js';
import { expectPromisesKept, openWorkerIn, worldOfTest } from './support/payout-world.js';

const cannotBeMade = (): never => {
  throw new Error('no observer today');
};

it.each([
  ['a logger', { logger: throwingLogger }],
  ['the children of a logger', { logger: loggerWithThrowingChildren }],
  ['an observer', { observe: () => throwingObserver }],
  ['the making of an observer', { observe: cannotBeMade }],
  ['telemetry', { telemetry: throwingTelemetry }],
])(
  'what a producer enqueues whose watchers throw is paid once, with its txhash, by a worker where %s does',
  async (_, watchers) => {
    const world = await worldOfTest();
    await openWorkerIn(world, watchers);
    const thrown = { logger: throwingLogger, telemetry: throwingTelemetry };
    const producer = closeAfterTest(new PayoutProducer({ ...world.account, ...thrown }));
    await producer.enqueueMany(cents(numbered(2)));
    await until('all completed', async () => (await world.producer.stats()).completed === 2);
    for (const payoutId of numbered(2)) expect((await world.producer.get(payoutId))?.txhash).toMatch(/^[0-9a-f]{64}$/);
    await expectPromisesKept(world);
    expect((await world.producer.stats()).sender?.epoch).toBe(1);
  },
);

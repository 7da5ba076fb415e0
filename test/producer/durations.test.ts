import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LONGEST_TIMER_MS } from '../../src/base/clock.js';
import { InvalidInputError } from '../../src/base/errors.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { closeRedis, connectRedis, duplicateForWaiting } from '../../src/base/redis.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';
import { payoutInput } from './support/payout-input.js';

let producer: PayoutProducer;

beforeEach(() => {
  producer = new PayoutProducer({ platformId: newPlatformId(), redisUrl: testRedisUrl() });
});

afterEach(async () => {
  await producer.close();
});

describe('times longer than a timer can wait', () => {
  it.each([
    ['claimAfterMs', 1e10, /^claimAfterMs: must be a whole number from 100 to 2147483647 \(got 10000000000\)$/],
    ['claimAfterMs', LONGEST_TIMER_MS + 1, /claimAfterMs: must be a whole number from 100 to 2147483647/],
    ['blockMs', 1e10, /^blockMs: must be a whole number from 1 to 2147483647 \(got 10000000000\)$/],
  ])('events refuses %s %d', (option, ms, message) => {
    const open = (): unknown => producer.events({ group: 'books', consumer: 'one', [option]: ms });
    expect(open).toThrow(InvalidInputError);
    expect(open).toThrow(message);
  });

  it('events takes the longest, and waits no shorter for it', async () => {
    const longest = { claimAfterMs: LONGEST_TIMER_MS, blockMs: LONGEST_TIMER_MS };
    const events = producer.events({ group: 'books', consumer: 'one', ...longest });
    const next = events.next();
    await producer.enqueue(payoutInput());
    expect((await next).value).toMatchObject({ payoutId: 'p-1', to: 'queued' });
    await events.return();
  });

  it('a connection for commands that wait gives them no less than that', async () => {
    const redis = connectRedis(testRedisUrl(), 'commands');
    const duplicate = duplicateForWaiting(redis, LONGEST_TIMER_MS);
    expect(duplicate.options).toMatchObject({ commandTimeout: LONGEST_TIMER_MS, socketTimeout: LONGEST_TIMER_MS });
    await closeRedis(duplicate);
    await closeRedis(redis);
  });

  it('waitFor may be told to wait, and waits in short steps', async () => {
    await producer.enqueue(payoutInput());
    const waiting = producer.waitFor('p-1', { timeoutMs: 1e10 });
    const early = new Promise((resolve) => setTimeout(resolve, 300, 'still waiting'));
    expect(await Promise.race([waiting, early])).toBe('still waiting');
    await producer.cancel('p-1');
    expect(await waiting).toMatchObject({ state: 'cancelled' });
  });
});

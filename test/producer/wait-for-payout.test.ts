import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import {
  ClosedError,
  NotFoundError,
  RedisUnavailableError,
  StoppedError,
  WaitTimeoutError,
} from '../../src/base/errors.js';
import { connectLedger } from '../../src/ledger/ledger-connection.js';
import type { Payout } from '../../src/ledger/payout.js';
import { RedisSenderLedger } from '../../src/ledger/redis-sender-ledger.js';
import { PAYOUT_STATES, SETTLED_STATES } from '../../src/ledger/states.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { waitForPayout } from '../../src/producer/payout-producer.js';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import { HOLD } from '../ledger/contract/ledger-rig.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';
import { payoutInput } from './support/payout-input.js';

let producer: PayoutProducer;
let platformId: number;

beforeEach(() => {
  platformId = newPlatformId();
  producer = new PayoutProducer({ platformId, redisUrl: testRedisUrl() });
});

afterEach(async () => {
  await producer.close();
});

describe('waitFor', () => {
  it('resolves once the payout is settled', async () => {
    await producer.enqueue(payoutInput());
    const waiting = producer.waitFor('p-1', { timeoutMs: 10_000 });
    await producer.cancel('p-1');
    expect(await waiting).toMatchObject({ payoutId: 'p-1', state: 'cancelled' });
  });

  it('resolves once the payout is held, and says why', async () => {
    await producer.enqueue(payoutInput());
    const waiting = producer.waitFor('p-1', { timeoutMs: 10_000 });
    const redis = connectRedis(testRedisUrl(), 'commands');
    try {
      const sender = new RedisSenderLedger(connectLedger(redis, platformId), 'reply');
      expect(await sender.holdPayout('p-1', 0, HOLD)).toBe(true);
    } finally {
      await closeRedis(redis);
    }
    expect(await waiting).toMatchObject({ state: 'held', held: { kind: 'signature', reason: 'expired' } });
  });

  it('says the state that it found when the time is over', async () => {
    await producer.enqueue(payoutInput());
    const waiting = producer.waitFor('p-1', { timeoutMs: 120 });
    await expect(waiting).rejects.toBeInstanceOf(WaitTimeoutError);
    await expect(waiting).rejects.toThrow(/p-1 is not settled after 120 ms: it is queued/);
  });

  it('fails for a payout that does not exist, and when the producer is closed', async () => {
    await expect(producer.waitFor('p-9', { timeoutMs: 1_000 })).rejects.toBeInstanceOf(NotFoundError);
    await producer.enqueue(payoutInput());
    const waiting = expect(producer.waitFor('p-1', { timeoutMs: 60_000 })).rejects.toBeInstanceOf(ClosedError);
    await producer.close();
    await waiting;
  });

  it('ends at once when it is aborted, and changes nothing about the payout', async () => {
    await producer.enqueue(payoutInput());
    const stop = new AbortController();
    const waiting = producer.waitFor('p-1', { timeoutMs: 60_000, signal: stop.signal });
    const startedAt = performance.now();
    setTimeout(() => {
      stop.abort();
    }, 200);
    await expect(waiting).rejects.toThrow(new StoppedError('Waiting for payout p-1 was aborted; the payout goes on'));
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    const late = producer.waitFor('p-1', { timeoutMs: 60_000, signal: stop.signal });
    await expect(late).rejects.toBeInstanceOf(StoppedError);
    expect(await producer.get('p-1')).toMatchObject({ state: 'queued' });
  });

  it('outlasts a Redis that is unavailable for a while', async () => {
    const results = [new RedisUnavailableError('unavailable'), { payoutId: 'p-1', state: 'completed' } as Payout];
    const get = async (): Promise<Payout> => {
      const result = results.shift();
      if (result instanceof Error || result === undefined) throw result ?? new Error('asked too often');
      return Promise.resolve(result);
    };
    const { signal } = new AbortController();
    const connection = { clock: systemClock };
    const payout = await waitForPayout({ get, connection }, 'p-1', 5_000, signal);
    expect(payout.state).toBe('completed');
  });

  it('counts as settled what is final or needs an operator', () => {
    const open = PAYOUT_STATES.filter((state) => !SETTLED_STATES.includes(state));
    expect(open).toEqual(['queued', 'sending', 'in_progress']);
  });
});

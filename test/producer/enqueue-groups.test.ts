import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { ConflictError, RedisUnavailableError, StoppedError } from '../../src/base/errors.js';
import { startLocalRedis } from '../../src/sandbox/local-redis.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';
import { payoutInput } from './support/payout-input.js';

let platformId: number;
let connection: RedisClient;
let producer: PayoutProducer;

beforeEach(() => {
  platformId = newPlatformId();
  connection = connectRedis(testRedisUrl(), 'commands');
  producer = new PayoutProducer({ platformId, connection });
});

afterEach(async () => {
  await producer.close();
  await closeRedis(connection);
});

/** Counts the calls of the script on this connection. @param onSent - called behind each */
function countScripts(onSent: () => void = () => undefined): () => number {
  const commands = connection as unknown as Record<string, (...args: unknown[]) => unknown>;
  const script = commands['payouts:enqueue-payouts'];
  let calls = 0;
  commands['payouts:enqueue-payouts'] = (...args) => {
    calls += 1;
    const reply = script?.apply(connection, args);
    onSent();
    return reply;
  };
  return () => calls;
}

const ids = (count: number, name = 'p'): string[] => Array.from({ length: count }, (_, index) => `${name}-${index}`);
const key = (name: string): string => `{payouts:${platformId}}:${name}`;

describe('calls at the same time', () => {
  it('share a script call, and each gets its own result', async () => {
    await producer.enqueue(payoutInput({ payoutId: 'p-7' }));
    const scripts = countScripts();
    const results = await Promise.all(ids(60).map(async (payoutId) => producer.enqueue(payoutInput({ payoutId }))));
    expect(scripts()).toBe(2);
    expect(results).toEqual(ids(60).map((payoutId) => ({ payoutId, state: 'queued', created: payoutId !== 'p-7' })));
  });

  it('share it in groups that leave Redis time for others', async () => {
    const scripts = countScripts();
    await Promise.all(ids(250).map(async (payoutId) => producer.enqueue(payoutInput({ payoutId }))));
    expect(scripts()).toBe(8);
    expect(await connection.zcard(key('state:queued'))).toBe(250);
  });

  it('with one payoutId are one payout, and a conflict where they differ', async () => {
    const calls = ['12.5', '13', '12.5'].map(async (amount) => producer.enqueue(payoutInput({ amount })));
    const results = await Promise.allSettled(calls);
    expect(results).toMatchObject([
      { value: { created: true } },
      { reason: expect.any(ConflictError) as unknown },
      { value: { created: false } },
    ]);
    expect(await producer.get('p-1')).toMatchObject({ amount: '12.5' });
  });

  it.each<[string, (record: string) => Promise<unknown>]>([
    ['fails its script', async (record) => connection.set(record, 'no hash')],
    ['cannot be read', async (record) => connection.hset(record, 'state', 'refunding', 'n', 1, 'h0', '1\trefunding')],
  ])('of which one meets a record that %s: only that one fails', async (_, damage) => {
    await damage(key('payout:p-3'));
    const scripts = countScripts();
    const results = await Promise.allSettled(
      ids(6).map(async (payoutId) => producer.enqueue(payoutInput({ payoutId }))),
    );
    expect(results.map(({ status }) => status)).toEqual(
      ids(6).map((payoutId) => (payoutId === 'p-3' ? 'rejected' : 'fulfilled')),
    );
    expect(scripts()).toBe(7);
    await producer.close();
    const jobs = await connection.lrange(key('withdraw:wait'), 0, -1);
    expect(jobs.toSorted()).toEqual(['p-0~0', 'p-1~0', 'p-2~0', 'p-4~0', 'p-5~0']);
  });

  it('are recorded as they were when they were made', async () => {
    const metadata = { invoice: 1 };
    const accepted = producer.enqueue(payoutInput({ metadata }));
    metadata.invoice = 2;
    await accepted;
    expect(await producer.get('p-1')).toMatchObject({ metadata: { invoice: 1 } });
  });

  it('are so as well where they are given together', async () => {
    const metadata = { invoice: 1 };
    const accepted = producer.enqueueMany([payoutInput({ metadata })]);
    metadata.invoice = 2;
    await accepted;
    expect(await producer.get('p-1')).toMatchObject({ metadata: { invoice: 1 } });
  });
});

describe('an aborted call', () => {
  it('enqueues nothing if the signal comes before the script, whatever is enqueued beside it', async () => {
    const stop = new AbortController();
    const aborted = producer.enqueue(payoutInput({ payoutId: 'aborted' }), { signal: stop.signal });
    const other = producer.enqueue(payoutInput({ payoutId: 'other' }), { signal: new AbortController().signal });
    stop.abort();
    const late = producer.enqueue(payoutInput({ payoutId: 'late' }), { signal: stop.signal });
    for (const call of [aborted, late]) await expect(call).rejects.toThrow(StoppedError);
    await expect(aborted).rejects.toThrow('Payout aborted was not enqueued: the call was aborted');
    expect(await other).toMatchObject({ created: true });
    expect(await producer.stats()).toMatchObject({ queued: 1 });
  });

  it('returns the payout as accepted if the signal comes after the script was sent', async () => {
    await producer.enqueue(payoutInput({ payoutId: 'before' }));
    const stop = new AbortController();
    const scripts = countScripts(() => {
      stop.abort();
    });
    const accepted = await producer.enqueue(payoutInput(), { signal: stop.signal });
    expect([scripts(), stop.signal.aborted, accepted]).toMatchObject([1, true, { payoutId: 'p-1', created: true }]);
    expect(await producer.get('p-1')).toMatchObject({ state: 'queued' });
  });
});

it('a cancellation ends while the same producer enqueues without a pause', async () => {
  await producer.enqueue(payoutInput({ payoutId: 'wrong' }));
  const ended: string[] = [];
  const cancelled = producer.cancel('wrong', { by: 'shop', reason: 'a mistake' }).then(() => ended.push('cancelled'));
  // One call follows the other, as in a loop over a file.
  for (let index = 0; ended.length === 0 && index < 3_000; index += 1) {
    await producer.enqueue(payoutInput({ payoutId: `p-${index}` }));
  }
  expect(ended).toEqual(['cancelled']);
  await cancelled;
  expect(await connection.lrange(key('withdraw:wait'), 0, -1)).not.toContain('wrong~0');
});

describe('a call that waits behind a group', () => {
  it('fails with it within one time limit where Redis hangs', async () => {
    const server = await startLocalRedis();
    const stuck = new PayoutProducer({ platformId, redisUrl: server.url });
    try {
      await stuck.enqueue(payoutInput());
      process.kill(server.pid, 'SIGSTOP');
      const startedAt = performance.now();
      const first = stuck.enqueue(payoutInput({ payoutId: 'first' }));
      await systemClock.sleep(500);
      const second = stuck.enqueue(payoutInput({ payoutId: 'second' }));
      await systemClock.sleep(500);
      const behind = ids(3).map(async (payoutId) => stuck.enqueue(payoutInput({ payoutId })));
      for (const call of [first, second, ...behind]) await expect(call).rejects.toBeInstanceOf(RedisUnavailableError);
      expect(performance.now() - startedAt).toBeLessThan(7_000);
    } finally {
      process.kill(server.pid, 'SIGCONT');
      await stuck.close();
      await server.stop();
    }
  });
});

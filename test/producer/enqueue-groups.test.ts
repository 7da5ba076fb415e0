import { beforeEach, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { RedisUnavailableError, StoppedError } from '../../src/base/errors.js';
import { startLocalRedis } from '../../src/sandbox/local-redis.js';
import type { PayoutProducer } from '../../src/control/payout-producer.js';
import { account, names } from '../ledger/support/use-account.js';
import { payoutInput } from './support/payout-input.js';
import { key, openProducer, useProducer, waiting } from './support/use-producer.js';

useProducer();
beforeEach(() => {
  producer = openProducer({ connection: account.redis });
});

let producer: PayoutProducer;

/** Counts the calls of the script on this connection. @param onSent - called behind each */
function countScripts(onSent: () => void = () => undefined): () => number {
  const commands = account.redis as unknown as Record<string, (...args: unknown[]) => unknown>;
  const script = commands['payouts:enqueue-payouts'];
  let calls = 0;
  commands['payouts:enqueue-payouts'] = (...args) => {
    calls += 1;
    const reply = script?.apply(account.redis, args);
    onSent();
    return reply;
  };
  return () => calls;
}

const enqueueAll = (payoutIds: readonly string[], by = producer) =>
  payoutIds.map(async (payoutId) => by.enqueue(payoutInput({ payoutId })));

it('calls at the same time share a script call, and each gets its own result', async () => {
  await producer.enqueue(payoutInput({ payoutId: 'p7' }));
  const scripts = countScripts();
  const results = await Promise.all(enqueueAll(names(60)));
  expect(scripts()).toBe(2);
  expect(results).toEqual(names(60).map((payoutId) => ({ payoutId, state: 'queued', created: payoutId !== 'p7' })));
});

it('calls at the same time with one payoutId are one payout, and a conflict where they differ', async () => {
  const calls = ['12.5', '13', '12.5'].map(async (amount) => producer.enqueue(payoutInput({ amount })));
  const results = await Promise.allSettled(calls);
  expect(results).toMatchObject([
    { value: { created: true } },
    { reason: { fields: ['amount'] } },
    { value: { created: false } },
  ]);
  const differs = /^Payout p-1 already exists \(queued\) with a different amount\./;
  await expect(producer.enqueue(payoutInput({ amount: '13' }))).rejects.toThrow(differs);
  expect(await producer.get('p-1')).toMatchObject({ amount: '12.5' });
});

it.each<[string, (record: string) => Promise<unknown>]>([
  ['fails its script', async (record) => account.redis.set(record, 'no hash')],
  ['cannot be read', async (record) => account.redis.hset(record, 'state', 'refunding', 'n', 1, 'h0', '1\trefunding')],
])('calls at the same time of which one meets a record that %s: only that one fails', async (_, damage) => {
  await damage(key('payout:p3'));
  const scripts = countScripts();
  const results = await Promise.allSettled(enqueueAll(names(6)));
  expect(results.map(({ status }) => status)).toEqual(
    names(6).map((payoutId) => (payoutId === 'p3' ? 'rejected' : 'fulfilled')),
  );
  expect(scripts()).toBe(7);
  await producer.close();
  expect((await waiting()).toSorted()).toEqual(['p0', 'p1', 'p2', 'p4', 'p5']);
});

it('calls at the same time are recorded as they were when they were made', async () => {
  const metadata = { invoice: 1 };
  const accepted = producer.enqueue(payoutInput({ metadata }));
  metadata.invoice = 2;
  await accepted;
  expect(await producer.get('p-1')).toMatchObject({ metadata: { invoice: 1 } });
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

describe('a call that waits behind a group', () => {
  it('fails with it within one time limit where Redis hangs, and closing ends too', async () => {
    const server = await startLocalRedis();
    const stuck = openProducer({ redisUrl: server.url });
    try {
      await stuck.enqueue(payoutInput());
      process.kill(server.pid, 'SIGSTOP');
      const startedAt = performance.now();
      const first = stuck.enqueue(payoutInput({ payoutId: 'first' }));
      await systemClock.sleep(500);
      const second = stuck.enqueue(payoutInput({ payoutId: 'second' }));
      await systemClock.sleep(500);
      const behind = enqueueAll(names(3), stuck);
      for (const call of [first, second, ...behind]) await expect(call).rejects.toBeInstanceOf(RedisUnavailableError);
      expect(performance.now() - startedAt).toBeLessThan(7_000);
      await stuck.close();
      expect(performance.now() - startedAt).toBeLessThan(15_000);
    } finally {
      process.kill(server.pid, 'SIGCONT');
      await server.stop();
    }
  });
});

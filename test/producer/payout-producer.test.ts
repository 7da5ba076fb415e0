import { describe, expect, it } from '@jest/globals';
import { LONGEST_TIMER_MS, systemClock } from '../../src/base/clock.js';
import {
  ClosedError,
  ConflictError,
  InvalidInputError,
  NotFoundError,
  RedisUnavailableError,
  StoppedError,
  WaitTimeoutError,
} from '../../src/base/errors.js';
import { silentLogger } from '../../src/base/logger.js';
import { closeRedis, connectRedis, duplicateForWaiting } from '../../src/base/redis.js';
import type { Payout } from '../../src/ledger/payout.js';
import { waitForPayout } from '../../src/producer/payout-producer.js';
import { HOLD } from '../ledger/contract/ledger-rig.js';
import { account, enter, names } from '../ledger/support/use-account.js';
import { testRedisUrl } from '../support/account.js';
import { until } from '../support/until.js';
import { payoutInput } from './support/payout-input.js';
import { openProducer, outbox, producer, useProducer, waiting } from './support/use-producer.js';

useProducer();

it('enqueue accepts a payout once, of many calls of many producers, and gives it a job', async () => {
  const calls = [producer, ...names(4).map(() => openProducer())].flatMap((caller) =>
    names(10).map(async () => caller.enqueue(payoutInput({ amount: '12.500' }))),
  );
  const results = await Promise.all(calls);
  expect(results.filter(({ created }) => created)).toEqual([{ payoutId: 'p-1', state: 'queued', created: true }]);
  expect(await producer.get('p-1')).toMatchObject({ payoutId: 'p-1', state: 'queued', amount: '12.5', attempt: 0 });
  await until('it has a job', async () => (await producer.stats()).withoutJob === 0);
  expect([await waiting(), (await producer.stats()).queued]).toEqual([['p-1'], 1]);
});

it('enqueueMany keeps the order of results across its chunks and counts them', async () => {
  await producer.enqueue(payoutInput({ payoutId: 'p7' }));
  await producer.enqueue(payoutInput({ payoutId: 'p1100', amount: '1' }));
  // The check of the list blocks the process. If that takes five seconds, their jobs count as timed out.
  await until('both have a job', async () => (await producer.stats()).withoutJob === 0);
  const ids = names(1_200);
  const { results, ...counts } = await producer.enqueueMany(ids.map((payoutId) => payoutInput({ payoutId })));
  expect(counts).toEqual({ created: 1_198, existing: 1, conflicts: 1 });
  expect(results.map(({ payoutId }) => payoutId)).toEqual(ids);
  expect(results[7]).toEqual({ kind: 'existing', payoutId: 'p7', state: 'queued', created: false });
  expect(results[1_100]).toEqual({ kind: 'conflict', payoutId: 'p1100', state: 'queued', fields: ['amount'] });
  expect((await waiting()).toSorted()).toEqual(ids.toSorted());
  expect(await outbox()).toEqual([]);
  expect(await producer.enqueueMany([])).toEqual({ results: [], created: 0, existing: 0, conflicts: 0 });
});

it('enqueueMany enqueues nothing when one is invalid, and names it by its index', async () => {
  const inputs = [payoutInput(), payoutInput({ payoutId: 'p-2', amount: '0' }), payoutInput({ payoutId: '' })];
  const attempt = producer.enqueueMany(inputs);
  await expect(attempt).rejects.toThrow(/\[1\]\.amount: must be more than 0.*\[2\]\.payoutId/);
  expect((await producer.stats()).queued).toBe(0);
});

it('cancel records who and why, and removes the job; it refuses what may have been paid, and what is no line', async () => {
  const act = { by: 'ann', reason: 'paid by hand' };
  await producer.enqueue(payoutInput());
  const { state, history } = await producer.cancel('p-1', act);
  expect([state, history.at(-1)]).toMatchObject(['cancelled', { from: 'queued', to: 'cancelled', ...act }]);
  await enter('sending', 'sent');
  const sent = producer.cancel('sent');
  await expect(sent).rejects.toThrow(ConflictError);
  await expect(sent).rejects.toThrow(/from sending to cancelled: that needs queued, held or rejected\./);
  await expect(producer.cancel('p-9')).rejects.toThrow(/^Payout p-9 not found$/);
  await expect(producer.cancel('p-1', { by: 'a\nb' })).rejects.toThrow(/by: must be one line/);
  await producer.close();
  expect(await waiting()).toEqual([]);
});

it('looking up finds by batch and state, page by page, and by transaction, and counts a batch', async () => {
  const ids = names(3);
  await producer.enqueueMany(ids.map((payoutId) => payoutInput({ payoutId, batch: 'salaries' })));
  const { payouts, next = '' } = await producer.list({ batch: 'salaries', limit: 2 });
  const rest = await producer.list({ batch: 'salaries', limit: 2, cursor: next });
  expect([...payouts, ...rest.payouts].map(({ payoutId }) => payoutId)).toEqual(ids);
  expect((await producer.list({ state: 'queued' })).payouts).toHaveLength(3);
  expect(await producer.getByTxhash('0xdef')).toBeUndefined();
  await enter('in_progress', 'p');
  expect(await producer.getByTxhash('hash-p')).toMatchObject({ payoutId: 'p', txhash: 'hash-p' });
  expect(await producer.batchStats('salaries')).toMatchObject({ total: 3, queued: 3, completed: 0 });
  await expect(producer.batchStats('none')).rejects.toThrow(/^Batch none not found$/);
});

describe('waitFor', () => {
  const wait = async (timeoutMs = 60_000, signal?: AbortSignal) =>
    producer.waitFor('p-1', { timeoutMs, ...(signal && { signal }) });

  it('resolves once the payout is settled, or is held, and says why; it waits in short steps, however long', async () => {
    await producer.enqueueMany([payoutInput(), payoutInput({ payoutId: 'held' })]);
    const [settled, held] = [wait(1e10), producer.waitFor('held', { timeoutMs: 10_000 })];
    expect(await Promise.race([settled, systemClock.sleep(300).then(() => 'still waiting')])).toBe('still waiting');
    await producer.cancel('p-1');
    expect(await account.sender.holdPayout('held', 0, HOLD)).toBe(true);
    expect(await settled).toMatchObject({ payoutId: 'p-1', state: 'cancelled' });
    expect(await held).toMatchObject({ state: 'held', held: { kind: 'signature', reason: 'expired' } });
  });

  it('fails when the time is over, without a payout, and when the producer is closed', async () => {
    await expect(wait(1_000)).rejects.toBeInstanceOf(NotFoundError);
    await producer.enqueue(payoutInput());
    const late = wait(120);
    await expect(late).rejects.toBeInstanceOf(WaitTimeoutError);
    await expect(late).rejects.toThrow(/p-1 is not settled after 120 ms: it is queued/);
    const closed = expect(wait()).rejects.toBeInstanceOf(ClosedError);
    await producer.close();
    await closed;
  });

  it('ends at once when it is aborted, and changes nothing about the payout', async () => {
    await producer.enqueue(payoutInput());
    const startedAt = performance.now();
    const signal = AbortSignal.timeout(200);
    const stopped = new StoppedError('Waiting for payout p-1 was aborted; the payout goes on');
    for (let times = 0; times < 2; times += 1) await expect(wait(60_000, signal)).rejects.toThrow(stopped);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    expect(await producer.get('p-1')).toMatchObject({ state: 'queued' });
  });

  it('outlasts a Redis that is unavailable for a while', async () => {
    const results = [new RedisUnavailableError('unavailable'), { payoutId: 'p-1', state: 'completed' } as Payout];
    const get = async (): Promise<Payout> => {
      const result = results.shift();
      if (result instanceof Error || result === undefined) throw result ?? new Error('asked too often');
      return Promise.resolve(result);
    };
    const source = { get, connection: { clock: systemClock } };
    expect((await waitForPayout(source, 'p-1', 5_000, new AbortController().signal)).state).toBe('completed');
  });
});

it('listeners hear what happens from now on, by the name of the state or of what happened to the account', async () => {
  await producer.enqueue(payoutInput({ payoutId: 'before' }));
  const heard: string[] = [];
  for (const name of ['queued', 'completed'] as const)
    producer.on(name, ({ payoutId, from }) => heard.push(`${name} ${payoutId ?? ''} ${from ?? ''}`));
  producer.on('paused', ({ by, reason }) => heard.push(`paused ${by ?? ''} ${reason ?? ''}`));
  await producer.enqueue(payoutInput({ payoutId: 'after' }));
  await enter('completed', 'p-1');
  await account.ledger.pause('ann', 'lunch');
  await until('four events', () => heard.length === 4);
  expect(heard).toEqual(['queued after ', 'queued p-1 ', 'completed p-1 in_progress', 'paused ann lunch']);
});

const BOOKS = { group: 'books', consumer: 'one' };

it('listeners do not suffer from each other, nor from one that was removed', async () => {
  const [heard, complaints]: [string[], string[]] = [[], []];
  const logger = { ...silentLogger, error: (_: object, message: string) => void complaints.push(message) };
  const taken = (): void => void heard.push('removed');
  const listening = openProducer({ logger })
    .on('queued', () => {
      throw new Error('a mistake');
    })
    .on('queued', async () => Promise.reject(new Error('a later mistake')))
    .on('queued', taken)
    .on('queued', ({ payoutId }) => heard.push(payoutId ?? ''))
    .off('queued', taken);
  await listening.enqueue(payoutInput({ payoutId: 'a' }));
  await until('an event and two complaints', () => heard.length > 0 && complaints.length === 2);
  expect(heard).toEqual(['a']);
});

it('events refuse a time that no timer can wait', () => {
  const open = (): unknown => producer.events({ ...BOOKS, claimAfterMs: LONGEST_TIMER_MS + 1 });
  expect(open).toThrow(InvalidInputError);
  expect(open).toThrow('claimAfterMs: must be a whole number from 100 to 2147483647 (got 2147483648)');
});

it('events come again after a break or an error in the loop, but not after the signal ended it', async () => {
  await producer.enqueueMany(['a', 'b'].map((payoutId) => payoutInput({ payoutId })));
  const failing = async (): Promise<void> => {
    for await (const event of producer.events(BOOKS)) throw new Error(`cannot book ${event.payoutId ?? ''}`);
  };
  await expect(failing()).rejects.toThrow('cannot book a');
  const stop = new AbortController();
  for await (const { payoutId } of producer.events({ ...BOOKS, signal: stop.signal })) {
    expect(payoutId).toBe('a');
    stop.abort();
  }
  for await (const event of producer.events(BOOKS)) {
    expect(event).toMatchObject({ type: 'state', payoutId: 'b', to: 'queued', at: expect.stringMatching(/Z$/) });
    break;
  }
});

it('events are lost to a consumer that was silent for too long: it continues behind the other', async () => {
  await producer.enqueueMany(['a', 'b', 'c'].map((payoutId) => payoutInput({ payoutId })));
  const [stalled, other] = [producer.events({ ...BOOKS, claimAfterMs: 60_000 }), openProducer()];
  expect((await stalled.next()).value).toMatchObject({ payoutId: 'a' });
  await account.connection.run('set-group-idle', ['books', 'one', 30_000, 100]);
  const seen: string[] = [];
  for await (const { payoutId = '' } of other.events({ ...BOOKS, consumer: 'two', claimAfterMs: 1_000 })) {
    if (seen.push(payoutId) === 3) break;
  }
  expect(seen).toEqual(['a', 'b', 'c']);
  expect((await stalled.next()).value).toMatchObject({ payoutId: 'c' });
  await stalled.return();
});

it('events take the longest time, and a connection that waits gives them no less', async () => {
  const events = producer.events({ ...BOOKS, claimAfterMs: LONGEST_TIMER_MS, blockMs: LONGEST_TIMER_MS });
  const next = events.next();
  await producer.enqueue(payoutInput());
  expect((await next).value).toMatchObject({ payoutId: 'p-1', to: 'queued' });
  await events.return();
  const redis = connectRedis(testRedisUrl(), 'commands');
  const duplicate = duplicateForWaiting(redis, LONGEST_TIMER_MS);
  expect(duplicate.options).toMatchObject({ commandTimeout: LONGEST_TIMER_MS, socketTimeout: LONGEST_TIMER_MS });
  for (const each of [duplicate, redis]) await closeRedis(each);
});

it('a producer leaves a shared connection open and refuses calls after closing', async () => {
  const shared = openProducer({ connection: account.redis });
  await shared.enqueue(payoutInput());
  await Promise.all([shared.close(), shared.close()]);
  await expect(shared.get('p-1')).rejects.toBeInstanceOf(ClosedError);
  expect(await account.ledger.get('p-1')).toMatchObject({ state: 'queued' });
});

import { beforeEach, describe, expect, it } from '@jest/globals';
import { account, enqueue, useAccount } from './support/use-account.js';

useAccount();
beforeEach(async () => enqueue('a', 'b', 'c'));

const CLAIM_AFTER_MS = 60_000;

async function read(consumer: string, { limit = 100, claimAfterMs = CLAIM_AFTER_MS } = {}) {
  const reply = await account.connection.run('read-group-events', ['books', consumer, claimAfterMs, limit]);
  const [newestId, othersForMs, entries] = reply as [string, number, [string, string[]][]];
  const payoutIds = entries.map(([, fields]) => fields[fields.indexOf('payoutId') + 1] ?? '');
  return { newestId, othersForMs, payoutIds, eventIds: entries.map(([eventId]) => eventId) };
}

const acknowledge = async (consumer: string, eventId = '') =>
  account.connection.run('ack-group-event', ['books', consumer, eventId]);

const setIdle = async (consumer: string, idleMs: number, limit = 100) =>
  account.connection.run('set-group-idle', ['books', consumer, idleMs, limit]);

const newestInStream = async () =>
  (await account.redis.xrevrange(account.connection.keys.events, '+', '-', 'COUNT', 1))[0]?.[0];

/** Almost the whole silence is still to come. */
function expectWholeWait(othersForMs: number): void {
  expect(othersForMs).toBeGreaterThan(CLAIM_AFTER_MS - 5_000);
  expect(othersForMs).toBeLessThanOrEqual(CLAIM_AFTER_MS);
}

describe('reading', () => {
  it('gives a consumer the oldest, the same ones again until it has acknowledged them, and then the next', async () => {
    const { eventIds, ...first } = await read('one', { limit: 2 });
    expect(first).toEqual({ newestId: await newestInStream(), othersForMs: 0, payoutIds: ['a', 'b'] });
    expect((await read('one', { limit: 2 })).eventIds).toEqual(eventIds);
    expect(await acknowledge('one', eventIds[0])).toBe(1);
    expect((await read('one')).payoutIds).toEqual(['b']);
    expect(await acknowledge('one', eventIds[1])).toBe(1);
    expect((await read('one')).payoutIds).toEqual(['c']);
  });

  it('gives nothing at the end of the stream, and of a stream that is empty', async () => {
    for (const eventId of (await read('one')).eventIds) await acknowledge('one', eventId);
    expect(await read('one')).toMatchObject({ newestId: await newestInStream(), othersForMs: 0, payoutIds: [] });
    await account.redis.del(account.connection.keys.events);
    expect(await read('one')).toMatchObject({ newestId: '0-0', othersForMs: 0, payoutIds: [] });
  });

  it('lets another take over all of them after the silence, and not before', async () => {
    await read('one', { limit: 2 });
    const { othersForMs, payoutIds, newestId } = await read('two');
    expect({ payoutIds, newestId }).toEqual({ payoutIds: [], newestId: await newestInStream() });
    expectWholeWait(othersForMs);
    await setIdle('one', 30_000);
    expect((await read('two', { claimAfterMs: 50_000 })).othersForMs).toBeLessThanOrEqual(20_000);
    expect(await read('two', { claimAfterMs: 30_000 })).toMatchObject({ othersForMs: 0, payoutIds: ['a', 'b'] });
    expect((await read('one')).othersForMs).toBeGreaterThan(0);
  });

  it('continues with later ones when those in hand were trimmed', async () => {
    const { eventIds } = await read('one', { limit: 2 });
    await account.redis.xdel(account.connection.keys.events, ...eventIds);
    expect((await read('one')).payoutIds).toEqual(['c']);
  });
});

describe('acknowledging', () => {
  it('is for the consumer that has the event, once; 0 says also that there is no such group or event', async () => {
    expect(await acknowledge('one', '1-1')).toBe(0);
    const [eventId] = (await read('one')).eventIds;
    expect(await acknowledge('one', '1-1')).toBe(0);
    expect(await acknowledge('two', eventId)).toBe(0);
    expect(await acknowledge('one', eventId)).toBe(1);
    expect(await acknowledge('one', eventId)).toBe(0);
  });

  it('fails for any other reason that there is', async () => {
    const { events } = account.connection.keys;
    await account.redis.del(events);
    await account.redis.set(events, 'not a stream');
    await expect(acknowledge('one', '1-1')).rejects.toThrow('WRONGTYPE');
  });
});

describe('saying for how long a consumer was silent', () => {
  it('is about all that it has, or as many as asked for, and says how many those are', async () => {
    await read('one', { limit: 2 });
    expect(await setIdle('two', 70_000)).toBe(0);
    expect(await setIdle('one', 70_000, 1)).toBe(1);
    expect((await read('two')).othersForMs).toBeGreaterThan(0);
    expect(await setIdle('one', 70_000)).toBe(2);
    expect((await read('two')).payoutIds).toEqual(['a', 'b']);
  });

  it('keeps the events when it is 0, and does not count as another delivery', async () => {
    const [eventId = ''] = (await read('one')).eventIds;
    await setIdle('one', 70_000);
    expect(await setIdle('one', 0)).toBe(3);
    expectWholeWait((await read('two')).othersForMs);
    const pending = await account.redis.xpending(account.connection.keys.events, 'books', eventId, eventId, 1);
    expect(pending).toMatchObject([[eventId, 'one', expect.any(Number), 1]]);
  });
});

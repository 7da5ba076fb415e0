import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { EventsOptions } from '../../src/producer/events/event-group.js';
import type { PayoutEvent } from '../../src/producer/events/payout-events.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { openTestAccount, type TestAccount } from '../ledger/support/test-account.js';
import { testRedisUrl } from '../support/account.js';
import { payoutInput } from './support/payout-input.js';

let account: TestAccount;
let producer: PayoutProducer;

beforeEach(() => {
  account = openTestAccount();
  producer = open();
});

afterEach(async () => {
  await producer.close();
  await account.close();
});

function open(): PayoutProducer {
  return new PayoutProducer({ platformId: account.platformId, redisUrl: testRedisUrl() });
}

async function enqueue(...payoutIds: string[]): Promise<void> {
  await producer.enqueueMany(payoutIds.map((payoutId) => payoutInput({ payoutId })));
}

const BOOKS = { group: 'books', consumer: 'one' };

/** Takes `count` events and leaves the loop by `break`, the last one unacknowledged. */
async function take(count: number, options: EventsOptions = BOOKS, from = producer): Promise<string[]> {
  const seen: string[] = [];
  for await (const { payoutId = '' } of from.events(options)) {
    seen.push(payoutId);
    if (seen.length === count) break;
  }
  return seen;
}

describe('events', () => {
  it('give a group what happened before and what happens then, with all that is known of it', async () => {
    await enqueue('a');
    const events: PayoutEvent[] = [];
    const stop = new AbortController();
    for await (const event of producer.events({ ...BOOKS, signal: stop.signal })) {
      events.push(event);
      if (events.length === 1) void producer.cancel('a', { by: 'ann', reason: 'twice' });
      else stop.abort();
    }
    const every = { eventId: expect.stringMatching(/^\d+-\d+$/), type: 'state', payoutId: 'a' };
    const at: unknown = expect.stringMatching(/Z$/);
    expect(events).toEqual([
      { ...every, to: 'queued', at },
      { ...every, from: 'queued', to: 'cancelled', at, by: 'ann', reason: 'twice' },
    ]);
  });

  it('come again after a break or an error in the loop, but not after the signal ended it', async () => {
    await enqueue('a', 'b');
    const failing = async (): Promise<void> => {
      for await (const event of producer.events(BOOKS)) throw new Error(`cannot book ${event.payoutId ?? ''}`);
    };
    await expect(failing()).rejects.toThrow('cannot book a');
    const stop = new AbortController();
    for await (const { payoutId } of producer.events({ ...BOOKS, signal: stop.signal })) {
      expect(payoutId).toBe('a');
      stop.abort();
    }
    expect(await take(1)).toEqual(['b']);
  });

  it('are lost to a consumer that was silent for too long: it continues behind the one that took over', async () => {
    await enqueue('a', 'b', 'c');
    const [stalled, other] = [producer.events({ ...BOOKS, claimAfterMs: 60_000 }), open()];
    expect((await stalled.next()).value).toMatchObject({ payoutId: 'a' });
    await account.connection.run('set-group-idle', ['books', 'one', 30_000, 100]);
    expect(await take(3, { ...BOOKS, consumer: 'two', claimAfterMs: 1_000 }, other)).toEqual(['a', 'b', 'c']);
    expect((await stalled.next()).value).toMatchObject({ payoutId: 'c' });
    await stalled.return();
    await other.close();
  });
});

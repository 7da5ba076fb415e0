import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { PAYOUTS_PER_COUNT, readBatchCounts } from '../../src/ledger/reads/batches.js';
import { PAYOUTS_PER_CHANGE } from '../../src/ledger/payout-ledger.js';
import type { LedgerConnection, RunScript } from '../../src/ledger/ledger-connection.js';
import { removePayouts } from '../../src/ledger/remove-payouts.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

const ANN = { by: 'ann', reason: 'test' };
/** Large enough that its counts are kept. */
const LARGE = 5_200;

let account: TestAccount;
let nextId = 0;

beforeEach(() => {
  account = openTestAccount();
  nextId = 0;
});
afterEach(async () => account.close());

async function enqueue(count: number, batch = 'b'): Promise<string[]> {
  const payouts = Array.from({ length: count }, () => aPayout(`p-${nextId++}`, { batch }));
  await account.ledger.enqueue(payouts);
  return payouts.map(({ payoutId }) => payoutId);
}

async function cancel(payoutIds: readonly string[]): Promise<void> {
  for (let start = 0; start < payoutIds.length; start += PAYOUTS_PER_CHANGE) {
    const payouts = payoutIds.slice(start, start + PAYOUTS_PER_CHANGE).map((payoutId) => ({ payoutId }));
    await account.ledger.changeMany({ from: 'queued', to: 'cancelled', payouts, isOneAct: true, ...ANN });
  }
}

/** Each record read, one by one. */
async function countDirectly(batch = 'b'): Promise<Record<string, number>> {
  const { redis, keys } = account.connection;
  const counts: Record<string, number> = {};
  for (const payoutId of await redis.zrange(keys.batch(batch), '0', '-1')) {
    const state = (await redis.hget(keys.payout(payoutId), 'state')) ?? '';
    counts[state] = (counts[state] ?? 0) + 1;
  }
  return counts;
}

async function count(connection: LedgerConnection = account.connection, batch = 'b'): Promise<Record<string, number>> {
  const { total, counts } = await readBatchCounts(connection, batch);
  const some = Object.fromEntries([...counts].filter(([, number]) => number !== 0));
  expect(total).toBe(Object.values(some).reduce((sum, number) => sum + number, 0));
  return some;
}

/** A connection that does something before each script. */
function intercepted(before: (keys: readonly string[]) => Promise<void>): LedgerConnection {
  const run: RunScript = async (name, args, keys = []) => {
    await before(keys);
    return account.connection.run(name, args, keys);
  };
  return { ...account.connection, run };
}

/** How many records a count reads. */
async function countRead(): Promise<{ readonly counts: Record<string, number>; readonly records: number }> {
  let records = 0;
  const watched = intercepted(async (keys) => {
    records += keys.length - 1;
    return Promise.resolve();
  });
  const counts = await count(watched);
  return { counts, records };
}

it('counts a batch by state, and keeps nothing of a small one', async () => {
  const [first = '', second = ''] = await enqueue(700);
  await cancel([first, second]);
  expect(await count()).toEqual({ queued: 698, cancelled: 2 });
  expect(await account.redis.exists(account.connection.keys.batchCounts('b'))).toBe(0);
  expect(await readBatchCounts(account.connection, 'none')).toEqual({ total: 0, counts: new Map() });
});

it('fails as soon as the page fails that it asks for beside a count: otherwise nobody would handle that', async () => {
  await enqueue(PAYOUTS_PER_COUNT + 1);
  let pages = 0;
  const redis = new Proxy(account.redis, {
    get: (target, name) =>
      name === 'zrange' && ++pages === 2
        ? async () => Promise.reject(new Error('the page'))
        : (Reflect.get(target, name) as unknown),
  });
  const connection = intercepted(async () => {
    await sleep(50);
    throw new Error('the count');
  });
  await expect(readBatchCounts({ ...connection, redis }, 'b')).rejects.toThrow('the page');
});

describe('a large batch', () => {
  it('is counted once, and followed from then on, also where it grows beside another', async () => {
    const payoutIds = await enqueue(LARGE);
    expect(await countRead()).toEqual({ counts: { queued: LARGE }, records: LARGE });
    await cancel(payoutIds.slice(0, 60));
    await enqueue(7);
    await cancel((await enqueue(9, 'other')).slice(0, 4));
    expect(await countRead()).toEqual({ counts: { queued: LARGE - 53, cancelled: 60 }, records: 0 });
    // Nothing happened since.
    expect(await countRead()).toEqual({ counts: { queued: LARGE - 53, cancelled: 60 }, records: 0 });
    expect(await account.redis.ttl(account.connection.keys.batchCounts('b'))).toBeGreaterThan(86_000);
  });

  it('is counted right although payouts change, and come, between any two of its parts', async () => {
    const payoutIds = await enqueue(LARGE);
    let step = 0;
    const moving = intercepted(async () => {
      step += 1;
      // Some of a part that is counted, some of one that is not, and one that comes behind all.
      await cancel([payoutIds[step], payoutIds[step * 400 - 1], payoutIds.at(-step)].flatMap((id) => id ?? []));
      await cancel((await enqueue(2)).slice(0, 1));
    });
    const counted = await count(moving);
    expect(step).toBeGreaterThan(LARGE / PAYOUTS_PER_COUNT);
    expect(counted).toEqual(await countDirectly());
    expect((await countRead()).records).toBe(0);
  });

  it('counts a change that an interrupted script has not told once it is told', async () => {
    const [first = ''] = await enqueue(LARGE);
    const record = account.connection.keys.payout(first);
    const interrupted = { state: 'cancelled', n: '2', h1: '1\tcancelled\tann\ttest', pending: 'queued' };
    await account.redis.hset(record, interrupted);
    expect(await count()).toEqual({ queued: LARGE });
    // The next script that opens the record completes the change.
    await account.ledger.enqueue([aPayout(first, { batch: 'b' })]);
    expect(await countRead()).toEqual({ counts: { queued: LARGE - 1, cancelled: 1 }, records: 0 });
  });

  it.each<[string, (payoutIds: readonly string[]) => Promise<unknown>]>([
    [
      'payouts were removed',
      async () => removePayouts(account.connection, 'cancelled', account.clock.wallNow() + 1, 10),
    ],
    [
      'the events are trimmed',
      async (payoutIds) => {
        await cancel(payoutIds.slice(10, 12));
        await account.redis.xtrim(account.connection.keys.events, 'MAXLEN', 1);
      },
    ],
    ['what was kept makes no sense', async () => account.redis.set(account.connection.keys.batchCounts('b'), '{"a')],
    ['what was kept is none', async () => account.redis.set(account.connection.keys.batchCounts('b'), 'null')],
    ['much has happened since', async (payoutIds) => cancel(payoutIds.slice(100, 2_100))],
  ])('is counted from the beginning where %s', async (_, happens) => {
    const payoutIds = await enqueue(LARGE);
    await cancel(payoutIds.slice(0, 5));
    expect(await count()).toEqual({ queued: LARGE - 5, cancelled: 5 });
    await happens(payoutIds);
    await cancel(payoutIds.slice(5, 10));
    const { counts, records } = await countRead();
    expect(counts).toEqual(await countDirectly());
    expect(records).toBeGreaterThan(LARGE - 6);
    expect((await countRead()).records).toBe(0);
  });
});

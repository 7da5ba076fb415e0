import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { readGatewayFacts, writeGatewayFacts } from '../../src/ledger/reads/gateway-facts.js';
import { readEvents } from '../../src/producer/events/payout-events.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

/** Someone who can write to Redis writes what nobody can read: the rest is told all the same. */

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

it.each([
  ['zz', 'x'],
  ['currencies', '{'],
  ['currencies', '{"currencies":7}'],
  ['failure', 'null'],
])('of the gateway, %s = %s is left out', async (field, text) => {
  const { connection, redis } = account;
  const balance = [{ paymentId: 6, symbol: undefined, amount: '5' }];
  await writeGatewayFacts(connection, { balance, balanceAt: 1 });
  await redis.hset(connection.keys.gateway, field, text);
  expect(await readGatewayFacts(connection)).toMatchObject({
    currencies: [],
    balance: [{ paymentId: 6, amount: '5' }],
  });
});

it.each([
  ['a time that is none', ['at', 'soon']],
  ['no field that is known', ['x', 'y']],
  ['a time beyond all dates', ['at', '9e99']],
])('an event with %s hides no other', async (_, fields) => {
  const { connection, redis, ledger } = account;
  await redis.xadd(connection.keys.events, '*', ...fields);
  await ledger.enqueue([aPayout('p')]);
  const events = await readEvents(connection, { sinceMs: 0 }, 10);
  expect(events).toHaveLength(2);
  expect(events[1]).toMatchObject({ payoutId: 'p', to: 'queued' });
  expect(Date.parse(events[0]?.at ?? '')).toBeGreaterThan(0);
});

it.each([
  ['events', 'SET'],
  ['events', 'a last id after which none is possible'],
  ['outbox', 'SET'],
  ['state:queued', 'SET'],
  ['scheduled', 'SET'],
  ['batch:september', 'SET'],
] as const)('a payout that enqueue refuses because of a damaged key is not stored (%s: %s)', async (name, damage) => {
  const { connection, redis, ledger } = account;
  const key = `${connection.keys.prefix}:${name}`;
  const notBefore = '2040-01-01T00:00:00.000Z';
  const payouts = ['p', 'q'].map((payoutId) => ({ ...aPayout(payoutId), batch: 'september', notBefore }));
  await ledger.enqueue([aPayout('before')]);
  if (damage === 'SET') await redis.set(key, 'x');
  // The first of the two events can be written, the second cannot.
  else await redis.xadd(key, '18446744073709551615-18446744073709551614', 'type', 'state');
  const damaged = await redis.dumpBuffer(key);
  await expect(ledger.enqueue(payouts)).rejects.toThrow('enqueue-payouts');

  const stored = await redis.keys(`${connection.keys.prefix}:*`);
  expect(stored.filter((each) => /:payout:[pq]$/.test(each))).toEqual([]);
  for (const index of [connection.keys.outbox, connection.keys.state('queued'), connection.keys.scheduled]) {
    if (index !== key) expect((await redis.zrange(index, '0', '-1')).join()).not.toMatch(/\b[pq]\b/);
  }
  if (damage === 'SET') expect(await redis.dumpBuffer(key)).toEqual(damaged);
  else expect(await redis.xlen(key)).toBe(2);

  await redis.del(key);
  const accepted = await ledger.enqueue(payouts);
  expect(accepted.map(({ kind }) => kind)).toEqual(['created', 'created']);
});

import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LedgerKeys } from '../../src/ledger/keys.js';
import { until } from '../support/until.js';
import { openWorld, type PayoutWorld } from './support/payout-world.js';

/** What can never be sent, however often it is tried: each of these stood at the head of the queue for good. */

/** Fields as someone who writes to Redis sets them. */
const ALTERED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'amount below zero': { amount: '-5' },
  'amount that is no number': { amount: 'all' },
  'amount with an exponent': { amount: '1e3' },
  'address too long': { addressTo: 'x'.repeat(300) },
  'address with a line break': { addressTo: 'a\nb' },
  'symbol in lower case': { symbol: 'usd' },
  'currency that is none': { paymentId: 'six' },
  'attempt that is no number': { attempt: 'NaN' },
  'attempt beyond all': { attempt: '100001' },
};
/** Records that nobody can read as a payout; what they say of their state is left. */
const UNREADABLE: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'metadata that is no JSON': { metadata: '{' },
  'number of entries that is none': { n: 'x' },
  'history that is none': { h0: 'zz' },
  'count of decisions that is none': { decisions: 'x' },
};
/** What the script cannot read either. */
const UNHOLDABLE = ['interrupted change from no state', 'no hash'] as const;

let world: PayoutWorld;
let redis: Redis;
let keys: LedgerKeys;
const idOf = (name: string): string => name.replaceAll(' ', '-');

beforeAll(async () => {
  world = await openWorld();
  redis = new Redis(world.redisUrl);
  keys = new LedgerKeys(world.platformId);
  const altered = { ...ALTERED, ...UNREADABLE };
  for (const name of [...Object.keys(altered), ...UNHOLDABLE, 'priority', 'honest']) {
    const payout = { paymentId: 6, amount: '1', addressTo: `wallet-${idOf(name).toLowerCase()}` };
    await world.producer.enqueue({ payoutId: idOf(name), ...payout, ...(name === 'priority' && { priority: 3 }) });
  }
  await until('all have a job', async () => (await redis.zcard(keys.outbox)) === 0);
  for (const [name, fields] of Object.entries(altered)) await redis.hset(keys.payout(idOf(name)), fields);
  const [pending, noHash] = UNHOLDABLE;
  await redis.hset(keys.payout(idOf(pending)), 'pending', 'elsewhere');
  await redis.set(keys.payout(idOf(noHash)), 'text');
  // The relay gives it its job: BullMQ refuses a priority that is none, and with it the jobs beside it.
  await redis.hset(keys.payout('priority'), 'priority', '0.5');
  await redis.zrem(`${keys.prefix}:withdraw:prioritized`, 'priority~0');
  await redis.del(`${keys.prefix}:withdraw:priority~0`);
  await redis.zadd(keys.outbox, 1, 'queued priority');
  world.startWorker();
  await until(
    'the honest payout behind all of them is paid',
    async () => (await world.producer.get('honest'))?.state === 'completed',
    60_000,
  );
}, 120_000);

afterAll(async () => {
  redis.disconnect();
  await world.close();
});

const stateOf = async (name: string): Promise<string | null> => redis.hget(keys.payout(idOf(name)), 'state');

async function tamperingOf(name: string): Promise<string | undefined> {
  const events = await redis.xrange(keys.events, '-', '+');
  const told = events.map(([, pairs]) => pairs).find((pairs) => pairs[1] === 'tampering' && pairs[3] === idOf(name));
  return told?.at(-1);
}

it.each(Object.entries(ALTERED))('%s: held, with the event tampering that names the field', async (name, fields) => {
  expect(await stateOf(name)).toBe('held');
  expect(await tamperingOf(name)).toContain(`fields: It can never be sent: ${Object.keys(fields)[0] ?? ''}: `);
});

it.each(Object.keys(UNREADABLE))('%s: held, with the event tampering', async (name) => {
  expect(await stateOf(name)).toBe('held');
  expect(await tamperingOf(name)).toContain('cannot be read');
});

it('what no script can hold keeps nobody waiting', async () => {
  expect(await stateOf(UNHOLDABLE[0])).toBe('queued');
});

it('a priority that is none counts for none', async () => {
  await until('it is paid', async () => (await world.producer.get('priority'))?.state === 'completed', 20_000);
});

it('nothing else was sent', () => {
  const sent = world.sandbox.payments().map(({ addressTo }) => addressTo);
  expect(sent.sort()).toEqual(['wallet-honest', 'wallet-priority']);
});

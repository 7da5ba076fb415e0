import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { openTestAccount, type TestAccount } from '../ledger/support/test-account.js';
import { until } from '../support/until.js';
import { openWorld, type PayoutWorld } from './support/payout-world.js';

/** What can never be sent, as someone who writes to Redis makes it. None of it may stay at the head of the queue. */
const ALTERED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'amount below zero': { amount: '-5' },
  'amount with an exponent': { amount: '1e3' },
  'address too long': { addressTo: 'x'.repeat(300) },
  'currency that is none': { paymentId: 'six' },
  'attempt beyond all': { attempt: '100001' },
};
/** Records that nobody can read as a payout. */
const UNREADABLE: typeof ALTERED = {
  'metadata that is no JSON': { metadata: '{' },
  'number of entries that is none': { n: 'x' },
  'count of decisions that is none': { decisions: 'x' },
};
/** What the script cannot read either. */
const [PENDING, NO_HASH] = ['interrupted change from no state', 'no hash'] as const;

let world: PayoutWorld;
let account: TestAccount;
const idOf = (name: string): string => name.replaceAll(' ', '-');
const isPaid = async (payoutId: string): Promise<boolean> =>
  (await world.producer.get(payoutId))?.state === 'completed';

beforeAll(async () => {
  world = await openWorld();
  account = openTestAccount(world.platformId);
  const { redis, connection } = account;
  const { keys } = connection;
  const altered = { ...ALTERED, ...UNREADABLE };
  for (const name of [...Object.keys(altered), PENDING, NO_HASH, 'priority', 'honest']) {
    const payout = { paymentId: 6, amount: '1', addressTo: `wallet-${idOf(name).toLowerCase()}` };
    await world.producer.enqueue({ payoutId: idOf(name), ...payout, ...(name === 'priority' && { priority: 3 }) });
  }
  await until('all have a job', async () => (await redis.zcard(keys.outbox)) === 0);
  for (const [name, fields] of Object.entries(altered)) await redis.hset(keys.payout(idOf(name)), fields);
  await redis.hset(keys.payout(idOf(PENDING)), 'pending', 'elsewhere');
  await redis.set(keys.payout(idOf(NO_HASH)), 'text');
  // The relay gives it its job: BullMQ refuses a priority that is none, and with it the jobs beside it.
  await redis.hset(keys.payout('priority'), 'priority', '0.5');
  await redis.zrem(`${keys.prefix}:withdraw:prioritized`, 'priority~0');
  await redis.del(`${keys.prefix}:withdraw:priority~0`);
  await redis.zadd(keys.outbox, 1, 'queued priority');
  world.startWorker();
  await until('the honest payout behind all of them is paid', async () => isPaid('honest'));
}, 120_000);

afterAll(async () => {
  await world.close();
  await account.close();
});

const stateOf = async (name: string): Promise<string | null> =>
  account.redis.hget(account.connection.keys.payout(idOf(name)), 'state');

it.each([
  ...Object.entries(ALTERED).map(([name, fields]) => [name, `It can never be sent: ${Object.keys(fields)[0] ?? ''}: `]),
  ...Object.keys(UNREADABLE).map((name) => [name, 'cannot be read']),
] as [string, string][])('%s: held, with the event tampering: %s', async (name, words) => {
  expect(await stateOf(name)).toBe('held');
  const events = await account.redis.xrange(account.connection.keys.events, '-', '+');
  const told = events.find(([, pairs]) => pairs[1] === 'tampering' && pairs[3] === idOf(name));
  expect(told?.[1].at(-1)).toContain(words);
});

it('what no script can hold keeps nobody waiting, and a priority that is none counts for none', async () => {
  expect(await stateOf(PENDING)).toBe('queued');
  await until('it is paid', async () => isPaid('priority'), 20_000);
  const sent = world.sandbox.payments().map(({ addressTo }) => addressTo);
  expect(sent.sort()).toEqual(['wallet-honest', 'wallet-priority']);
});

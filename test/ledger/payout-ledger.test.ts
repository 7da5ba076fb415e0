import { createHash } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { ConflictError, UnreadableRecordError } from '../../src/base/errors.js';
import { systemClock } from '../../src/base/clock.js';
import { connectLedger } from '../../src/ledger/ledger-connection.js';
import { PayoutLedger, wrongStateError } from '../../src/ledger/payout-ledger.js';
import { RedisSenderLedger } from '../../src/ledger/redis-sender-ledger.js';
import { readAccountStats } from '../../src/ledger/reads/account-stats.js';
import { readActivity } from '../../src/ledger/reads/activity.js';
import { removePayouts } from './support/remove-payouts.js';
import {
  account,
  aPayout,
  begin,
  beginOne,
  change,
  clock,
  connection,
  enqueue,
  enter,
  HOLD,
  keys,
  ledger,
  names,
  redis,
  sender,
  stateOf,
  takeLease,
  unchanged,
  useAccount,
} from './support/use-account.js';
import { openTestAccount } from './support/test-account.js';

useAccount();

const AT = '2030-01-01T00:00:00.000Z';
const get = async (payoutId: string) => ledger.get(payoutId);
const queued = async () => redis.zrange(keys.state('queued'), '0', '-1');
const removeCancelled = async () => removePayouts(connection, 'cancelled', clock.wallNow() + 1, 10);

const conflict = (message: string, field: string) =>
  expect.objectContaining({ code: 'CONFLICT', message: expect.stringContaining(message), fields: [field] });

it('enqueue accepts a payout with everything that was said of it', async () => {
  const said = {
    symbol: 'USD',
    priority: 3,
    reference: 'invoice 7',
    metadata: { lines: [1, null, 'x'] },
    batch: 'b',
  };
  const given = aPayout('p', { ...said, amount: '0.100', notBefore: '2031-01-31T10:00:00+01:00' });
  expect(await ledger.enqueue([given])).toEqual([{ kind: 'created', payoutId: 'p' }]);
  expect(await get('p')).toEqual({
    ...said,
    ...{ payoutId: 'p', paymentId: 7, amount: '0.1', addressTo: 'wallet-1', notBefore: '2031-01-31T09:00:00.000Z' },
    ...{ state: 'queued', final: false, attempt: 0, requeueCount: 0, createdAt: AT, updatedAt: AT },
    history: [{ at: AT, to: 'queued' }],
  });
});

it('enqueue returns the payout that is there when the same is said again, in whatever form', async () => {
  const notBefore = '2031-01-01T00:00:00Z';
  await ledger.enqueue([aPayout('p', { amount: '12.50', metadata: { a: 1, b: { c: 0 } }, notBefore })]);
  await change('p', 'queued', 'cancelled');
  const same = { amount: '12.5', metadata: { b: { c: -0 }, a: 1 }, notBefore: new Date(notBefore), batch: 'another' };
  const results = await unchanged(async () => ledger.enqueue([aPayout('p', same)]));
  expect(results).toMatchObject([{ kind: 'exists', payout: { state: 'cancelled' } }]);
});

it.each([
  [{ amount: '13' }, ['amount']],
  [{ paymentId: 8, addressTo: 'w' }, ['paymentId', 'addressTo']],
  [{ symbol: 'USD', priority: 1, reference: 'r' }, ['symbol', 'priority', 'reference']],
  [{ notBefore: '2031-01-01T00:00:00Z', metadata: {} }, ['notBefore', 'metadata']],
])('enqueue names what differs from the payout that is there: %j', async (other, fields) => {
  await enqueue('p');
  const results = await unchanged(async () => ledger.enqueue([aPayout('p', other)]));
  expect(results).toEqual([{ kind: 'conflict', payoutId: 'p', state: 'queued', fields }]);
});

it('enqueue returns results in the order of the payouts, also when one is given twice', async () => {
  await enqueue('b');
  const given = [aPayout('a'), aPayout('b'), aPayout('a'), aPayout('a', { amount: '1' })];
  const kinds = (await ledger.enqueue(given)).map(({ kind }) => kind);
  expect(kinds).toEqual(['created', 'exists', 'exists', 'conflict']);
  expect(await ledger.enqueue([])).toEqual([]);
});

it.each(['events', 'outbox', 'scheduled'] as const)(
  'enqueue stores nothing while the key %s is of another type, says so, and accepts the payout afterwards',
  async (name) => {
    await redis.set(keys[name], 'altered');
    const dated = aPayout('p', { notBefore: '2031-01-01T00:00:00Z' });
    const accepting = async () => ledger.enqueue([aPayout('q'), dated]);
    for (let tries = 0; tries < 2; tries += 1) await expect(accepting()).rejects.toThrow(UnreadableRecordError);
    const indexed = await redis.zrange(keys.state('queued'), 0, '-1');
    expect([await ledger.get('p'), await ledger.get('q'), indexed]).toEqual([undefined, undefined, []]);
    await redis.del(keys[name]);
    expect(await accepting()).toMatchObject([{ kind: 'created' }, { kind: 'created' }]);
  },
);

/** Every key of an account with what it holds; the ids of events are Redis's own. */
async function readAll({ redis: client, connection: { keys: own } }: typeof account): Promise<unknown> {
  const all = (await client.keys(`${own.prefix}:*`)).sort();
  const contents = await Promise.all(
    all.map(async (key): Promise<unknown> => {
      const type = await client.type(key);
      if (type === 'hash') return client.hgetall(key);
      if (type === 'stream') return (await client.xrange(key, '-', '+')).map(([, fields]) => fields);
      return type === 'zset' ? client.zrange(key, 0, '-1', 'WITHSCORES') : { type };
    }),
  );
  return Object.fromEntries(all.map((key, index) => [key.slice(own.prefix.length), contents[index]]));
}

it('payouts that are enqueued together are stored to the field like those that are enqueued one by one', async () => {
  const signed = {
    key: 'k',
    signature: 's'.repeat(86),
    audience: 'test',
    issuedAt: AT,
    expiresAt: '2030-01-02T00:00:00.000Z',
  };
  const payouts = [
    aPayout('a', { batch: 'b', reference: 'r "\\ \u{1f4b6}', metadata: { text: 'ä\u0000\ud800', list: [1.5, null] } }),
    aPayout('c', { symbol: 'USD', priority: 2_097_152, notBefore: '2031-01-01T00:00:00Z' }),
    { ...aPayout('d', { batch: 'b', amount: '123456789012345678901234567890.000000000000000001' }), signed },
    ...names(40).map((payoutId) => aPayout(payoutId)),
  ];
  const other = openTestAccount();
  try {
    await ledger.enqueue(payouts);
    for (const payout of payouts) await other.ledger.enqueue([payout]);
    const together = await readAll(account);
    expect(together).toEqual(await readAll(other));
    // Nothing is left to complete.
    expect(JSON.stringify(together)).not.toContain('pending');
    expect(await get('a')).toMatchObject({ reference: 'r "\\ \u{1f4b6}', metadata: { text: 'ä\u0000\ud800' } });
  } finally {
    await other.close();
  }
});

it('enqueue sends 1000 payouts to Redis in one round trip: nothing waits for a reply', async () => {
  const seen = { asked: 0, replies: 0 };
  const counting = new PayoutLedger({
    ...connection,
    run: async (...call) => {
      seen.asked += 1;
      const reply = await connection.run(...call);
      seen.replies += 1;
      return reply;
    },
  });
  const ids = names(1_000);
  const results = counting.enqueue(ids.map((payoutId) => aPayout(payoutId)));
  expect(seen).toEqual({ asked: 10, replies: 0 });
  expect((await results).map((result) => 'payoutId' in result && result.payoutId)).toEqual(ids);
  expect(await queued()).toEqual(ids);
});

it('enqueue does not accept a payout again that retention removed, and tells its state', async () => {
  await enter('cancelled', 'p');
  expect(await removeCancelled()).toHaveLength(1);
  expect(await ledger.enqueue([aPayout('p'), aPayout('q')])).toEqual([
    { kind: 'removed', payoutId: 'p', state: 'cancelled' },
    { kind: 'created', payoutId: 'q' },
  ]);
  expect(await get('p')).toBeUndefined();
});

it('enqueue puts a payout without a batch into the index of none', async () => {
  await ledger.enqueue([aPayout('p'), aPayout('q', { batch: 'b' })]);
  const { prefix } = keys;
  expect(await redis.keys(`${prefix}:batch:*`)).toEqual([`${prefix}:batch:b`]);
  expect(await redis.zrange(`${prefix}:batch:b`, '0', '-1')).toEqual(['q']);
});

it('change of which nobody said who or why has neither in its history', async () => {
  await enter('cancelled', 'p');
  expect((await get('p'))?.history.at(-1)).toStrictEqual({ at: AT, from: 'queued', to: 'cancelled' });
  const fields = await redis.hkeys(keys.payout('p'));
  expect(fields.sort()).toEqual(['addressTo', 'amount', 'attempt', 'h0', 'h1', 'n', 'paymentId', 'state']);
});

it('change says what was found and what would be allowed, and changes nothing', async () => {
  await enqueue('p');
  const wrong = async () =>
    change('p', 'rejected', 'queued', { gatewayId: 'h', fee: '1' }).catch((error: unknown) => error);
  expect(await unchanged(wrong)).toEqual(
    conflict(
      'Cannot move payout p from queued to queued: that needs rejected. Allowed from queued: sending, cancelled',
      'state',
    ),
  );
  await change('p', 'queued', 'cancelled');
  const again = change('p', 'queued', 'cancelled');
  await expect(again).rejects.toThrow('Allowed from cancelled: none, it is final');
  await expect(again).rejects.toBeInstanceOf(ConflictError);
  expect(wrongStateError('p', 'rejected', 'held', 'queued').message).toMatch(/`payouts retry` queues it again$/);
  expect(wrongStateError('p', undefined, 'queued', 'cancelled')).toEqual(conflict('Payout p is not queued', 'state'));
});

const sha1 = (text: string) => createHash('sha1').update(text).digest('hex');
const bucketOf = (text: string) => sha1(text).slice(0, 3);

it('what is stored lies in buckets that a later version finds again', async () => {
  await enter('in_progress', 'p');
  await enter('cancelled', 'q');
  await removeCancelled();
  const { prefix } = keys;
  expect(await redis.hgetall(`${prefix}:gatewayId:${bucketOf('hash-p')}`)).toEqual({
    [sha1('hash-p').slice(3, 23)]: 'p',
  });
  expect(await redis.hgetall(`${prefix}:removed:${bucketOf('q')}`)).toEqual({ q: 'cancelled' });
});

it('each who pauses has a pause, whose first reason stays, and a resume ends one', async () => {
  expect(await ledger.pause('ann', 'holiday')).toBe(true);
  expect(await ledger.pause('ann', 'another')).toBe(false);
  const paused = { pausedReason: 'holiday', pausedBy: 'ann', pausedAt: String(clock.wallNow()) };
  expect(await redis.hgetall(keys.ledger)).toMatchObject(paused);
  for (const [by, reason] of [
    ['worker', 'blocked'],
    ['bob', 'audit'],
  ] as const)
    expect(await ledger.pause(by, reason)).toBe(true);
  const standing = async () => (await readAccountStats(connection)).pauses.map(({ by, reason }) => `${by}: ${reason}`);
  expect(await standing()).toEqual(['ann: holiday', 'worker: blocked', 'bob: audit']);
  // Whose pause it is not must say which is over.
  const refused = ledger.resume('zoe', 'back', 'act');
  await expect(refused).rejects.toThrow(/these pauses: ann, worker, bob\. .* --of worker --reason WHY/);
  expect(await ledger.resume('ann', 'back', 'act')).toBe(true);
  expect(await standing()).toEqual(['worker: blocked', 'bob: audit']);
  expect(await ledger.resume('zoe', 'unblocked', 'act', 'worker')).toBe(true);
  // An act that ends not all would end a pause that a worker keeps.
  expect(await redis.hgetall(keys.ledger)).toMatchObject({ pausedReason: 'audit', pausedBy: 'bob' });
  expect(await redis.hexists(keys.ledger, 'resumeAct')).toBe(0);
  expect(await ledger.resume('zoe', 'back', 'act')).toBe(true);
  expect(await ledger.resume('zoe', 'back')).toBe(false);
  expect(await redis.hgetall(keys.ledger)).toEqual({ format: '1', acts: '6', resumeAct: 'act' });
  const { activities } = await readActivity(connection, 10);
  expect(activities.map(({ what, by }) => `${what} ${by}`)).toEqual([
    ...['resumed zoe', 'pause_ended zoe', 'pause_ended ann', 'paused bob', 'paused worker', 'paused ann'],
  ]);
});

const read = async (limit = 10, before = Infinity) => ledger.readOutbox(limit, before);

it('the outbox holds what needs a job, the oldest first, until cleared for that state', async () => {
  for (const payoutId of ['p', 'q']) {
    await enqueue(payoutId);
    clock.advance(1_000);
  }
  await change('p', 'queued', 'sending');
  await change('p', 'sending', 'in_progress', { gatewayId: 'h' });
  const [first, second, third] = [
    { state: 'queued', payoutId: 'p' },
    { state: 'queued', payoutId: 'q' },
    { state: 'in_progress', payoutId: 'p' },
  ];
  expect(await read()).toEqual([first, second, third]);
  expect(await read(1)).toEqual([first]);
  await ledger.clearOutbox('queued', ['p', 'q']);
  expect(await read()).toEqual([third]);
  await ledger.clearOutbox('in_progress', []);
  await ledger.clearOutbox('in_progress', ['p']);
  expect(await read()).toEqual([]);
});

it('the outbox leaves changes that are newer to the process that works on them', async () => {
  await enqueue('p');
  expect(await read(10, clock.wallNow())).toEqual([]);
  expect(await read(10, clock.wallNow() + 1)).toHaveLength(1);
});

it('the outbox holds nothing for states that need no job', async () => {
  await enqueue('p');
  await ledger.clearOutbox('queued', ['p']);
  await change('p', 'queued', 'cancelled');
  expect(await read(10, Number.MAX_SAFE_INTEGER)).toEqual([]);
});

it('the outbox is taken for empty only as a recent heartbeat showed it', async () => {
  let nowMs = 1_000;
  const clock = { ...systemClock, now: () => nowMs };
  const sender = new RedisSenderLedger(connectLedger(redis, account.platformId, clock), 'reply');
  const lease = await takeLease(sender, 'one');
  const isEmpty = async () => {
    await sender.renewLease(lease);
    return sender.isOutboxEmpty;
  };
  expect([sender.isOutboxEmpty, await isEmpty()]).toEqual([false, true]);
  await enqueue('p');
  expect(await isEmpty()).toBe(false);
  await ledger.clearOutbox('queued', ['p']);
  expect(await isEmpty()).toBe(true);
  nowMs += 4_900;
  expect(sender.isOutboxEmpty).toBe(true);
  nowMs += 200;
  expect(sender.isOutboxEmpty).toBe(false);
});

async function enqueueWith(payoutId: string, attempt: number) {
  await enqueue(payoutId);
  await redis.hset(keys.payout(payoutId), 'attempt', attempt);
}

it('the attempts of a payout in an impossible number begin nothing, and it can be held or cancelled', async () => {
  await enqueueWith('held', 10 ** 15);
  expect(await sender.holdPayout('held', 10 ** 15, HOLD)).toBe(true);
  await enqueueWith('cancelled', 10 ** 15);
  await expect(beginOne('cancelled')).rejects.toThrow('is beyond 100000');
  await change('cancelled', 'queued', 'cancelled');
  expect(await stateOf('cancelled')).toBe('cancelled');
});

it('the attempts of a payout may be ten thousand that were put back', async () => {
  await enqueueWith('p', 10_000);
  expect(await begin(sender, await takeLease(sender, 'a'), 'p')).toMatchObject({ attempt: 10_001 });
});

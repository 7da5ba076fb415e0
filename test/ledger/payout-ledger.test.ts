import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ConflictError, NotFoundError } from '../../src/base/errors.js';
import { PayoutLedger, wrongStateError } from '../../src/ledger/payout-ledger.js';
import { removePayouts } from '../../src/ledger/remove-payouts.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
let ledger: PayoutLedger;
beforeEach(() => {
  account = openTestAccount();
  ledger = account.ledger;
});
afterEach(async () => account.close());

describe('enqueue', () => {
  it('accepts a payout with everything that was said of it', async () => {
    const given = aPayout('p', {
      amount: '0.100',
      symbol: 'USD',
      priority: 3,
      notBefore: '2031-01-31T10:00:00+01:00',
      reference: 'invoice 7',
      metadata: { lines: [1, null, 'x'] },
      batch: 'b',
    });
    expect(await ledger.enqueue([given])).toEqual([{ kind: 'created', payoutId: 'p' }]);
    expect(await ledger.get('p')).toEqual({
      payoutId: 'p',
      paymentId: 7,
      amount: '0.1',
      addressTo: 'wallet-1',
      symbol: 'USD',
      priority: 3,
      notBefore: '2031-01-31T09:00:00.000Z',
      reference: 'invoice 7',
      metadata: { lines: [1, null, 'x'] },
      batch: 'b',
      state: 'queued',
      attempt: 0,
      requeueCount: 0,
      createdAt: '2030-01-01T00:00:00.000Z',
      updatedAt: '2030-01-01T00:00:00.000Z',
      history: [{ at: '2030-01-01T00:00:00.000Z', to: 'queued' }],
    });
  });

  it('returns the payout that is there when the same is said again, in whatever form', async () => {
    const metadata = { a: 1, b: { c: 0 } };
    await ledger.enqueue([aPayout('p', { amount: '12.50', metadata, notBefore: '2031-01-01T00:00:00Z' })]);
    await ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled' });
    const before = await account.dump();
    const again = aPayout('p', {
      amount: '12.5',
      metadata: { b: { c: -0 }, a: 1 },
      notBefore: new Date('2031-01-01'),
      batch: 'another',
    });
    expect(await ledger.enqueue([again])).toMatchObject([{ kind: 'exists', payout: { state: 'cancelled' } }]);
    expect(await account.dump()).toEqual(before);
  });

  it.each([
    [{ amount: '13' }, ['amount']],
    [{ paymentId: 8, addressTo: 'w' }, ['paymentId', 'addressTo']],
    [{ symbol: 'USD', priority: 1, reference: 'r' }, ['symbol', 'priority', 'reference']],
    [{ notBefore: '2031-01-01T00:00:00Z', metadata: {} }, ['notBefore', 'metadata']],
  ])('names what differs from the payout that is there: %j', async (change, fields) => {
    await ledger.enqueue([aPayout('p')]);
    const before = await account.dump();
    expect(await ledger.enqueue([aPayout('p', change)])).toEqual([
      { kind: 'conflict', payoutId: 'p', state: 'queued', fields },
    ]);
    expect(await account.dump()).toEqual(before);
  });

  it('becomes one payout when many ask for it at once', async () => {
    const results = await Promise.all(Array.from({ length: 50 }, async () => ledger.enqueue([aPayout('p')])));
    const kinds = results.flat().map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'created')).toHaveLength(1);
    expect(kinds.filter((kind) => kind === 'exists')).toHaveLength(49);
    expect(await account.redis.zcard(account.connection.keys.state('queued'))).toBe(1);
  });

  it('returns results in the order of the payouts, also when one is given twice', async () => {
    await ledger.enqueue([aPayout('b')]);
    const given = [aPayout('a'), aPayout('b'), aPayout('a'), aPayout('a', { amount: '1' })];
    expect((await ledger.enqueue(given)).map(({ kind }) => kind)).toEqual(['created', 'exists', 'exists', 'conflict']);
    expect(await ledger.enqueue([])).toEqual([]);
  });

  it('sends 1000 payouts to Redis in one round trip: nothing waits for a reply', async () => {
    let asked = 0;
    let replies = 0;
    const counting = new PayoutLedger({
      ...account.connection,
      run: async (...call) => {
        asked += 1;
        const reply = await account.connection.run(...call);
        replies += 1;
        return reply;
      },
    });
    const given = Array.from({ length: 1_000 }, (_, index) => aPayout(`p${index}`));
    const results = counting.enqueue(given);
    expect({ asked, replies }).toEqual({ asked: 10, replies: 0 });
    expect((await results).map((result) => 'payoutId' in result && result.payoutId)).toEqual(
      given.map(({ payoutId }) => payoutId),
    );
    const stored = await account.redis.zrange(account.connection.keys.state('queued'), '0', '-1');
    expect(stored).toEqual(given.map(({ payoutId }) => payoutId));
  });
});

describe('change', () => {
  it('records who, why, and what came with it', async () => {
    await ledger.enqueue([aPayout('p')]);
    account.clock.advance(60_000);
    await ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled', by: 'ann', reason: 'typed\twrong\n' });
    expect(await ledger.get('p')).toMatchObject({
      state: 'cancelled',
      updatedAt: '2030-01-01T00:01:00.000Z',
      history: [{}, { from: 'queued', to: 'cancelled', by: 'ann', reason: 'typed wrong' }],
    });
  });

  it('says that there is no such payout', async () => {
    const change = ledger.change({ payoutId: 'nobody', from: 'queued', to: 'cancelled' });
    await expect(change).rejects.toThrow(new NotFoundError('Payout nobody not found'));
  });

  it('says what was found and what would be allowed, and changes nothing', async () => {
    await ledger.enqueue([aPayout('p')]);
    const before = await account.dump();
    const change = ledger.change({ payoutId: 'p', from: 'rejected', to: 'queued', txhash: 'h', fee: '1' });
    await expect(change).rejects.toThrow(
      'Cannot move payout p from queued to queued: that needs rejected. Allowed from queued: sending, cancelled',
    );
    await expect(change).rejects.toBeInstanceOf(ConflictError);
    expect(await account.dump()).toEqual(before);
    await ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled' });
    await expect(ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled' })).rejects.toThrow(
      'Allowed from cancelled: none, it is final',
    );
  });

  it('gives a txhash to one payout only', async () => {
    await ledger.enqueue([aPayout('p'), aPayout('q')]);
    for (const payoutId of ['p', 'q']) await makeUnknown(payoutId);
    await ledger.change({ payoutId: 'p', from: 'unknown', to: 'in_progress', txhash: 'h' });
    const before = await account.dump();
    const second = ledger.change({ payoutId: 'q', from: 'unknown', to: 'in_progress', txhash: 'h' });
    await expect(second).rejects.toMatchObject({ code: 'CONFLICT', fields: ['txhash'] });
    await expect(second).rejects.toThrow('txhash h already belongs to payout p');
    expect(await account.dump()).toEqual(before);
    expect(await ledger.findByTxhash('h')).toBe('p');
    expect(await ledger.findByTxhash('other')).toBeUndefined();
  });

  it('stores fee and message, and counts that an operator requeued it', async () => {
    await ledger.enqueue([aPayout('p')]);
    await makeUnknown('p');
    await ledger.change({ payoutId: 'p', from: 'unknown', to: 'queued', by: 'ann', reason: 'was not sent' });
    expect(await ledger.get('p')).toMatchObject({ state: 'queued', requeueCount: 1 });
    await makeUnknown('p');
    await ledger.change({ payoutId: 'p', from: 'unknown', to: 'in_progress', txhash: 'h' });
    await ledger.change({ payoutId: 'p', from: 'in_progress', to: 'completed', fee: '0.5', message: 'done\n' });
    expect(await ledger.get('p')).toMatchObject({
      state: 'completed',
      fee: '0.5',
      message: 'done',
      txhash: 'h',
      requeueCount: 1,
    });
  });

  const makeUnknown = async (payoutId: string): Promise<void> => {
    await ledger.change({ payoutId, from: 'queued', to: 'sending' });
    await ledger.change({ payoutId, from: 'sending', to: 'unknown' });
  };
});

describe('what is stored', () => {
  const bucketOf = (text: string): string => createHash('sha1').update(text).digest('hex').slice(0, 3);

  it('is short: an entry of the history says who and why only where someone did', async () => {
    await ledger.enqueue([aPayout('p')]);
    await ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled', by: 'ann' });
    const at = account.clock.wallNow();
    const { keys } = account.connection;
    expect(await account.redis.hmget(keys.payout('p'), 'h0', 'h1')).toEqual([
      `${at}\tqueued`,
      `${at}\tcancelled\tann\t`,
    ]);
  });

  it('lies in buckets that a later version finds again', async () => {
    await ledger.enqueue([aPayout('p'), aPayout('q')]);
    await ledger.change({ payoutId: 'p', from: 'queued', to: 'sending' });
    await ledger.change({ payoutId: 'p', from: 'sending', to: 'in_progress', txhash: 'h' });
    await ledger.change({ payoutId: 'q', from: 'queued', to: 'cancelled' });
    await removePayouts(account.connection, 'cancelled', account.clock.wallNow() + 1, 10);
    const { prefix } = account.connection.keys;
    expect(await account.redis.hgetall(`${prefix}:txhash:${bucketOf('h')}`)).toEqual({ h: 'p' });
    expect(await account.redis.hgetall(`${prefix}:removed:${bucketOf('q')}`)).toEqual({ q: 'cancelled' });
  });
});

describe('a change', () => {
  it('of which nobody said who or why has neither in its history', async () => {
    await ledger.enqueue([aPayout('p')]);
    await ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled' });
    expect((await ledger.get('p'))?.history.at(-1)).toStrictEqual({
      at: '2030-01-01T00:00:00.000Z',
      from: 'queued',
      to: 'cancelled',
    });
    const fields = await account.redis.hkeys(account.connection.keys.payout('p'));
    expect(fields.sort()).toEqual(['addressTo', 'amount', 'attempt', 'h0', 'h1', 'n', 'paymentId', 'state']);
  });

  it('that is refused names the state as the field', async () => {
    await ledger.enqueue([aPayout('p')]);
    const change = ledger.change({ payoutId: 'p', from: 'rejected', to: 'queued' });
    await expect(change).rejects.toMatchObject({ code: 'CONFLICT', fields: ['state'] });
    expect(wrongStateError('p', undefined, 'queued', 'cancelled')).toMatchObject({
      message: 'Payout p is not queued',
      fields: ['state'],
    });
  });
});

describe('a payout that retention removed', () => {
  it('is not accepted again; its state is told', async () => {
    await ledger.enqueue([aPayout('p')]);
    await ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled' });
    expect(await removePayouts(account.connection, 'cancelled', account.clock.wallNow() + 1, 10)).toHaveLength(1);
    const results = await ledger.enqueue([aPayout('p'), aPayout('q')]);
    expect(results).toEqual([
      { kind: 'removed', payoutId: 'p', state: 'cancelled' },
      { kind: 'created', payoutId: 'q' },
    ]);
    expect(await ledger.get('p')).toBeUndefined();
  });
});

describe('a payout without a batch', () => {
  it('is in no index of a batch', async () => {
    await ledger.enqueue([aPayout('p'), aPayout('q', { batch: 'b' })]);
    const { prefix } = account.connection.keys;
    expect(await account.redis.keys(`${prefix}:batch:*`)).toEqual([`${prefix}:batch:b`]);
    expect(await account.redis.zrange(`${prefix}:batch:b`, '0', '-1')).toEqual(['q']);
  });
});

describe('pause', () => {
  it('keeps the first reason until someone resumes', async () => {
    expect(await ledger.pause('ann', 'holiday')).toBe(true);
    expect(await ledger.pause('bob', 'another')).toBe(false);
    expect(await account.redis.hgetall(account.connection.keys.ledger)).toMatchObject({
      pausedReason: 'holiday',
      pausedBy: 'ann',
      pausedAt: String(account.clock.wallNow()),
    });
    expect(await ledger.resume('bob', 'back')).toBe(true);
    expect(await ledger.resume('bob', 'back')).toBe(false);
    expect(await account.redis.hgetall(account.connection.keys.ledger)).toEqual({ format: '2' });
  });
});

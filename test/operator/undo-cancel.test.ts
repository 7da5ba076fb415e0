import { beforeEach, expect, it } from '@jest/globals';
import { ConflictError } from '../../src/base/errors.js';
import { addApproval } from '../../src/control/operator/store-approval.js';
import { PayoutOperator } from '../../src/control/payout-operator.js';
import { putBackEnded } from '../../src/ledger/adopt-ledger.js';
import { readActivity } from '../../src/ledger/reads/activity.js';
import { undoIdOf } from '../../src/operator/undo-cancel.js';
import {
  ANN,
  aPayout,
  change,
  clock,
  connection,
  enqueue,
  keys,
  ledger,
  names,
  OBJECTION,
  redis,
  REJECTED,
  sendAs,
  sender,
  stateOf,
  unchanged,
  useAccount,
} from '../ledger/support/use-account.js';
import { closeAfterTest } from '../worker/support/close-after-test.js';

/** What a person cancelled unsent is paid after all: at most once, and never what may have been paid. */

useAccount();

const operator = () =>
  closeAfterTest(new PayoutOperator({ platformId: connection.platformId, connection: redis, clock }));
const cancelled = async (payoutId = 'p', actor: object = ANN) => change(payoutId, 'queued', 'cancelled', actor);
/** As the worker that compared its journal with the ledger. */
const keep = async () => redis.del(keys.unkept);
const undo = async (payoutId = 'p') => operator().undoCancel(payoutId, { by: 'bob', reason: 'the order stands' });
async function expectRefused(why: string, payoutId = 'p') {
  const refusal: unknown = await unchanged(async () => undo(payoutId).catch((error: unknown) => error));
  expect(refusal).toBeInstanceOf(ConflictError);
  expect((refusal as Error).message).toContain(why);
  expect(await ledger.get(undoIdOf(payoutId))).toBeUndefined();
}

// It leaves the keys of the queues.
beforeEach(async () => expect(undo('nobody')).rejects.toThrow('not found'));

it('it is a new payout of the same data, once, however often it is asked for', async () => {
  const given = { reference: 'INV', priority: 3, metadata: { order: 7 }, batch: 'may', requestedBy: 'sam' };
  await ledger.enqueue([aPayout('p', { ...given, notBefore: '2030-06-01T00:00:00.000Z' })]);
  await cancelled();
  await keep();
  const { payoutId, state, createdAt, history, ...data } = await undo();
  const { state: ended, history: before, ...source } = await ledger.require('p');
  expect([payoutId, state, ended]).toEqual(['p.again', 'queued', 'cancelled']);
  expect({ ...data, createdAt }).toEqual({
    ...source,
    payoutId: undefined,
    final: false,
    createdAt,
    updatedAt: createdAt,
  });
  expect(history).toMatchObject([{ to: 'queued', by: 'bob', reason: 'cancelled as p: the order stands' }]);
  expect(before).toHaveLength(2);
  expect(await redis.zrange(keys.scheduled, '0', '-1')).toEqual(['2030-06-01T00:00:00.000Z p.again']);
  expect(await redis.zrange(keys.batch('may'), '0', '-1')).toEqual(['p', 'p.again']);
  expect((await readActivity(connection, 1)).activities).toMatchObject([
    { what: 'undone', by: 'bob', payoutId: 'p.again' },
  ]);
  await redis.zrem(keys.outbox, 'queued p.again');
  expect(await undo()).toMatchObject({ payoutId: 'p.again' });
  clock.advance(3_600_001);
  await cancelled('p.again');
  expect(await undo()).toMatchObject({ payoutId: 'p.again', state: 'cancelled' });
  expect(await redis.keys(`${keys.prefix}:payout:*`)).toHaveLength(2);
});

it('ids are as long as others, and each has one of its own', () => {
  const ids = [...names(9).map((name) => `${'x'.repeat(60)}${name}`), 'p', 'y'.repeat(58), 'y'.repeat(59)].map(
    undoIdOf,
  );
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9.]{1,64}$/);
});

it('not what was ever begun, or paid late', async () => {
  await enqueue('p', 'late', 'queued');
  await sendAs(REJECTED, 'p');
  await change('p', 'rejected', 'cancelled', ANN);
  await cancelled('late');
  await redis.hset(keys.payout('late'), 'lateGatewayId', 'h');
  await keep();
  await expectRefused('an attempt of it was begun');
  // An older copy, or the attempt was put back: its token remains.
  await redis.hset(keys.payout('p'), 'attempt', '0');
  await redis.hdel(keys.payout('p'), 'told');
  await expectRefused('an attempt of it was begun');
  await expectRefused('an attempt of it was begun', 'late');
  await expectRefused('from queued to queued', 'queued');
});

it('not what a person rejected or a key signed', async () => {
  const signed = { key: 'shop', signature: 's'.repeat(86), audience: 'test' } as const;
  const valid = { issuedAt: '2030-01-01T00:00:00.000Z', expiresAt: '2030-01-02T00:00:00.000Z' };
  await ledger.enqueue([aPayout('p'), { ...aPayout('signed'), signed: { ...signed, ...valid } }]);
  const said = { payoutId: 'p', intent: '0'.repeat(64), by: 'ann', reason: 'wrong', at: valid.issuedAt } as const;
  await addApproval(
    ledger,
    { ...said, decision: 'reject', audience: 'test', signature: 's'.repeat(86) },
    { person: 'ann' },
  );
  await change('p', 'held', 'cancelled', ANN);
  await cancelled('signed');
  await keep();
  await expectRefused('a person rejected it');
  await expectRefused('Have its application enqueue and sign it', 'signed');
});

it('not what its application cancelled, what an adoption ended, and what is over for an hour', async () => {
  await enqueue('p', 'old');
  await cancelled('p', {});
  await cancelled('old');
  await putBackEnded(
    connection,
    [{ payoutId: 'made', state: 'cancelled', at: 1, request: aPayout('made'), by: 'ann', reason: 'x' }],
    ANN,
  );
  await keep();
  await expectRefused('its application cancelled it');
  await expectRefused('an adoption restored its end', 'made');
  clock.advance(3_600_001);
  await expectRefused('more than an hour ago', 'old');
});

it('not before a worker that knows no send of it has the cancellation, nor while a journal objects', async () => {
  await enqueue('p');
  await cancelled();
  await expectRefused('no worker has the cancellation on its disk');
  await keep();
  await sender.object(OBJECTION);
  await expectRefused('a send journal contradicts this ledger');
  await redis.del(keys.objections);
  await undo();
  expect(await stateOf('p.again')).toBe('queued');
});

it('not what was enqueued again meanwhile under another id, unless that is cancelled, too', async () => {
  await enqueue('p');
  await cancelled();
  await keep();
  clock.advance(1_000);
  await enqueue('p-2');
  await expectRefused('since it was cancelled, p-2 (queued) was accepted with the same address, amount and reference');
  await cancelled('p-2');
  await keep();
  await undo();
  // The undo of one is no reason against that of another.
  expect((await undo('p-2')).payoutId).toBe('p-2.again');
});

it('not under an id that has another payout, or had one', async () => {
  await enqueue('p', 'q');
  await ledger.enqueue([aPayout('p.again', { amount: '9' })]);
  await redis.hset(keys.removedBucket('q.again'), 'q.again', 'completed');
  for (const payoutId of ['p', 'q']) await cancelled(payoutId);
  await keep();
  for (const payoutId of ['p', 'q']) {
    const refusal: unknown = await unchanged(async () => undo(payoutId).catch((error: unknown) => error));
    expect((refusal as Error).message).toContain('has another payout, or had one');
  }
});

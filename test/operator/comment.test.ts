import { expect, it } from '@jest/globals';
import { ConflictError, InvalidInputError, NotFoundError } from '../../src/base/errors.js';
import { PayoutOperator } from '../../src/control/payout-operator.js';
import { MAX_COMMENTS, type NewComment } from '../../src/ledger/payout-comment.js';
import { readActivity } from '../../src/ledger/reads/activity.js';
import { PAYOUT_STATES } from '../../src/ledger/states.js';
import {
  clock,
  connection,
  enqueue,
  enter,
  keys,
  ledger,
  redis,
  sender,
  unchanged,
  useAccount,
} from '../ledger/support/use-account.js';
import { removePayouts } from '../ledger/support/remove-payouts.js';
import { closeAfterTest } from '../worker/support/close-after-test.js';

/** What a person writes about a payout: kept with it, shown with who and when, and nothing else comes of it. */

useAccount();

const comment = async (text = 'I am on it', by = 'ann', payoutId = 'p') =>
  closeAfterTest(new PayoutOperator({ platformId: connection.platformId, connection: redis, clock })).comment(
    payoutId,
    { by, text },
  );
const at = () => new Date(clock.wallNow()).toISOString();

it('is kept with its payout in every state, and in the activity, and changes nothing else', async () => {
  for (const state of PAYOUT_STATES) {
    await enter(state, state);
    const [before, acts, events] = [
      await ledger.require(state),
      (await sender.readSender()).acts,
      await redis.xlen(keys.events),
    ];
    clock.advance(61_000);
    expect(await comment('I am on it', 'ann', state)).toEqual({
      ...before,
      comments: [{ at: at(), by: 'ann', text: 'I am on it' }],
    });
    // Neither an event for applications nor an act that a journal counts: a Redis without it must not stop the account.
    expect([(await sender.readSender()).acts, await redis.xlen(keys.events)]).toEqual([acts, events]);
    const [latest] = (await readActivity(connection, 1)).activities;
    expect(latest).toEqual({
      ...{ at: at(), by: 'ann', reason: 'I am on it', what: 'commented', payoutId: state, count: 1 },
    });
  }
});

it('stands once, however often it is asked for, and after another one again', async () => {
  await enqueue('p');
  await comment();
  await unchanged(async () => comment());
  for (const by of ['bob', 'ann']) await comment('I am on it', by);
  await comment('paid by hand');
  const { comments = [] } = await ledger.require('p');
  expect(comments.map(({ by, text }) => `${by}: ${text}`)).toEqual([
    ...['ann: I am on it', 'bob: I am on it', 'ann: I am on it'],
    'ann: paid by hand',
  ]);
});

it('is refused beyond 50, and the last one may be asked for again', async () => {
  await enqueue('p');
  for (let index = 0; index < MAX_COMMENTS; index += 1) await comment(`number ${index}`);
  const refusal: unknown = await unchanged(async () => comment('one more').catch((error: unknown) => error));
  expect(refusal).toBeInstanceOf(ConflictError);
  expect((refusal as Error).message).toBe('Payout p has 50 comments, which is the most');
  expect((await comment('number 49')).comments).toHaveLength(50);
});

it.each([
  ['text', 'must have at most 200 characters', { by: 'ann', text: 'x'.repeat(201) }],
  ['text', 'must not be empty', { by: 'ann', text: ' ' }],
  ['text', 'must be one line without control characters', { by: 'ann', text: 'a\nb' }],
  ['by', 'must not be empty', { by: '', text: 'x' }],
])('is refused with what is wrong with %s: %s', async (field, message, given) => {
  await enqueue('p');
  const { text, by } = given as NewComment;
  await expect(unchanged(async () => comment(text, by))).rejects.toThrow(InvalidInputError);
  await expect(comment(text, by)).rejects.toThrow(`${field}: ${message}`);
});

it('needs a payout that exists', async () => {
  await enqueue('q');
  await unchanged(async () => expect(comment()).rejects.toThrow(NotFoundError));
});

it('goes with its payout when retention removes it, unless it was written since the archive read it', async () => {
  await enter('completed', 'p');
  await comment();
  clock.advance(1_000);
  await removePayouts(connection, 'completed', clock.wallNow(), 10);
  expect(await redis.keys(`${keys.prefix}:payout:*`)).toEqual([]);
});

it('never hides its payout, whatever someone stores in its place', async () => {
  await enqueue('p');
  await comment();
  const stored = {
    c1: 'zzzzzzzzz\tbob\tforged',
    c2: '',
    c3: 'no comment',
    c4: `1\t${'b'.repeat(999)}\ta\nFAKED`,
    c6: '1\ta\tb',
  };
  await redis.hset(keys.payout('p'), stored);
  const { comments = [] } = await ledger.require('p');
  expect(comments.map(({ text }) => text)).toEqual(['I am on it', 'forged', 'a FAKED']);
  expect(Math.max(...comments.map(({ by }) => by.length))).toBeLessThanOrEqual(300);
  // It takes the first free place.
  expect((await comment('after that')).comments).toHaveLength(5);
});

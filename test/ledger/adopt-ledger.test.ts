import { expect, it } from '@jest/globals';
import { ConflictError } from '../../src/base/errors.js';
import {
  readBookmark,
  adoptLedger,
  adoptSends,
  countSendablePayouts,
  findForgottenSends,
  holdSendablePayouts,
  putBackEnded,
  type SendToAdopt,
} from '../../src/ledger/adopt-ledger.js';
import { listPayoutIds } from '../../src/ledger/payout-queries.js';
import type { PayoutState } from '../../src/ledger/states.js';
import { readSenderView } from '../../src/ledger/sender-view.js';
import { removePayouts } from './support/remove-payouts.js';
import {
  ACCEPTED,
  aPayout,
  begun,
  change,
  clock,
  connection,
  enqueue,
  finish,
  keys,
  ledger,
  names,
  OBJECTION,
  redis,
  REJECTED,
  sender,
  stateOf,
  unchanged,
  useAccount,
} from './support/use-account.js';

/** What one send is adopted as, is in the contract of the ledger: here are many of them, and what surrounds them. */

useAccount();

const ANN = { by: 'ann', reason: 'restored\ta copy' };

function aSend(payoutId: string, attempt = 1, token = `${payoutId}-${attempt}`): SendToAdopt {
  const { paymentId, amount, addressTo } = aPayout(payoutId);
  return { payoutId, attempt, token, request: { paymentId, amount, addressTo }, inFlightMs: 0 };
}

const find = async (sends: SendToAdopt[]) => findForgottenSends(connection, sends);
const adopt = async (sends: SendToAdopt[]) => adoptSends(connection, sends, ANN);

/** `p` has begun its first attempt, `q` is queued. @returns the attempt of `p` */
async function makeLedger(): Promise<SendToAdopt> {
  await enqueue('q');
  return aSend('p', 1, (await begun()).token);
}

it('bind binds the ledger to another gateway once, with the act, and says so in the events', async () => {
  const bind = async (audience: string, act?: string) => ledger.bind(audience, ANN, { act });
  expect(await bind('https://other.example#1')).toBe(true);
  expect(await readSenderView(connection)).toMatchObject({ audience: 'https://other.example#1', adoptAct: undefined });
  expect(await unchanged(async () => bind('https://other.example#1', 'again'))).toBe(false);
  expect(await bind('https://third.example#1', 'signed')).toBe(true);
  expect(await readSenderView(connection)).toMatchObject({ audience: 'https://third.example#1', adoptAct: 'signed' });
  const reasons = (await redis.xrange(keys.events, '-', '+')).map(([, entry]) => entry[entry.indexOf('reason') + 1]);
  expect(reasons).toEqual(['other', 'third'].map((name) => `bound to "https://${name}.example#1": restored a copy`));
});

it('bind changes nothing while a payout is in a state that must be empty', async () => {
  await makeLedger();
  const bind = async (...without: PayoutState[]) => ledger.bind('https://other.example#1', ANN, { without });
  await expect(unchanged(async () => bind('unknown', 'sending'))).rejects.toThrow(ConflictError);
  expect(await readSenderView(connection)).not.toMatchObject({ audience: 'https://other.example#1' });
  expect(await bind('unknown', 'in_progress')).toBe(true);
});

it('findForgottenSends names the sends that the ledger does not know, in order, with their state', async () => {
  const known = await makeLedger();
  const sends = [aSend('gone'), known, aSend('p', 2), aSend('q'), aSend('p', 1, 'another')];
  expect(await unchanged(async () => find(sends))).toEqual([
    { send: sends[0], state: undefined },
    { send: sends[2], state: 'sending' },
    { send: sends[3], state: 'queued' },
    { send: sends[4], state: 'sending' },
  ]);
});

it('findForgottenSends knows the sends of a payout that retention removed', async () => {
  const send = await makeLedger();
  await finish(send, ACCEPTED);
  await change('p', 'in_progress', 'completed');
  expect(await removePayouts(connection, 'completed', clock.wallNow() + 1, 10)).toHaveLength(1);
  expect(await find([send, aSend('q')])).toMatchObject([{ state: 'queued' }]);
  expect(await adopt([send])).toEqual([]);
});

it('adoptSends makes unknown what was forgotten, says which, and does nothing a second time', async () => {
  const sends = [aSend('gone'), await makeLedger(), aSend('q')];
  expect(await adopt(sends)).toEqual([
    { payoutId: 'gone', state: 'unknown' },
    { payoutId: 'q', state: 'unknown' },
  ]);
  expect(await ledger.get('gone')).toMatchObject({
    ...{ state: 'unknown', attempt: 1, paymentId: 7, amount: '12.5', addressTo: 'wallet-1' },
    history: [{ to: 'unknown', by: 'ann', reason: 'restored a copy' }],
  });
  expect([await stateOf('q'), await stateOf('p')]).toEqual(['unknown', 'sending']);
  expect(await unchanged(async () => adopt(sends))).toEqual([]);
});

it('removePayouts leaves a gatewayId to the payout that has it, where the removed one names it too', async () => {
  await finish(await begun(), ACCEPTED);
  await enqueue('q');
  await change('q', 'queued', 'cancelled');
  await redis.hset(keys.payout('q'), 'gatewayId', 'h');
  expect(await removePayouts(connection, 'cancelled', clock.wallNow() + 1, 10)).toHaveLength(1);
  expect(await ledger.findByGatewayId('h')).toBe('p');
});

it('removePayouts forgets the gatewayId of each', async () => {
  for (const payoutId of ['p', 'q']) {
    await finish(await begun(payoutId), { kind: 'accepted', gatewayId: `h-${payoutId}` });
    await change(payoutId, 'in_progress', 'completed');
  }
  expect(await removePayouts(connection, 'completed', clock.wallNow() + 1, 10)).toHaveLength(2);
  expect(await redis.exists(...['h-p', 'h-q'].map((gatewayId) => keys.gatewayIdBucket(gatewayId)))).toBe(0);
});

it('adoptSends leaves a gatewayId to the payout that gets it, where one that was put back names it', async () => {
  await enqueue('p', 'q');
  await sender.revertSend({ payoutId: 'p', attempt: 1, token: 'mine' }, 'its begin got no reply');
  const sends = [aSend('p', 1, 'mine'), aSend('q')].map((send) => ({ ...send, outcome: ACCEPTED }));
  expect(await adopt(sends)).toContainEqual({ payoutId: 'q', state: 'in_progress' });
  expect(await ledger.findByGatewayId('h')).toBe('q');
});

it('adoptSends gives a payout that was lost the gatewayId that it had', async () => {
  const send = { ...aSend('gone'), outcome: ACCEPTED };
  for (let times = 0; times < 2; times += 1) {
    expect(await adopt([send])).toEqual([{ payoutId: 'gone', state: 'in_progress' }]);
    await redis.del(keys.payout('gone'));
  }
});

it('adoptSends believes a rejection of the only attempt, also one that comes later', async () => {
  await enqueue('q');
  expect(await adopt([aSend('q')])).toEqual([{ payoutId: 'q', state: 'unknown' }]);
  expect(await adopt([{ ...aSend('q'), outcome: REJECTED }])).toEqual([{ payoutId: 'q', state: 'rejected' }]);
});

it('putBackEnded says of none that was paid late that it is cancelled', async () => {
  await enqueue('q');
  const attempt = await begun();
  await finish(attempt, { kind: 'unknown', reason: 'silence' });
  await change('p', 'unknown', 'queued');
  expect(await adopt([{ ...aSend('p', 1, attempt.token), outcome: ACCEPTED }])).toEqual([]);
  expect(await stateOf('p')).toBe('queued');
  const ended = ['p', 'q'].map((payoutId) => {
    const { request } = aSend(payoutId);
    return { payoutId, state: 'cancelled', at: 1, by: 'zoe', reason: 'fraud', request } as const;
  });
  expect(await putBackEnded(connection, ended, ANN)).toEqual([
    { payoutId: 'p', state: 'written_off' },
    { payoutId: 'q', state: 'cancelled' },
  ]);
  expect([await stateOf('p'), await stateOf('q')]).toEqual(['written_off', 'cancelled']);
});

it('adoptSends looks at and takes in more sends than go over the wire together', async () => {
  const sends = names(1_001).map((name) => aSend(name));
  expect((await find(sends)).map(({ send }) => send)).toEqual(sends);
  expect(await adopt(sends)).toEqual(sends.map(({ payoutId }) => ({ payoutId, state: 'unknown' })));
  expect(await find([])).toEqual([]);
});

const give = async (given: object) => ledger.enqueue([aPayout('gone', given)]);
const inBatch = async () => (await listPayoutIds(connection, { batch: 'salaries', limit: 9 })).payoutIds;

it('a payout that an adoption put in is filled in when enqueued again, once, and only with the data that was sent', async () => {
  await adopt([aSend('gone')]);
  expect(await give({ amount: '1', reference: 'other' })).toMatchObject([
    { kind: 'conflict', fields: ['amount', 'reference'] },
  ]);
  const given = { reference: 'invoice 7', metadata: { a: 1 } };
  expect(await give(given)).toMatchObject([{ kind: 'exists', payout: { state: 'unknown' } }]);
  expect(await ledger.get('gone')).toMatchObject({ ...given, attempt: 1 });
  expect(await give({ reference: 'invoice 8' })).toMatchObject([
    { kind: 'conflict', fields: ['reference', 'metadata'] },
  ]);
});

it('a payout that an adoption put in comes into its batch with that, into none where the data is not what was sent', async () => {
  await adopt([aSend('gone')]);
  await give({ amount: '1', batch: 'salaries' });
  expect(await inBatch()).toEqual([]);
  await ledger.enqueue([aPayout('other', { batch: 'salaries' })]);
  expect(await give({ batch: 'salaries' })).toMatchObject([{ kind: 'exists', payout: { batch: 'salaries' } }]);
  expect(await inBatch()).toEqual(['other', 'gone']);
});

const hold = async () => holdSendablePayouts(connection, ANN, 0);

it('holdSendablePayouts makes every queued payout unknown, also more than go into one script', async () => {
  await enqueue(...names(501));
  expect(await countSendablePayouts(connection)).toBe(501);
  expect(await hold()).toBe(501);
  expect(await countSendablePayouts(connection)).toBe(0);
  expect(await ledger.get('p500')).toMatchObject({
    ...{ state: 'unknown', message: 'restored a copy' },
    history: [{}, { from: 'queued', to: 'unknown', by: 'ann', reason: 'restored a copy' }],
  });
  expect(await hold()).toBe(0);
});

it('holdSendablePayouts leaves none behind, and ends, where the records of many in front of it were deleted', async () => {
  await redis.zadd(keys.state('queued'), 1, 'gone');
  expect(await hold()).toBe(0);
  await enqueue(...names(450));
  await redis.del(names(400).map((payoutId) => keys.payout(payoutId)));
  expect(await hold()).toBe(50);
  expect(await stateOf('p449')).toBe('unknown');
});

const raise = async (epoch: number, seen?: string[]) =>
  adoptLedger(
    connection,
    { epoch, sendCount: 9, acts: 0 },
    { token: 'new line', inFlightMs: 0 },
    { read: [], givenUp: [] },
    ANN,
    seen,
  );

it('adoptLedger refuses a ledger that has lost what was read of it, and changes nothing', async () => {
  await makeLedger();
  await sender.object(OBJECTION);
  const seen = ['', await readBookmark(connection)];
  await ledger.pause('bob', 'lunch');
  const lost = await readBookmark(connection);
  await redis.xdel(keys.events, lost);
  const refused = await unchanged(async () => raise(1, [...seen, lost]).catch((error: unknown) => error));
  expect(refused).toBeInstanceOf(ConflictError);
  expect(String(refused)).toMatch(/Redis came back older while its ledger was adopted: it was not adopted\./);
  expect(await raise(1, seen)).toMatchObject({ objections: 1 });
});

it('adoptLedger ends no pause', async () => {
  await ledger.pause('bob', 'lunch');
  await raise(1);
  expect((await readSenderView(connection)).pausedReason).toBe('lunch');
});

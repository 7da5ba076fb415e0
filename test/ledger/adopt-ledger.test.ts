import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ConflictError } from '../../src/base/errors.js';
import {
  readBookmark,
  adoptLedger,
  adoptSends,
  countSendablePayouts,
  findForgottenSends,
  holdSendablePayouts,
  type SendToAdopt,
} from '../../src/ledger/adopt-ledger.js';
import { listPayoutIds } from '../../src/ledger/reads/payout-queries.js';
import { readSenderView } from '../../src/ledger/sender-view.js';
import { RedisSenderLedger } from '../../src/ledger/redis-sender-ledger.js';
import { removePayouts } from '../../src/ledger/remove-payouts.js';
import { begin, JOURNAL, NO_BREAKER, OBJECTION, takeLease } from './contract/ledger-rig.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

const ANN = { by: 'ann', reason: 'restored\ta copy' };
const DOUBT = { ...ANN, doubtMs: 0 };
const NO_JOURNALS = { read: [], givenUp: [] };

function aSend(payoutId: string, attempt = 1, token = `${payoutId}-${attempt}`): SendToAdopt {
  const { paymentId, amount, addressTo } = aPayout(payoutId);
  return { payoutId, attempt, token, request: { paymentId, amount, addressTo } };
}

/** `p` has begun its first attempt, `q` is queued. @returns the attempt of `p` */
async function makeLedger(): Promise<SendToAdopt> {
  await account.ledger.enqueue([aPayout('p'), aPayout('q')]);
  const sender = new RedisSenderLedger(account.connection, 'reply');
  const { token } = await begin(sender, await takeLease(sender, 'one'), 'p');
  return aSend('p', 1, token);
}

describe('findForgottenSends', () => {
  it('names the sends that the ledger does not know, in order and with the state it has, and changes nothing', async () => {
    const known = await makeLedger();
    const before = await account.dump();
    const sends = [aSend('gone'), known, aSend('p', 2), aSend('q'), aSend('p', 1, 'another')];
    expect(await findForgottenSends(account.connection, sends)).toEqual([
      { send: sends[0], state: undefined },
      { send: sends[2], state: 'sending' },
      { send: sends[3], state: 'queued' },
      { send: sends[4], state: 'sending' },
    ]);
    expect(await account.dump()).toEqual(before);
  });

  it('takes a number that another attempt used up for no send of that number', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    const sender = new RedisSenderLedger(account.connection, 'reply');
    await takeLease(sender, 'one');
    await sender.revertSend({ payoutId: 'p', attempt: 1, token: 'mine' }, 'its begin got no reply');
    const sends = [aSend('p', 1, 'mine'), aSend('p', 1, 'theirs')];
    expect(await findForgottenSends(account.connection, sends)).toEqual([{ send: sends[1], state: 'queued' }]);
    expect(await adoptSends(account.connection, sends, DOUBT)).toEqual([{ payoutId: 'p', state: 'unknown' }]);
    expect(await findForgottenSends(account.connection, sends)).toEqual([]);
  });

  it('knows the sends of a payout that retention removed', async () => {
    const send = await makeLedger();
    const sender = new RedisSenderLedger(account.connection, 'reply');
    await sender.finishSend(send, { kind: 'accepted', txhash: 'h' }, NO_BREAKER, 0);
    await account.ledger.change({ payoutId: 'p', from: 'in_progress', to: 'completed' });
    expect(await removePayouts(account.connection, 'completed', account.clock.wallNow() + 1, 10)).toHaveLength(1);
    expect(await findForgottenSends(account.connection, [send, aSend('q')])).toMatchObject([{ state: 'queued' }]);
    expect(await adoptSends(account.connection, [send], DOUBT)).toEqual([]);
  });

  it('looks at more sends than go over the wire together', async () => {
    await makeLedger();
    const sends = Array.from({ length: 1_001 }, (_, index) => aSend(`gone-${index}`));
    expect((await findForgottenSends(account.connection, sends)).map(({ send }) => send)).toEqual(sends);
    expect(await findForgottenSends(account.connection, [])).toEqual([]);
  });
});

describe('adoptSends', () => {
  it('makes unknown what was forgotten, says which, and does nothing a second time', async () => {
    const known = await makeLedger();
    const sends = [aSend('gone'), known, aSend('q')];
    expect(await adoptSends(account.connection, sends, DOUBT)).toEqual([
      { payoutId: 'gone', state: 'unknown' },
      { payoutId: 'q', state: 'unknown' },
    ]);
    expect(await account.ledger.get('gone')).toMatchObject({
      state: 'unknown',
      attempt: 1,
      paymentId: 7,
      amount: '12.5',
      addressTo: 'wallet-1',
      history: [{ to: 'unknown', by: 'ann', reason: 'restored a copy' }],
    });
    expect((await account.ledger.get('q'))?.state).toBe('unknown');
    expect((await account.ledger.get('p'))?.state).toBe('sending');
    const before = await account.dump();
    expect(await adoptSends(account.connection, sends, DOUBT)).toEqual([]);
    expect(await account.dump()).toEqual(before);
  });

  it('brings a payout back as what the journal says of it', async () => {
    await makeLedger();
    const sends: SendToAdopt[] = [
      { ...aSend('q'), outcome: { kind: 'accepted', txhash: 'h-q' } },
      { ...aSend('gone'), outcome: { kind: 'rejected', message: 'no\tfunds' } },
    ];
    expect(await adoptSends(account.connection, sends, DOUBT)).toEqual([
      { payoutId: 'q', state: 'in_progress' },
      { payoutId: 'gone', state: 'rejected' },
    ]);
    expect(await account.ledger.get('q')).toMatchObject({ txhash: 'h-q' });
    expect(await account.ledger.findByTxhash('h-q')).toBe('q');
    expect(await account.ledger.get('gone')).toMatchObject({ message: 'no funds' });
    expect(await account.ledger.readOutbox(9, Infinity)).toContainEqual({ state: 'in_progress', payoutId: 'q' });
  });

  it('gives no txhash to a payout that another one has', async () => {
    const known = await makeLedger();
    const sender = new RedisSenderLedger(account.connection, 'reply');
    await sender.finishSend(known, { kind: 'accepted', txhash: 'h' }, NO_BREAKER, 0);
    const [adopted] = await adoptSends(
      account.connection,
      [{ ...aSend('q'), outcome: { kind: 'accepted', txhash: 'h' } }],
      DOUBT,
    );
    expect(adopted).toEqual({ payoutId: 'q', state: 'unknown' });
    expect(await account.ledger.get('q')).toMatchObject({ message: 'the gateway gave the txhash of payout p: h' });
    expect(await account.ledger.findByTxhash('h')).toBe('p');
  });

  it('leaves a txhash to the payout that gets it, where the send that names it first was known and put back', async () => {
    await account.ledger.enqueue([aPayout('p'), aPayout('q')]);
    const sender = new RedisSenderLedger(account.connection, 'reply');
    await sender.revertSend({ payoutId: 'p', attempt: 1, token: 'mine' }, 'its begin got no reply');
    const outcome = { kind: 'accepted', txhash: 'h' } as const;
    const sends: SendToAdopt[] = [
      { ...aSend('p', 1, 'mine'), outcome },
      { ...aSend('q'), outcome },
    ];
    expect(await adoptSends(account.connection, sends, DOUBT)).toContainEqual({ payoutId: 'q', state: 'in_progress' });
    expect(await account.ledger.findByTxhash('h')).toBe('q');
  });

  it('notes until when the requests may be on their way, before which nobody can say that they were not sent', async () => {
    await adoptSends(account.connection, [aSend('gone')], { ...ANN, doubtMs: 60_000 });
    const notSent = { payoutId: 'gone', from: 'unknown', to: 'queued', by: 'ann', reason: 'r' } as const;
    await expect(account.ledger.change(notSent)).rejects.toThrow(/may still be on its way to the gateway for \d+ s/);
  });

  it('takes in more sends than go over the wire together', async () => {
    const sends = Array.from({ length: 501 }, (_, index) => aSend(`gone-${index}`));
    expect(await adoptSends(account.connection, sends, DOUBT)).toEqual(
      sends.map(({ payoutId }) => ({ payoutId, state: 'unknown' })),
    );
  });
});

describe('a payout that an adoption put in', () => {
  it('is filled in when the application enqueues it again, once, and only with the data that was sent', async () => {
    await adoptSends(account.connection, [aSend('gone')], DOUBT);
    const { ledger } = account;
    const conflict = await ledger.enqueue([aPayout('gone', { amount: '1', reference: 'other' })]);
    expect(conflict).toMatchObject([{ kind: 'conflict', fields: ['amount', 'reference'] }]);
    const given = aPayout('gone', { reference: 'invoice 7', metadata: { a: 1 } });
    expect(await ledger.enqueue([given])).toMatchObject([{ kind: 'exists', payout: { state: 'unknown' } }]);
    expect(await ledger.get('gone')).toMatchObject({ reference: 'invoice 7', metadata: { a: 1 }, attempt: 1 });
    const other = aPayout('gone', { reference: 'invoice 8' });
    expect(await ledger.enqueue([other])).toMatchObject([{ kind: 'conflict', fields: ['reference', 'metadata'] }]);
  });

  it('comes into its batch with that', async () => {
    await adoptSends(account.connection, [aSend('gone')], DOUBT);
    await account.ledger.enqueue([aPayout('other', { batch: 'salaries' })]);
    const given = aPayout('gone', { batch: 'salaries' });
    expect(await account.ledger.enqueue([given])).toMatchObject([{ kind: 'exists', payout: { batch: 'salaries' } }]);
    const { payoutIds } = await listPayoutIds(account.connection, { batch: 'salaries', limit: 9 });
    expect(payoutIds).toEqual(['other', 'gone']);
  });

  it('comes into no batch where the data is not what was sent', async () => {
    await adoptSends(account.connection, [aSend('gone')], DOUBT);
    await account.ledger.enqueue([aPayout('gone', { amount: '1', batch: 'salaries' })]);
    const { payoutIds } = await listPayoutIds(account.connection, { batch: 'salaries', limit: 9 });
    expect(payoutIds).toEqual([]);
  });
});

describe('holdSendablePayouts', () => {
  it('makes every queued payout unknown, also more than go into one script', async () => {
    const payouts = Array.from({ length: 501 }, (_, index) => aPayout(`p-${index}`));
    await account.ledger.enqueue(payouts);
    expect(await countSendablePayouts(account.connection)).toBe(501);
    expect(await holdSendablePayouts(account.connection, DOUBT)).toBe(501);
    expect(await countSendablePayouts(account.connection)).toBe(0);
    expect(await account.ledger.get('p-500')).toMatchObject({
      state: 'unknown',
      message: 'restored a copy',
      history: [{}, { from: 'queued', to: 'unknown', by: 'ann', reason: 'restored a copy' }],
    });
    expect(await holdSendablePayouts(account.connection, DOUBT)).toBe(0);
  });

  it('ends where the index names payouts that are not queued', async () => {
    const { redis, connection } = account;
    await redis.zadd(connection.keys.state('queued'), 1, 'gone');
    expect(await holdSendablePayouts(connection, DOUBT)).toBe(0);
  });

  it('leaves none behind where the records of many in front of it were deleted', async () => {
    const { redis, connection } = account;
    await account.ledger.enqueue(Array.from({ length: 450 }, (_, index) => aPayout(`p-${index}`)));
    for (let index = 0; index < 400; index += 1) await redis.del(connection.keys.payout(`p-${index}`));
    expect(await holdSendablePayouts(connection, DOUBT)).toBe(50);
    expect(await account.ledger.get('p-449')).toMatchObject({ state: 'unknown' });
  });
});

describe('adoptLedger', () => {
  it('raises the ledger above the journal and says where it is now', async () => {
    await makeLedger();
    expect(await adoptLedger(account.connection, { epoch: 5, sendCount: 9 }, 'new line', NO_JOURNALS, ANN)).toEqual({
      epoch: 6,
      sendCount: 10,
      token: 'new line',
      objections: 0,
    });
    const [event] = await account.redis.xrevrange(account.connection.keys.events, '+', '-', 'COUNT', 1);
    expect(event?.[1]).toEqual(expect.arrayContaining(['ledger_adopted', 'ann', 'restored a copy']));
    expect(await readSenderView(account.connection)).toMatchObject({ last: 'new line', awaitingAnswer: true });
  });

  it('ends the objections of journals that were read or given up, and no other', async () => {
    const sender = new RedisSenderLedger(account.connection, 'reply');
    for (const journalId of ['j-read', 'j-lost', 'j-other']) await sender.object({ ...OBJECTION, journalId });
    const journals = { read: [{ ...JOURNAL, journalId: 'j-read', sends: 4 }], givenUp: ['j-lost'] };
    const raised = await adoptLedger(account.connection, { epoch: 1, sendCount: 1 }, 't', journals, ANN);
    expect(raised.objections).toBe(1);
    const view = await readSenderView(account.connection);
    expect(view.objections).toEqual([{ ...OBJECTION, journalId: 'j-other' }]);
    expect(view.journals).toEqual(journals.read);
  });

  it('refuses a ledger that has lost what was read of it, and changes nothing', async () => {
    await makeLedger();
    await account.sender.object(OBJECTION);
    const { redis, connection } = account;
    const bookmarks = ['', await readBookmark(connection)];
    await account.ledger.pause('bob', 'lunch');
    bookmarks.push(await readBookmark(connection));
    const adopt = async (): Promise<unknown> =>
      adoptLedger(connection, { epoch: 1, sendCount: 1 }, 't', NO_JOURNALS, ANN, bookmarks);
    await redis.xdel(connection.keys.events, bookmarks[2] ?? '');
    const before = await account.dump();
    await expect(adopt()).rejects.toThrow(ConflictError);
    await expect(adopt()).rejects.toThrow(/^Redis came back older while its ledger was adopted: it was not adopted\./);
    expect(await account.dump()).toEqual(before);
    bookmarks.pop();
    expect(await adopt()).toMatchObject({ objections: 1 });
  });

  it('ends the pause that a journal made under format 1', async () => {
    await account.ledger.pause('send journal', 'it knows 40 sends, the journal 43');
    await adoptLedger(account.connection, { epoch: 1, sendCount: 1 }, 't', NO_JOURNALS, ANN);
    expect((await readSenderView(account.connection)).pausedReason).toBeUndefined();
  });

  it('leaves any other pause as it is', async () => {
    await account.ledger.pause('bob', 'lunch');
    await adoptLedger(account.connection, { epoch: 1, sendCount: 1 }, 't', NO_JOURNALS, ANN);
    expect((await readSenderView(account.connection)).pausedReason).toBe('lunch');
  });
});

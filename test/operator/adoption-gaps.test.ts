import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { isComplete, UNWITNESSED, type AdoptableJournal } from '../../src/operator/adoption.js';
import { OBJECTION } from '../ledger/contract/ledger-rig.js';
import { JournalFile } from '../proofs/simulation/journal-file.js';
import { aJournal, makeOlderLedger, sendOf, type OlderLedger } from './support/older-ledger.js';

let older: OlderLedger;
beforeEach(() => {
  older = makeOlderLedger();
});
afterEach(async () => older.close());

describe('an adoption that gave up sends, and was forgotten by Redis', () => {
  it('has to give them up again: the doubt that it left is gone as well', async () => {
    for (const id of ['p1', 'p2']) await older.enqueue(id);
    const ledgerId = await older.rollBackTo(0);
    const file = new JournalFile('j-one');
    file.lines.push({ ledgerId, epoch: 1, sends: 0, token: '' }, sendOf('p3', 3));
    const journal = (): AdoptableJournal => file.toAdoptable({ host: 'host-one', dir: '/j-one' });
    await older.adopt([journal()], [UNWITNESSED]);
    expect(await older.stateOf('p2')).toBe('unknown');
    expect((await older.plan([journal()])).unwitnessed).toEqual([]);

    await older.rollBackTo(0, 'older');
    const plan = await older.plan([journal()]);
    expect([plan.isOlder, isComplete(plan), plan.unwitnessed]).toEqual([true, false, [{ first: 1, last: 4 }]]);
    expect((await older.plan([journal()], [UNWITNESSED])).holdsSendable).toBe(true);
  });
});

describe('sends that are missing before one that names the send before it', () => {
  const A = sendOf('a', 45, { token: 'e:3', after: { sends: 44 } });
  /** By its number alone: with format 1 there were no tokens. */
  const B = sendOf('b', 46, { after: { sends: 45, token: '' } });

  it.each([
    ['named by a token', 40, [sendOf('b', 46)], [{ first: 41, last: 45 }]],
    ['named by its number', 40, [B], [{ first: 41, last: 45 }]],
    ['named by its number, which the same journal has', 44, [A, B], []],
  ])('are found: %s', async (_, known, sends, unwitnessed) => {
    const ledgerId = await older.rollBackTo(known);
    const journal = aJournal('j-one', { ledgerId, epoch: 1, sends: 37, token: '' }, ...sends);
    expect((await older.plan([journal])).unwitnessed).toEqual(unwitnessed);
  });

  it('are found in a Redis that was flushed', async () => {
    await older.rollBackTo(0);
    const journal = aJournal('j-one', { ledgerId: 'former', epoch: 1, sends: 40, token: '' }, B);
    expect((await older.plan([journal])).unwitnessed).toEqual([{ first: 1, last: 45 }]);
  });
});

describe('a ledger that format 1 stopped for a send journal', () => {
  const STOPPED = { pausedReason: 'it knows 40 sends, the journal 43', pausedBy: 'send journal', pausedAt: 1 };
  let ledgerId: string;
  beforeEach(async () => {
    await older.enqueue('p');
    await older.rollBackTo(40);
    const { redis, keys } = older.account.connection;
    await redis.hdel(keys.ledger, 'format');
    await redis.hset(keys.ledger, STOPPED);
    ({ ledgerId } = await older.view());
  });

  it('is not adopted by a journal that agrees with it, and stays stopped for workers of format 1', async () => {
    await older.adoptSend({ payoutId: 'earlier', attempt: 1, token: 'e:1' });
    const send = sendOf('earlier', 40, { token: 'e:1', after: { sends: 39 } });
    const plan = await older.adopt([aJournal('j-one', { ledgerId, epoch: 1, sends: 39, token: '' }, send)]);
    expect(plan).toMatchObject({ reasons: [STOPPED.pausedReason], unread: [{ journalId: 'unnamed' }] });
    expect((await older.view()).objections).toMatchObject([{ journalId: 'unnamed' }]);
    const { redis, keys } = older.account.connection;
    expect(await redis.hget(keys.ledger, 'pausedReason')).toBe(STOPPED.pausedReason);
    expect(await older.stateOf('p')).toBe('queued');
  });

  it('is adopted by a journal that knows more than it, and stops no worker then', async () => {
    const send = sendOf('p', 41, { token: 'e:1', after: { sends: 40 } });
    const journal = aJournal('j-one', { ledgerId, epoch: 1, sends: 40, token: '' }, send);
    expect(await older.adopt([journal])).toMatchObject({ unread: [], unwitnessed: [] });
    expect((await older.view()).objections).toEqual([]);
    const { redis, keys } = older.account.connection;
    expect(await redis.hget(keys.ledger, 'pausedReason')).toBeNull();
    expect(await older.stateOf('p')).toBe('unknown');
  });
});

describe('a journal that objected', () => {
  it('is not taken as read where an older copy of it is read', async () => {
    await older.enqueue('p2');
    const ledgerId = await older.rollBackTo(0);
    await older.ledger.object({ ...OBJECTION, journalId: 'j-one', sends: 2 });
    const lines = [{ ledgerId, epoch: 1, sends: 0, token: '' }, sendOf('p1', 1)];
    expect(await older.adopt([aJournal('j-one', ...lines)])).toMatchObject({ unread: [{ journalId: 'j-one' }] });
    expect((await older.view()).objections).toHaveLength(1);
    const whole = aJournal('j-one', ...lines, sendOf('p2', 2));
    expect(await older.adopt([whole])).toMatchObject({ unread: [] });
    expect((await older.view()).objections).toEqual([]);
    expect(await older.stateOf('p2')).toBe('unknown');
  });

  it('is not taken as read where an older copy of it is read than the ledger knows', async () => {
    const ledgerId = await older.rollBackTo(0);
    await older.ledger.object(OBJECTION);
    const { redis, keys } = older.account.connection;
    const known = { host: 'h', dir: '/j-one', sends: 2, token: 't-2', at: 0 };
    await redis.hset(keys.journals, 'j-one', JSON.stringify(known));
    const copy = aJournal('j-one', { ledgerId, epoch: 1, sends: 0, token: '' }, sendOf('p1', 1));
    const plan = await older.plan([copy], [OBJECTION.journalId]);
    expect(plan.unread).toMatchObject([{ journalId: 'j-one' }]);
  });

  it.each([
    [1, 'unknown'],
    [2, 'queued'],
  ])('of 2 sends, given up as damaged where the ledger knows %i, leaves a payout %s', async (known, state) => {
    await older.enqueue('p');
    await older.rollBackTo(known, `t-${known}`);
    await older.ledger.object({ ...OBJECTION, journalId: 'j-one', kind: 'journal', sends: 2 });
    await older.adopt([], ['j-one']);
    expect((await older.view()).objections).toEqual([]);
    expect(await older.stateOf('p')).toBe(state);
  });
});

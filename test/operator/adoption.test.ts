import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { JournalLine } from '../../src/journal/journal-line.js';
import { isComplete, UNWITNESSED } from '../../src/operator/adoption.js';
import { OBJECTION } from '../ledger/contract/ledger-rig.js';
import { aJournal, openAdoptionWorld, sendOf, type AdoptionWorld, type SendingHost } from './support/adoption-world.js';

let world: AdoptionWorld;
beforeEach(async () => {
  world = await openAdoptionWorld();
});
afterEach(async () => world.close());

/** The journal `j-one`, which was bound to a ledger at this number of sends. */
const journalOne = (ledgerId: string, sends: number, ...lines: readonly JournalLine[]) =>
  aJournal('j-one', { ledgerId, epoch: 1, sends, token: '' }, ...lines);

const accepted = (gatewayId: string) => ({ kind: 'accepted', gatewayId: gatewayId }) as const;
const REJECTED = { kind: 'rejected', message: 'no funds' } as const;
const UNKNOWN = { kind: 'unknown', reason: 'no response', inFlightUntil: 0 } as const;
const NOT_SENT = { kind: 'not_sent', reason: 'the connection ended' } as const;

it.each(['an older copy', 'nothing'])(
  'an adoption brings back what was sent, where Redis came back with %s',
  async (found) => {
    const host = await world.addHost('a');
    await world.enqueue('P-1', 'P-2', 'P-3', 'P-4', 'P-5');
    await host.send('P-1', accepted('h-1'));
    const copy = await world.copy();
    await host.send('P-2', accepted('h-2'));
    await host.send('P-3', REJECTED);
    await host.send('P-4', UNKNOWN);
    await host.send('P-5', NOT_SENT);
    await world.putBack(found === 'nothing' ? {} : copy);
    const before = await world.copy();

    const plan = await world.plan([host]);
    const isFlushed = found === 'nothing';
    expect(plan).toMatchObject({ isOlder: true, forgotten: isFlushed ? 4 : 3, unwitnessed: [], unread: [] });
    expect(plan).toMatchObject({ holdsSendable: false, sendable: isFlushed ? 0 : 4, highest: { sendCount: 5 } });
    expect(plan.reasons).toEqual([
      expect.stringMatching(isFlushed ? /flushed or exchanged/ : /older copy.*payout P-2/),
    ]);
    expect(plan.firstForgotten.map(({ send, state }) => [send.payoutId, state]).slice(-3)).toEqual(
      ['P-2', 'P-3', 'P-4'].map((payoutId) => [payoutId, isFlushed ? undefined : 'queued']),
    );
    if (!isFlushed) expect(await world.copy()).toEqual(before);

    const adoption = await world.adopt([host], { plan });
    expect(adoption.adopted.slice(-3)).toEqual([
      { payoutId: 'P-2', state: 'in_progress' },
      { payoutId: 'P-3', state: 'rejected' },
      { payoutId: 'P-4', state: 'unknown' },
    ]);
    expect(adoption).toMatchObject({ held: 0, objections: 0, sendCount: 6 });
    expect(await world.statesOf('P-1', 'P-5')).toEqual(['in_progress', isFlushed ? undefined : 'queued']);
    expect(await world.account.ledger.get('P-2')).toMatchObject({ gatewayId: 'h-2', attempt: 1 });
    expect(await world.account.ledger.get('P-3')).toMatchObject({ message: 'no funds' });
    const message = expect.stringMatching(/forgot it: ticket/);
    expect(await world.account.ledger.get('P-4')).toMatchObject({ message });
    await world.expectAgreement(host);
    await world.enqueue('P-5');
    expect(await host.send('P-5', accepted('h-5'))).toMatchObject({ payoutId: 'P-5' });
  },
);

it('an adoption finds nothing where they agree, also where other journals are known', async () => {
  const [host, other] = [await world.addHost('a'), await world.addHost('b')];
  await world.enqueue('P-1', 'P-2');
  await other.send('P-1');
  await host.send('P-2');
  expect(await world.plan([host])).toMatchObject({ reasons: [], isOlder: false, forgotten: 0, unread: [] });
});

it('an adoption leaves the objection of a journal that it did not read', async () => {
  const host = await world.addHost('a');
  await world.enqueue('P-1');
  await world.sender.object(OBJECTION);
  const plan = await world.plan([host]);
  expect(plan).toMatchObject({ reasons: ['it forgot a send'], unread: [{ journalId: 'j-two', host: 'host-2' }] });
  expect(isComplete(plan)).toBe(false);
  const givenUp = await world.plan([host], ['j-two']);
  expect(givenUp).toMatchObject({ unread: [], holdsSendable: true, sendable: 1 });
  expect(await world.adopt([host], { plan: givenUp })).toMatchObject({ held: 1, objections: 0 });
});

/** `a` sent numbers 1, 3 and 6, `b` the others. Redis knows none of them, and neither journal. */
async function makeGap(): Promise<[a: SendingHost, b: SendingHost]> {
  const [a, b] = [await world.addHost('a'), await world.addHost('b')];
  await world.enqueue('P-1', 'P-2', 'P-3', 'P-4', 'P-5', 'P-6', 'P-7');
  const copy = await world.copy();
  for (const [index, host] of [a, b, a, b, b, a].entries()) {
    await host.send(`P-${index + 1}`, accepted(`h-${index + 1}`));
  }
  await world.putBack(copy);
  return [a, b];
}

it('sends that no journal has are named by number; given up, they make what is queued unknown', async () => {
  const [a] = await makeGap();
  await world.sender.readSender();
  const before = await world.copy();
  const plan = await world.plan([a]);
  const gaps = [
    { first: 2, last: 2 },
    { first: 4, last: 5 },
  ];
  expect(plan).toMatchObject({ unwitnessed: gaps, forgotten: 3, unread: [], holdsSendable: false });
  const givenUp = await world.plan([a], [UNWITNESSED]);
  expect(givenUp).toMatchObject({ unwitnessed: [], holdsSendable: true, sendable: 7 });
  expect([isComplete(plan), isComplete(givenUp)]).toEqual([false, true]);
  expect(await world.copy()).toEqual(before);
  await world.adopt([a], { plan: givenUp });
  expect(await world.statesOf('P-1', 'P-3', 'P-6')).toEqual(Array(3).fill('in_progress'));
  expect(await world.statesOf('P-2', 'P-4', 'P-5', 'P-7')).toEqual(Array(4).fill('unknown'));
  await world.expectAgreement(a);
});

it('sends that no journal has are none where the other journal is read, in either order', async () => {
  const [a, b] = await makeGap();
  for (const plan of [await world.plan([a, b]), await world.plan([b, a])])
    expect(plan).toMatchObject({ unwitnessed: [], forgotten: 6 });
  expect(await world.adopt([a, b])).toMatchObject({ held: 0, objections: 0 });
  const states = await world.statesOf('P-2', 'P-5', 'P-6', 'P-7');
  expect(states).toEqual(['in_progress', 'in_progress', 'in_progress', 'queued']);
  await world.expectAgreement(a, b);
});

it.each(['the ledger', 'another journal'])(
  'a known journal that was not read is named where %s knows it, else given up by its id',
  async (who) => {
    const [a, b] = [await world.addHost('a'), await world.addHost('b')];
    await world.enqueue('P-1', 'P-2', 'P-3');
    await b.send('P-1');
    if (who === 'another journal') await a.notePeers();
    const copy = who === 'the ledger' ? await world.copy() : {};
    await a.send('P-2');
    await world.putBack(copy);
    const plan = await world.plan([a]);
    expect(plan).toMatchObject({ unread: [{ journalId: b.journalId, host: 'b', dir: b.dir }] });
    expect(isComplete(plan)).toBe(false);
    expect(isComplete(await world.plan([a, b]))).toBe(true);
    expect(await world.plan([a], [b.journalId])).toMatchObject({ unread: [], holdsSendable: true });
  },
);

it('an adoption that Redis forgot has to give up sends again: the doubt that it left is gone', async () => {
  await world.enqueue('p1', 'p2');
  const ledgerId = await world.rollBackTo(0);
  const journal = journalOne(ledgerId, 0, sendOf('p3', 3));
  await world.adoptOf([journal], [UNWITNESSED]);
  expect(await world.statesOf('p2')).toEqual(['unknown']);
  expect((await world.planOf([journal])).unwitnessed).toEqual([]);

  await world.rollBackTo(0, 'older');
  const plan = await world.planOf([journal]);
  expect([plan.isOlder, isComplete(plan), plan.unwitnessed]).toEqual([true, false, [{ first: 1, last: 4 }]]);
  expect((await world.planOf([journal], [UNWITNESSED])).holdsSendable).toBe(true);
});

it('sends that are missing before one that names the send before it are found', async () => {
  const ledgerId = await world.rollBackTo(40);
  const { unwitnessed } = await world.planOf([journalOne(ledgerId, 37, sendOf('b', 46))]);
  expect(unwitnessed).toEqual([{ first: 41, last: 45 }]);
});

it('a journal that objected is not taken as read where an older copy of it is read', async () => {
  await world.enqueue('p2');
  const ledgerId = await world.rollBackTo(0);
  await world.sender.object({ ...OBJECTION, journalId: 'j-one', sends: 2 });
  const copy = journalOne(ledgerId, 0, sendOf('p1', 1));
  expect(await world.adoptOf([copy])).toMatchObject({ unread: [{ journalId: 'j-one' }] });
  expect((await world.sender.readSender()).objections).toHaveLength(1);
  const whole = journalOne(ledgerId, 0, sendOf('p1', 1), sendOf('p2', 2));
  expect(await world.adoptOf([whole])).toMatchObject({ unread: [] });
  expect((await world.sender.readSender()).objections).toEqual([]);
  expect(await world.statesOf('p2')).toEqual(['unknown']);
});

it('a journal that objected is not taken as read where the ledger knows a newer copy', async () => {
  const ledgerId = await world.rollBackTo(0);
  await world.sender.object(OBJECTION);
  const { redis, keys } = world.account.connection;
  const known = { host: 'h', dir: '/j-one', sends: 2, token: 't-2', at: 0 };
  await redis.hset(keys.journals, 'j-one', JSON.stringify(known));
  const copy = journalOne(ledgerId, 0, sendOf('p1', 1));
  expect((await world.planOf([copy], [OBJECTION.journalId])).unread).toMatchObject([{ journalId: 'j-one' }]);
});

it.each([
  [1, 'unknown'],
  [2, 'queued'],
])('a journal of 2 sends, given up as damaged where the ledger knows %i, leaves a payout %s', async (known, state) => {
  await world.enqueue('p');
  await world.rollBackTo(known, `t-${known}`);
  await world.sender.object({ ...OBJECTION, journalId: 'j-one', kind: 'journal', sends: 2 });
  await world.adoptOf([], ['j-one']);
  expect((await world.sender.readSender()).objections).toEqual([]);
  expect(await world.statesOf('p')).toEqual([state]);
});

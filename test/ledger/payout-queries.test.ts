import { describe, expect, it } from '@jest/globals';
import {
  countStuck,
  findPayouts,
  listPayouts,
  readEach,
  type ListOptions,
  type PayoutFilter,
} from '../../src/ledger/payout-queries.js';
import type { PayoutInput } from '../../src/ledger/payout.js';
import {
  ACCEPTED,
  account,
  ANN,
  aPayout,
  beginOne,
  change,
  clock,
  connection,
  enqueue,
  enter,
  finish,
  HOLD,
  JOURNAL,
  keys,
  ledger,
  names,
  OBJECTION,
  redis,
  REJECTED,
  sendAs,
  sender,
  takeLease,
  UNKNOWN,
  useAccount,
} from './support/use-account.js';
import { adoptLedger } from '../../src/ledger/adopt-ledger.js';
import { readAccountStats } from '../../src/ledger/reads/account-stats.js';
import { PAYOUT_STATES } from '../../src/ledger/states.js';

useAccount();

const cancel = async (payoutId: string) => change(payoutId, 'queued', 'cancelled');

async function readPages(options: ListOptions, between = async () => Promise.resolve()) {
  const pages: string[][] = [];
  let cursor: string | undefined;
  do {
    const page = await listPayouts(connection, { ...options, ...(cursor === undefined ? {} : { cursor }) });
    pages.push(page.payouts.map(({ payoutId }) => payoutId));
    cursor = page.next;
    await between();
  } while (cursor !== undefined);
  return pages;
}

it('listPayouts lists a state in the order of entering it, page by page, in both directions', async () => {
  await enqueue(...names(7));
  for (const payoutId of ['p5', 'p1', 'p3']) await cancel(payoutId);
  expect(await readPages({ state: 'queued', limit: 2 })).toEqual([['p0', 'p2'], ['p4', 'p6'], []]);
  expect(await readPages({ state: 'cancelled', limit: 2 })).toEqual([['p5', 'p1'], ['p3']]);
  expect(await readPages({ state: 'unknown' })).toEqual([[]]);
  expect(await readPages({ newestFirst: true, limit: 3 })).toEqual([['p6', 'p4', 'p2'], ['p0']]);
});

it('listPayouts lists the queued ones by default, 100 a page; a batch in the order of acceptance', async () => {
  await enqueue(...names(101, 'x'));
  expect((await readPages({})).map(({ length }) => length)).toEqual([100, 1]);
  await ledger.enqueue([aPayout('p', { batch: 'b' }), aPayout('q'), aPayout('r', { batch: 'b' })]);
  await cancel('p');
  expect(await readPages({ batch: 'b', limit: 1 })).toEqual([['p'], ['r'], []]);
});

it('listPayouts skips none and shows none twice while payouts leave and others come', async () => {
  const first = names(60);
  await enqueue(...first);
  let iteration = 0;
  const listed = await readPages({ state: 'queued', limit: 7 }, async () => {
    for (const payoutId of first.slice(iteration * 7, iteration * 7 + 7)) await cancel(payoutId);
    if (iteration < 3) await enqueue(`new${iteration}`);
    iteration += 1;
  });
  expect(listed.flat()).toEqual([...first, 'new0', 'new1', 'new2']);
});

it('readEach keeps the order asked for, and leaves out those that do not exist', async () => {
  await ledger.enqueue([aPayout('p'), aPayout('q', { amount: '3' })]);
  const payouts = (await readEach(connection, ['q', 'nobody', 'p'])).payouts;
  expect(payouts.map(({ payoutId, amount }) => [payoutId, amount])).toEqual([
    ['q', '3'],
    ['p', '12.5'],
  ]);
  expect((await readEach(connection, [])).payouts).toEqual([]);
});

async function accept(given: Record<string, Partial<PayoutInput>>) {
  for (const [payoutId, input] of Object.entries(given)) {
    await ledger.enqueue([aPayout(payoutId, input)]);
    clock.advance(1_000);
  }
}

async function findAll(filter: PayoutFilter, limit = 100) {
  const found: string[] = [];
  let searched = 0;
  let after: string | undefined;
  do {
    const page = await findPayouts(connection, filter, limit, after);
    expect(page.payouts.length).toBeLessThanOrEqual(limit);
    found.push(...page.payouts.map(({ payoutId }) => payoutId));
    searched += page.searched;
    after = page.next;
  } while (after !== undefined);
  return { found, searched };
}

const find = async (filter: PayoutFilter, limit?: number) => (await findAll(filter, limit)).found;

it('findPayouts finds by address, with or without its tag, part of the reference, and amount', async () => {
  await accept({
    a: { addressTo: 'wallet-9' },
    b: { addressTo: 'wallet-9:77', reference: 'Invoice 12/2030' },
    c: { addressTo: 'wallet-90', reference: 'invoice 13/2030', amount: '3.50' },
    d: { addressTo: 'wallet-8', amount: '3.5' },
  });
  expect(await find({ address: 'wallet-9' })).toEqual(['b', 'a']);
  expect(await find({ address: 'wallet-9:77' })).toEqual(['b']);
  expect(await find({ reference: 'INVOICE 1' })).toEqual(['c', 'b']);
  expect(await find({ amount: '3.5' })).toEqual(['d', 'c']);
  expect(await find({ amount: '3.5', reference: 'invoice' })).toEqual(['c']);
  expect(await find({ address: 'nobody' })).toEqual([]);
});

it('findPayouts finds an address in any spelling of its wallet', async () => {
  await accept({ ton: { addressTo: 'EQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPrHF:5' } });
  const ton = '0:CA6E321C7CCE9ECEDF0A8CA2492EC8592494AA5FB5CE0387DFF96EF6AF982A3E';
  for (const address of [ton, `${ton}:5`]) expect(await find({ address })).toEqual(['ton']);
  // What is before the colon of raw TON is no wallet.
  for (const address of [`${ton}:6`, '0']) expect(await find({ address })).toEqual([]);
});

it('findPayouts finds those first that changed last, page by page', async () => {
  await accept({ a: {}, b: {}, c: { batch: 'May' }, d: { batch: 'May' }, e: { batch: 'May' } });
  await cancel('b');
  await cancel('d');
  for (const limit of [1, 2, 3, 100]) {
    expect(await find({}, limit)).toEqual(['d', 'b', 'e', 'c', 'a']);
    expect(await find({ state: 'queued' }, limit)).toEqual(['e', 'c', 'a']);
    expect(await find({ batch: 'May' }, limit)).toEqual(['e', 'd', 'c']);
    expect(await find({ batch: 'May', state: 'cancelled' }, limit)).toEqual(['d']);
  }
  await redis.del(keys.payout('b'));
  expect(await find({})).toEqual(['d', 'e', 'c', 'a']);
});

it('findPayouts finds by the time of the last change, the first included and the last not', async () => {
  const start = clock.wallNow();
  await accept({ a: {}, b: {}, c: { batch: 'May' } });
  await cancel('a');
  expect(await find({ since: start + 1_000 })).toEqual(['a', 'c', 'b']);
  expect(await find({ until: start + 2_000 })).toEqual(['b']);
  expect(await find({ since: start + 1_000, until: start + 3_000 })).toEqual(['c', 'b']);
  expect(await find({ since: start + 2_000, batch: 'May' })).toEqual(['c']);
});

it('findPayouts searches a bounded number for one page, and says how many', async () => {
  await enqueue(...names(6_000));
  const first = await findPayouts(connection, { address: 'nobody' }, 10);
  expect(first).toEqual({ payouts: [], unreadable: [], searched: 5_000, next: expect.any(String) });
  const last = await findPayouts(connection, { address: 'nobody' }, 10, first.next);
  expect(last).toEqual({ payouts: [], unreadable: [], searched: 1_000, next: undefined });
});

it('findPayouts reads only what changed about the time that is asked for', async () => {
  const day = 24 * 60 * 60_000;
  const start = clock.wallNow();
  for (let days = 0; days < 5; days += 1) {
    const payoutIds = names(1_000, `p${days}-`);
    await enqueue(...payoutIds);
    await ledger.changeMany({
      ...{ from: 'queued', to: 'cancelled', isOneAct: true, by: 'ann', reason: 'r' },
      payouts: payoutIds.slice(0, 600).map((payoutId) => ({ payoutId })),
    });
    clock.advance(day);
  }
  const window = { state: 'cancelled', since: start + 2 * day, until: start + 2.5 * day } as const;
  const { found, searched } = await findAll(window);
  expect(found.sort()).toEqual(names(600, 'p2-').sort());
  expect(searched).toBeLessThanOrEqual(1_200);
  expect(await find({ since: start + 2 * day, until: start + 3 * day })).toHaveLength(1_000);
});

it('findPayouts finds a payout that was put back unsent by the time of that', async () => {
  const start = clock.wallNow();
  await accept({ first: {} });
  await enqueue(...names(1_500));
  clock.advance(60 * 60_000);
  await redis.hset(keys.payout('first'), 'h1', `q${clock.wallNow().toString(36)}`, 'n', 2);
  expect(await find({ since: start + 60_000 })).toEqual(['first']);
});

it('countStuck counts exactly those that are in progress for longer', async () => {
  const count = async (ms: number) => countStuck(connection, ms);
  expect(await count(0)).toBe(0);
  const payoutIds = names(7);
  for (const payoutId of payoutIds) {
    await enter('in_progress', payoutId);
    clock.advance(1_000);
  }
  // The last has been there for 1 s, the first for 7 s.
  for (let stuck = 0; stuck <= 7; stuck += 1) expect(await count(7_500 - stuck * 1_000)).toBe(stuck);
  expect(await count(7_000)).toBe(0);
  await change('p0', 'in_progress', 'completed');
  expect(await count(0)).toBe(6);
});

const stats = async () => readAccountStats(connection);
const revert = async (payoutId: string) => sender.revertSend(await beginOne(payoutId), 'not reachable');

describe('the statistics of an account', () => {
  it('are of one that nobody has used', async () => {
    expect(await stats()).toEqual({
      platformId: account.platformId,
      ...Object.fromEntries(PAYOUT_STATES.map((state) => [state, 0])),
      ...{ paused: false, pausedReason: null, pausedBy: null, pausedAt: null, pauses: [] },
      ...{ objections: [], journals: [], latePayments: 0, sender: null, sends: 0 },
      ...{ rejectionsInARow: 0, unknownsInARow: 0, withoutJob: 0, outboxUnreadable: 0, unreadable: [] },
      oldestAgeMs: { queued: null, held: null, sending: null, in_progress: null, unknown: null },
    });
  });

  it('count by state, and report sends, the breaker, the pause and the sender', async () => {
    await enqueue('p', 'q', 'r', 's');
    await sendAs(REJECTED, 'p');
    await sendAs(UNKNOWN, 'q');
    await beginOne('r');
    await sender.renewLease({ owner: 'one', epoch: 3 });
    await ledger.pause('ann', 'holiday');
    expect(await stats()).toMatchObject({
      ...{ queued: 1, sending: 1, rejected: 1, unknown: 1, in_progress: 0, sends: 3, withoutJob: 4 },
      ...{ paused: true, pausedReason: 'holiday', pausedBy: 'ann', pausedAt: '2030-01-01T00:00:00.000Z' },
      ...{ sender: { owner: 'one', epoch: 3, heartbeat: 1 }, rejectionsInARow: 1, unknownsInARow: 1 },
    });
  });

  it('tell members of the outbox that make no sense from payouts that wait for a job', async () => {
    await enqueue('p');
    const { outbox } = keys;
    await redis.zadd(outbox, 1, 'refunding p', 2, Buffer.of(0xff), 3, 'queued p\n');
    expect(await stats()).toMatchObject({ withoutJob: 1, outboxUnreadable: 3 });
  });

  it('name journals, objections and late payments, and no sender once the lease ended', async () => {
    await enqueue('p');
    const [attempt] = await sendAs(UNKNOWN, 'p');
    await change('p', 'unknown', 'written_off', ANN);
    if (attempt !== undefined) await finish(attempt, ACCEPTED);
    await sender.object(OBJECTION);
    const told = { paused: false, objections: [OBJECTION], journals: [JOURNAL], latePayments: 1 };
    expect(await stats()).toMatchObject(told);
    await sender.releaseLease(await takeLease(sender, 'one'));
    expect((await stats()).sender).toBeNull();
    const nothing = { read: [], givenUp: [] };
    await adoptLedger(
      connection,
      { epoch: 5, sendCount: 5, acts: 0 },
      { token: 'adopted', inFlightMs: 0 },
      nothing,
      ANN,
    );
    expect((await stats()).sender).toBeNull();
  });

  it('show an objection that nobody can read, and a journal of which nothing is known', async () => {
    const unreadable = { unnamed: '{"reason":"older","at":"7"}', torn: '{"rea', number: '5' };
    await redis.hset(keys.objections, unreadable);
    await redis.hset(keys.journals, { 'j-torn': '[]' });
    const { objections, journals } = await stats();
    const empty = { kind: 'ledger', reason: 'no reason was noted', host: '', dir: '', sends: 0, at: 0 };
    expect(objections).toEqual([
      { ...empty, journalId: 'number' },
      { ...empty, journalId: 'torn' },
      { ...empty, journalId: 'unnamed', reason: 'older', at: 7 },
    ]);
    expect(journals).toEqual([{ journalId: 'j-torn', host: '', dir: '', sends: 0, token: '', at: 0 }]);
  });
});

const ages = async () => (await stats()).oldestAgeMs;
const inQueue = async () => redis.zrange(keys.state('queued'), '0', '-1');

it('a payout that is put back keeps its place, unless the ledger was adopted since', async () => {
  await enqueue('p', 'q');
  const attempt = await beginOne('p');
  const nothing = { read: [], givenUp: [] };
  await adoptLedger(connection, { epoch: 5, sendCount: 5, acts: 0 }, { token: 'adopted', inFlightMs: 0 }, nothing, ANN);
  await sender.revertSend(attempt, 'not sent');
  expect(await inQueue()).toEqual(['q', 'p']);
});

it('the age of the oldest is for how long it has been in its state, not how old it is', async () => {
  await enqueue('p', 'q');
  clock.advance(5_000);
  await sendAs(UNKNOWN, 'p');
  clock.advance(2_000);
  expect(await ages()).toEqual({ queued: 7_000, held: null, sending: null, in_progress: null, unknown: 2_000 });
  await sender.holdPayout('q', 0, HOLD);
  clock.advance(3_000);
  expect(await ages()).toMatchObject({ queued: null, held: 3_000 });
  await change('q', 'held', 'queued', ANN);
  clock.advance(-60_000);
  expect(await ages()).toMatchObject({ queued: 0, unknown: 0 });
});

it('the age of the oldest counts from when an operator put it at the end, also once put back unsent', async () => {
  await enqueue('p', 'q');
  for (let round = 0; round < 3; round += 1) {
    clock.advance(5_000);
    await revert('p');
    // Put back without having been sent, it keeps its place.
    expect(await inQueue()).toEqual(['p', 'q']);
  }
  expect((await ages()).queued).toBe(15_000);
  await sendAs(REJECTED, 'p');
  clock.advance(60_000);
  await change('p', 'rejected', 'queued', ANN);
  expect(await inQueue()).toEqual(['q', 'p']);
  await change('q', 'queued', 'cancelled', ANN);
  expect((await ages()).queued).toBe(0);
  clock.advance(5_000);
  await revert('p');
  clock.advance(1_000);
  expect((await ages()).queued).toBe(6_000);
});

it('the age of the oldest is a number, though entries before it have no record', async () => {
  await enqueue('p');
  clock.advance(5_000);
  for (const ghost of ['ghost-1', 'ghost-2']) await redis.zadd(keys.state('queued'), 0, ghost);
  await redis.zadd(keys.state('unknown'), 0, 'ghost-1');
  expect(await ages()).toMatchObject({ queued: 5_000, unknown: null });
});

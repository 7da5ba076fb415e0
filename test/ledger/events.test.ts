import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, beforeEach } from '@jest/globals';
import { adoptLedger, adoptSends, holdSendablePayouts } from '../../src/ledger/adopt-ledger.js';
import { readActivity } from '../../src/ledger/reads/activity.js';
import { parseHeadReason, publishJournalHead, publishPolicyLoaded } from '../../src/ledger/reads/workers.js';
import { readEvents, type PayoutEvent } from '../../src/producer/events/payout-events.js';
import {
  ACCEPTED,
  beginOne,
  change,
  clock,
  connection,
  enqueue,
  finish,
  keys,
  ledger,
  OBJECTION,
  redis,
  REJECTED,
  sendAs,
  sender,
  takeLease,
  UNKNOWN,
  useAccount,
} from './support/use-account.js';

useAccount();

const ANN = { by: 'ann', reason: 'a wrong file' };
const AT = '2030-01-01T00:00:00.000Z';
const TRIPS = { maxRejectionsInARow: 1, maxUnknownsInARow: 9 };
const TRIPPED = '1 rejections in a row, the last: no funds';
const FORGOTTEN = {
  payoutId: 't',
  attempt: 1,
  token: 't',
  request: { paymentId: 7, amount: '1', addressTo: 'w' },
  inFlightMs: 0,
};

const adopt = async (givenUp: string[] = []) =>
  adoptLedger(
    connection,
    { epoch: 1, sendCount: 1, acts: 0 },
    { token: 'adopted', inFlightMs: 0 },
    { read: [], givenUp },
    ANN,
  );

/** Each event in a line: what, of which payout, from where to where, by whom, why. */
async function readLines() {
  const entries = await redis.xrange(keys.events, '-', '+');
  return entries.map(([, fields]) => {
    const of = (name: string) => fields[fields.indexOf(name) + 1] ?? '';
    expect(fields.filter((_, index) => index % 2 === 0)).toEqual(
      expect.arrayContaining(['type', 'payoutId', 'from', 'to', 'at', 'by', 'reason']),
    );
    const [at, from] = [Number(of('at')) - Date.parse(AT), `${of('from')}>${of('to')}`];
    return `${of('type')} ${of('payoutId')} ${from} ${of('by')}: ${of('reason')}${at === 0 ? '' : ` +${at}`}`;
  });
}

it('the event stream reports every change of a payout in order, in the same step', async () => {
  await enqueue('p');
  await sender.revertSend(await beginOne('p'), 'no connection');
  await finish(await beginOne('p'), REJECTED, TRIPS);
  await change('p', 'rejected', 'queued', { by: 'ann', reason: 'again' });
  await ledger.resume('ann', 'topped up');
  expect(await readLines()).toEqual([
    'state p >queued : ',
    'state p queued>sending : ',
    'state p sending>queued : no connection',
    'state p queued>sending : ',
    'state p sending>rejected : no funds',
    `paused  > worker: ${TRIPPED}`,
    'state p rejected>queued ann: again',
    'resumed  > ann: topped up',
  ]);
});

describe('what identifies an event', () => {
  const read = async () => readEvents(connection, { sinceMs: 0 }, 100);

  it('is the payout, its attempt and its state, and the time of what may come again in an attempt', async () => {
    await enqueue('p');
    await sender.revertSend(await beginOne('p'), 'no connection');
    await finish(await beginOne('p'), REJECTED, TRIPS);
    await change('p', 'rejected', 'queued', { by: 'ann', reason: 'again' });
    const at = Date.parse(AT);
    const events = await read();
    expect(events.map(({ id }) => id)).toEqual([
      'p#0#queued',
      'p#1#sending',
      `p#1#queued#${at}`,
      'p#2#sending',
      'p#2#rejected',
      `paused#${at}`,
      `p#2#queued#${at}`,
    ]);
    expect(events.map(({ attempt }) => attempt)).toEqual([0, 1, 1, 2, 2, undefined, 2]);
  });

  it('survives a failover to a replica that lacked the change, which then comes at another place', async () => {
    await enqueue('p');
    const attempt = await beginOne('p');
    const replica = await Promise.all(
      (await redis.keys(`${keys.prefix}:*`)).map(async (key) => [key, await redis.dumpBuffer(key)] as const),
    );
    const finishAndRead = async () => {
      await finish(attempt, ACCEPTED);
      return (await read()).at(-1);
    };
    const first = await finishAndRead();
    await redis.unlink(...(await redis.keys(`${keys.prefix}:*`)));
    for (const [key, content] of replica) await redis.restore(key, 0, content);
    clock.advance(1_234);
    const second = await finishAndRead();
    expect([first?.id, second?.id]).toEqual(['p#1#in_progress', 'p#1#in_progress']);
    expect(second?.eventId).not.toBe(first?.eventId);
    expect(second?.at).not.toBe(first?.at);
  });
});

it('the event stream reports a recovery, an adoption, and an objection once for each reason', async () => {
  await enqueue('p');
  const left = await beginOne('p');
  await sender.markSendsUnknown(await takeLease(sender, 'two'), [left], 'the sender ended', 0);
  await adoptSends(connection, [FORGOTTEN], ANN);
  for (let times = 0; times < 2; times += 1) await sender.object(OBJECTION);
  await sender.object({ ...OBJECTION, reason: 'it forgot more', at: OBJECTION.at + 9 });
  await adopt();
  expect((await readLines()).slice(2)).toEqual([
    'state p sending>unknown : the sender ended',
    'state t >unknown ann: a wrong file',
    'objection  > j-two: it forgot a send',
    'objection  > j-two: it forgot more +9',
    'ledger_adopted  > ann: a wrong file',
    `paused  > ${ADOPTION_PAUSE}`,
  ]);
});

describe('an event that a worker publishes', () => {
  const HEAD = { journalId: 'abcdef012345', hash: 'ab'.repeat(32), sends: 7 };
  const POLICY = 'cd'.repeat(32);
  const read = async (): Promise<PayoutEvent[]> => readEvents(connection, { sinceMs: 0 }, 100);
  const publishHead = async (hash = HEAD.hash) => publishJournalHead(connection, { ...HEAD, hash });

  it('tells where a journal ends, and which policy was loaded, and is no act', async () => {
    for (let times = 0; times < 2; times += 1) await publishHead();
    await publishPolicyLoaded(connection, POLICY, 'policy.yaml, by host:1');
    const any: unknown = expect.any(String);
    const head = 'journal abcdef012345, send number 7';
    expect(await read()).toEqual([
      { id: any, eventId: any, at: any, type: 'journal_head', hash: HEAD.hash, reason: head },
      { id: any, eventId: any, at: any, type: 'policy_loaded', hash: POLICY, reason: 'policy.yaml, by host:1' },
    ]);
    expect(parseHeadReason(head)).toBe('abcdef012345');
    expect(parseHeadReason('journal abcdef012345')).toBeUndefined();
    expect((await readActivity(connection, 10)).activities).toEqual([]);
  });

  it('comes after the one that an interrupted script left out', async () => {
    await redis.hset(keys.ledger, 'pendingEvent', ['paused', '1000', 'ann', 'maintenance'].join('\t'));
    await publishHead();
    expect((await read()).map(({ type }) => type)).toEqual(['paused', 'journal_head']);
    expect(await redis.hget(keys.ledger, 'pendingEvent')).toBeNull();
  });
});

it('what an interrupted script left out is told by the next statement, begin, outcome, pause, or resumption', async () => {
  const leaveOut = async (later: number) => {
    const pending = ['resumed', String(Date.parse(AT) + later), 'ann', 'over'].join('\t');
    await redis.hset(keys.ledger, 'pendingEvent', pending);
  };
  await enqueue('p');
  await leaveOut(1);
  await ledger.declareNew(ANN);
  await leaveOut(2);
  const attempt = await beginOne('p');
  await leaveOut(3);
  await finish(attempt, REJECTED);
  await leaveOut(4);
  await ledger.pause('bob', 'again');
  await leaveOut(5);
  await ledger.resume('bob', 'again');
  const told = (await readLines()).filter((line) => line.includes('ann: over'));
  expect(told).toEqual([1, 2, 3, 4, 5].map((later) => `resumed  > ann: over +${later}`));
});

async function readAll(limit = 100) {
  const found: string[] = [];
  let before: string | undefined;
  do {
    const page = await readActivity(connection, limit, before);
    expect(page.activities.length).toBeLessThanOrEqual(limit);
    for (const { what, by, payoutId = '-', reason } of page.activities)
      found.push(`${what} ${payoutId} ${by}: ${reason}`);
    before = page.next;
  } while (before !== undefined);
  return found;
}
const forgetActivity = async () => redis.del(keys.activity);

async function actOnAll() {
  await enqueue('p', 'q', 'r', 's');
  await change('s', 'queued', 'cancelled', ANN);
  await finish(await beginOne('p'), REJECTED, TRIPS);
  await ledger.resume('ann', 'topped up');
  await change('p', 'rejected', 'queued', ANN);
  await sendAs(UNKNOWN, 'q', 'r');
  await change('q', 'unknown', 'in_progress', { gatewayId: 'hash-1', ...ANN });
  await change('q', 'in_progress', 'completed');
  await change('r', 'unknown', 'queued', ANN);
  await sender.object(OBJECTION);
  await adoptSends(connection, [FORGOTTEN], ANN);
  await holdSendablePayouts(connection, ANN, 0);
  await adopt([OBJECTION.journalId]);
  await change('r', 'unknown', 'written_off', ANN);
}

const ADOPTION_PAUSE = 'adoption: the ledger was adopted: look at what came back, then resume';

const everything = (...madeUnknown: string[]) => [
  'written_off r ann: a wrong file',
  `paused - ${ADOPTION_PAUSE}`,
  'adopted - ann: a wrong file',
  ...madeUnknown.map((payoutId) => `made_unknown ${payoutId} ann: a wrong file`),
  'recovered t ann: a wrong file',
  'objected - j-two: it forgot a send',
  'resolved_not_sent r ann: a wrong file',
  'resolved_sent q ann: a wrong file',
  'retried p ann: a wrong file',
  'resumed - ann: topped up',
  `paused - worker: ${TRIPPED}`,
  'cancelled s ann: a wrong file',
];
const EVERYTHING = everything('-');
/** An act for many payouts is one for each in the events. */
const EVERY_EVENT = everything('r', 'p');

it('the activity lists who did what and why, in pages of any size, without the events', async () => {
  await actOnAll();
  for (const limit of [1, 2, 10, 11]) expect(await readAll(limit)).toEqual(EVERYTHING);
  // What the sender and the gateway do is not listed.
  const [last] = (await readActivity(connection, 1)).activities;
  expect(last).toEqual({ at: AT, ...ANN, what: 'written_off', payoutId: 'r', count: 1 });
  await redis.xtrim(keys.events, 'MAXLEN', 0);
  expect(await readAll()).toEqual(EVERYTHING);
});

it('the activity of a ledger of before comes from its events, in one list with that of now', async () => {
  await actOnAll();
  await forgetActivity();
  for (const limit of [3, 100]) expect(await readAll(limit)).toEqual(EVERY_EVENT);
  await delay(5);
  await ledger.pause('bob', 'lunch');
  await ledger.resume('bob', 'back');
  for (const limit of [1, 2, 3, 100]) {
    expect(await readAll(limit)).toEqual(['pause_ended - bob: bob: back', 'paused - bob: lunch', ...EVERY_EVENT]);
  }
});

it('the activity has one line for a decision about many payouts', async () => {
  const cancel = async (payoutId: string) => {
    const payouts = [{ payoutId }];
    await ledger.changeMany({ from: 'queued', to: 'cancelled', payouts, isOneAct: true, ...ANN });
    await delay(2);
  };
  const read = async (limit = 9) => (await readActivity(connection, limit)).activities;
  await enqueue('a', 'b', 'c', 'd', 'e');
  for (const payoutId of ['a', 'b', 'c', 'd']) await cancel(payoutId);
  expect(await read()).toMatchObject([{ what: 'cancelled', count: 4 }]);
  expect(await read(1)).toHaveLength(1);
  clock.advance(60_001);
  await cancel('e');
  expect(await read()).toMatchObject([{ count: 1 }, { count: 4 }]);
});

it('the activity is kept within bounds', async () => {
  const fill = `for i = 1, 10300 do redis.call('XADD', KEYS[1], '*', 'type', 'paused', 'by', 'ann', 'at', i) end`;
  await redis.eval(fill, 1, keys.activity);
  await connection.run('pause-account', { at: clock.wallNow(), by: 'ann', reason: 'holiday' });
  expect(await redis.xlen(keys.activity)).toBeLessThan(10_150);
});

describe('a group of consumers', () => {
  beforeEach(async () => enqueue('a', 'b', 'c'));

  const CLAIM_AFTER_MS = 60_000;

  async function read(consumer: string, { limit = 100, claimAfterMs = CLAIM_AFTER_MS } = {}) {
    const reply = await connection.run('read-group-events', { group: 'books', consumer, claimAfterMs, limit });
    const [newestId, othersForMs, entries] = reply as [string, number, [string, string[]][]];
    const payoutIds = entries.map(([, fields]) => fields[fields.indexOf('payoutId') + 1] ?? '');
    return { newestId, othersForMs, payoutIds, eventIds: entries.map(([eventId]) => eventId) };
  }

  const acknowledge = async (consumer: string, eventId = '') =>
    connection.run('ack-group-event', { group: 'books', consumer, eventId });

  const setIdle = async (consumer: string, idleMs: number, limit = 100) =>
    connection.run('set-group-idle', { group: 'books', consumer, idleMs, limit });

  const newestInStream = async () => (await redis.xrevrange(keys.events, '+', '-', 'COUNT', 1))[0]?.[0];

  function expectWholeWait(othersForMs: number) {
    expect(othersForMs).toBeGreaterThan(CLAIM_AFTER_MS - 5_000);
    expect(othersForMs).toBeLessThanOrEqual(CLAIM_AFTER_MS);
  }

  it('gives a consumer the oldest, again until it has acknowledged them, then the next, and nothing at the end', async () => {
    const { eventIds, ...first } = await read('one', { limit: 2 });
    expect(first).toEqual({ newestId: await newestInStream(), othersForMs: 0, payoutIds: ['a', 'b'] });
    expect((await read('one', { limit: 2 })).eventIds).toEqual(eventIds);
    expect(await acknowledge('one', eventIds[0])).toBe(1);
    expect((await read('one')).payoutIds).toEqual(['b']);
    expect(await acknowledge('one', eventIds[1])).toBe(1);
    const [third] = (await read('one')).eventIds;
    await acknowledge('one', third);
    expect(await read('one')).toMatchObject({ newestId: await newestInStream(), othersForMs: 0, payoutIds: [] });
    await redis.del(keys.events);
    expect(await read('one')).toMatchObject({ newestId: '0-0', othersForMs: 0, payoutIds: [] });
  });

  it('lets another take over all of them after the silence, and not before', async () => {
    await read('one', { limit: 2 });
    const { othersForMs, payoutIds, newestId } = await read('two');
    expect({ payoutIds, newestId }).toEqual({ payoutIds: [], newestId: await newestInStream() });
    expectWholeWait(othersForMs);
    await setIdle('one', 30_000);
    expect((await read('two', { claimAfterMs: 50_000 })).othersForMs).toBeLessThanOrEqual(20_000);
    expect(await read('two', { claimAfterMs: 30_000 })).toMatchObject({ othersForMs: 0, payoutIds: ['a', 'b'] });
    expect((await read('one')).othersForMs).toBeGreaterThan(0);
  });

  it('lets only the consumer that has an event acknowledge it, once, and continues where those in hand were trimmed', async () => {
    expect(await acknowledge('one', '1-1')).toBe(0);
    const [eventId, ...later] = (await read('one')).eventIds;
    expect(await acknowledge('one', '1-1')).toBe(-1);
    expect(await acknowledge('two', eventId)).toBe(0);
    expect(await acknowledge('one', eventId)).toBe(1);
    expect(await acknowledge('one', eventId)).toBe(-1);
    await redis.xdel(keys.events, ...later);
    await enqueue('d');
    expect((await read('one')).payoutIds).toEqual(['d']);
  });

  it('fails where the stream is none', async () => {
    const { events } = keys;
    await redis.del(events);
    await redis.set(events, 'not a stream');
    await expect(acknowledge('one', '1-1')).rejects.toThrow('WRONGTYPE');
  });

  it('sets how long a consumer was silent for as many of its events as asked for', async () => {
    await read('one', { limit: 2 });
    expect(await setIdle('two', 70_000)).toBe(0);
    expect(await setIdle('one', 70_000, 1)).toBe(1);
    expect((await read('two')).othersForMs).toBeGreaterThan(0);
    expect(await setIdle('one', 70_000)).toBe(2);
    expect((await read('two')).payoutIds).toEqual(['a', 'b']);
  });

  it('leaves a consumer its events where that is 0, which is no other delivery', async () => {
    const [eventId = ''] = (await read('one')).eventIds;
    await setIdle('one', 70_000);
    expect(await setIdle('one', 0)).toBe(3);
    expectWholeWait((await read('two')).othersForMs);
    const pending = await redis.xpending(keys.events, 'books', eventId, eventId, 1);
    expect(pending).toMatchObject([[eventId, 'one', expect.any(Number), 1]]);
  });
});

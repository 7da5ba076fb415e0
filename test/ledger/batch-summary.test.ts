import { describe, expect, it } from '@jest/globals';
import {
  type BatchSummary,
  POSITION,
  progressOf,
  readBatchSummary,
  readBatchSums,
} from '../../src/ledger/reads/batches.js';
import { PAYOUTS_PER_CHANGE } from '../../src/ledger/payout-ledger.js';
import { removePayouts } from './support/remove-payouts.js';
import type { SentOutcome } from '../../src/gateway/gateway.js';
import { catchUp, intercepted, openKeeper } from '../worker/statistics/support/statistics-rig.js';
import {
  ANN,
  aPayout,
  change,
  clock,
  connection,
  HOLD,
  keys,
  ledger,
  names,
  redis,
  sendAs,
  sender,
  useAccount,
} from './support/use-account.js';
import { compareBalance } from '../../src/ledger/reads/balance-cover.js';
import {
  type CurrencySum,
  estimateEnd,
  MINUTE_MS,
  type MinuteStatistics,
  parseStatistics,
} from '../../src/ledger/reads/statistics.js';

useAccount();

async function enqueue(count: number, batch = 'b', name = batch) {
  const payoutIds = names(count, `${name}-`);
  await ledger.enqueue(payoutIds.map((payoutId) => aPayout(payoutId, { amount: '1.5', batch })));
  return payoutIds;
}

async function send(kind: 'rejected' | 'unknown', message: string, payoutId: string, amount = '1', batch = 'b') {
  await ledger.enqueue([aPayout(payoutId, { batch, amount })]);
  const result: SentOutcome = kind === 'rejected' ? { kind, message } : { kind, reason: message };
  await sendAs(result, payoutId);
}

async function cancel(payoutIds: readonly string[]) {
  for (let start = 0; start < payoutIds.length; start += PAYOUTS_PER_CHANGE) {
    const payouts = payoutIds.slice(start, start + PAYOUTS_PER_CHANGE).map((payoutId) => ({ payoutId }));
    await ledger.changeMany({ from: 'queued', to: 'cancelled', payouts, isOneAct: true, ...ANN });
  }
}

async function summary(batch = 'b'): Promise<BatchSummary> {
  const found = await readBatchSummary(connection, batch);
  if (found === undefined) throw new Error('the batch is empty');
  return found;
}

it('sums a batch exactly, by state, currency and account currency', async () => {
  const amounts = ['0.1', '0.2', '0.000000000000000001', '123456789012345678901234567890'];
  const given = (payoutId: string, amount: string, paymentId: number, symbol?: string, batch = 'b') =>
    aPayout(payoutId, { amount, batch, paymentId, symbol });
  await ledger.enqueue([
    ...amounts.map((amount, index) => given(`a-${index}`, amount, 6, 'USD')),
    given('other', '5', 12, 'EUR'),
    given('without', '7', 12),
    given('elsewhere', '9', 12, 'EUR', 'c'),
  ]);
  const { total, sums, messages } = await summary();
  expect({ total, messages }).toEqual({ total: 6, messages: [] });
  expect(sums.queued).toEqual([
    { paymentId: 6, symbol: 'USD', count: 4, amount: '123456789012345678901234567890.300000000000000001' },
    { paymentId: 12, symbol: undefined, count: 1, amount: '7' },
    { paymentId: 12, symbol: 'EUR', count: 1, amount: '5' },
  ]);
  expect(sums.completed).toEqual([]);
});

it('is paid only where it was: what waits or is unknown is left, added up in one currency', async () => {
  await send('rejected', 'no', 'r', '2');
  await send('unknown', 'empty', 'u', '3');
  await cancel(await enqueue(2));
  await enqueue(1, 'b', 'q');
  await send('unknown', 'empty', 'w', '4');
  await ledger.change({ payoutId: 'w', from: 'unknown', to: 'written_off', ...ANN });
  const progress = progressOf(await summary());
  expect(progress).toMatchObject({ paid: { count: 0 }, failed: { count: 1 }, cancelled: { count: 2 } });
  // Neither paid nor not paid: only who wrote it off knows.
  expect(progress.writtenOff).toMatchObject({ count: 1, sums: [{ amount: '4' }] });
  expect(progress.left).toMatchObject({ count: 2, sums: [{ count: 2, amount: '4.5' }] });
  expect(progress.left.sums).toHaveLength(1);
});

it('says who enqueued it, when, and how many payouts are before it', async () => {
  await enqueue(3, 'before');
  await ledger.enqueue([aPayout('first', { batch: 'b', requestedBy: 'Ann' }), aPayout('second', { batch: 'b' })]);
  expect(await summary('before')).toMatchObject({ enqueuedBy: undefined, ahead: 0 });
  expect(await readBatchSummary(connection, 'none')).toBeUndefined();
  const { enqueuedAt, ...batch } = await summary();
  expect(batch).toMatchObject({ enqueuedBy: 'Ann', ahead: 3 });
  expect(Date.parse(enqueuedAt)).toBe(clock.wallNow());
  await cancel(['before-0', 'first']);
  expect((await summary()).ahead).toBe(2);
  await cancel(['second']);
  expect((await summary()).ahead).toBeUndefined();
});

it.each([0, 99, 100, 300])('finds the first of a large batch that still waits, after %i', async (gone) => {
  await enqueue(7, 'before');
  await cancel((await enqueue(300)).slice(0, gone));
  expect((await summary()).ahead).toBe(gone === 300 ? undefined : 7);
});

it('counts the messages of what needs an operator or failed, the most frequent first', async () => {
  await send('rejected', 'other', 'elsewhere', '1', 'c');
  for (const [index, message] of ['no', 'empty', 'empty'].entries()) await send('rejected', message, `r-${index}`);
  await send('unknown', 'empty', 'u');
  await change('r-0', 'rejected', 'queued', ANN);
  for (const payoutId of await enqueue(3, 'b', 'h')) await sender.holdPayout(payoutId, 0, HOLD);
  const { messages, urgent } = await summary();
  expect(messages).toEqual([
    { state: 'held', message: HOLD.message, count: 3 },
    { state: 'rejected', message: 'empty', count: 2 },
    { state: 'unknown', message: 'empty', count: 1 },
  ]);
  expect(urgent).toEqual(['u', 'r-2', 'r-1', 'h-2', 'h-1', 'h-0']);
});

const SIZE = 300;
const keep = async () => catchUp(openKeeper(connection));
const write = async (field: string, text: string) => redis.hset(keys.batches, field, text);

/** How many records a read of the sums takes, and whether it is right. */
async function countRecords() {
  let records = 0;
  const counted = intercepted(connection, async (work, name) => {
    const result = await work();
    if (name === 'pipeline') records += (result as unknown[]).length;
    return result;
  });
  const sums = await readBatchSums(counted, 'b');
  const payoutIds = await redis.zrange(keys.batch('b'), '0', '-1');
  const states = await Promise.all(payoutIds.map(async (id) => redis.hget(keys.payout(id), 'state')));
  for (const [state, list] of Object.entries(sums)) {
    const count = states.filter((each) => each === state).length;
    const sum = { paymentId: 7, symbol: undefined, count, amount: String(1.5 * count) };
    expect(list).toEqual(count === 0 ? [] : [sum]);
  }
  return records;
}

it('what the sender kept is followed, also where the batch grows beside another', async () => {
  const payoutIds = await enqueue(SIZE);
  expect(await countRecords()).toBeGreaterThanOrEqual(SIZE);
  await keep();
  expect(await countRecords()).toBe(0);
  await cancel(payoutIds.slice(0, 50));
  await enqueue(7, 'b', 'more');
  await cancel((await enqueue(9, 'other')).slice(0, 4));
  expect(await countRecords()).toBe(50 + 7 + 9 + 4);
});

it.each<[string, number, (payoutIds: readonly string[]) => Promise<unknown>]>([
  ['payouts were removed', SIZE, async () => removePayouts(connection, 'cancelled', clock.wallNow() + 1, 10)],
  ['the events are trimmed', SIZE, async () => redis.xtrim(keys.events, 'MAXLEN', 1)],
  ['the last event is none', SIZE, async () => write(POSITION, '"x"')],
  ['much has happened since', 1_200, async (payoutIds) => cancel(payoutIds.slice(100))],
])('what the sender kept is left aside where %s', async (_, size, happens) => {
  const payoutIds = await enqueue(size);
  await cancel(payoutIds.slice(0, 5));
  await keep();
  expect(await countRecords()).toBe(0);
  await cancel(payoutIds.slice(5, 10));
  await happens(payoutIds);
  expect(await countRecords()).toBeGreaterThanOrEqual(size - 5);
  // The next sender puts it right, unless the batch cannot be counted from the events.
  await keep();
  expect(await countRecords()).toBeLessThan(size);
});

const NOW = Date.parse('2030-01-01T12:00:30Z');
const WORKING = { queued: 600, paused: false, objections: [], sender: { owner: 'one', epoch: 1, heartbeat: 1 } };

const PACE = Array.from({ length: 20 }, () => 1_100);
const estimate = (
  pace: number[],
  stats = {},
  stoppedBy?: string,
  lastSendAt: number | undefined = NOW - 110_000,
): ReturnType<typeof estimateEnd> =>
  estimateEnd({ minutes: [], pace, lastSendAt }, { ...WORKING, ...stats }, NOW, stoppedBy);

it.each([
  ['the last gaps between writes', PACE, 1_100],
  ['a standstill in the middle, which is left out', PACE.with(10, 3_600_000), 1_100],
  ['slow responses where they are many', PACE.map((gapMs, at) => (at % 2 === 0 ? 5_000 : gapMs)), 3_050],
])('the expected end of the backlog comes from %s', (_, pace, gapMs) => {
  expect(estimate(pace)).toMatchObject({ endsAt: NOW + 600 * gapMs, why: undefined });
  expect(estimate(pace, { queued: 0, paused: true })).toMatchObject({ endsAt: NOW, why: undefined });
});

it.each([
  ['the account is paused', PACE, { paused: true }, undefined],
  ['a send journal contradicts the ledger', PACE, { paused: true, objections: [{}] }, undefined],
  ['no worker sends', PACE, { sender: null }, undefined],
  ['no two payouts were sent one right after the other yet', [], {}, undefined],
  ['Gateway down', PACE, {}, 'Gateway down'],
])('the expected end of the backlog is not known where it is stopped: %s', (why, pace, stats, stoppedBy) => {
  expect(estimate(pace, stats, stoppedBy)).toMatchObject({ endsAt: undefined, why });
});

it('the expected end of the backlog is not known while nothing was sent lately', () => {
  const why = 'nothing was sent in the last 2 minutes';
  expect(estimate(PACE, {}, undefined, NOW - 121_000)).toMatchObject({ endsAt: undefined, why });
  const never = estimateEnd({ minutes: [], pace: PACE, lastSendAt: undefined }, WORKING, NOW);
  expect(never).toMatchObject({ endsAt: undefined, why });
});

it('the expected end of the backlog has the rate of the last 10 minutes, from the first of them that sent', () => {
  /** How many minutes ago, and what was sent; 0 is the present one, of which half is over. */
  const minute = (ago: number, sent: number) =>
    ({ at: Math.floor(NOW / MINUTE_MS - ago) * MINUTE_MS, sent }) as MinuteStatistics;
  const rate = (...minutes: MinuteStatistics[]) =>
    estimateEnd({ minutes, pace: [], lastSendAt: NOW }, WORKING, NOW).ratePerMinute;
  expect(rate(minute(30, 60), minute(4, 40), minute(3, 50), minute(0, 27))).toBe(117 / 4.5);
  expect([rate(minute(0, 5)), rate()]).toEqual([5, 0]);
});

it('stored statistics of another day say nothing of today, nor of minutes older than a day', () => {
  const day = Math.floor(NOW / 86_400_000);
  const sum = { paymentId: 6, count: 1, amount: '1' };
  const old = JSON.stringify([
    [NOW / MINUTE_MS - 24.5 * 60, 1, null, null, 0, 0, 0, 0],
    [Math.floor(NOW / MINUTE_MS) - 60, 2, 1_010, 2_020, 0, 0, 0, 7],
  ]);
  const stored = { today: JSON.stringify({ day, sent: [sum] }), 'hour:1': old, position: `"${NOW}-3"` };
  const read = parseStatistics(stored, NOW);
  expect(read.today).toEqual({ sent: [sum], completed: [], rejected: [], failed: [] });
  expect(read.asOf).toBe(NOW);
  expect(read.minutes).toMatchObject([{ sent: 2, smallestGapMs: 1_010, largestGapMs: 2_020, backlog: 7 }]);
  expect(parseStatistics(stored, NOW + 86_400_000).today.sent).toEqual([]);
});

it.each(['[1]', '{"queued":5}', `{"day":${Math.floor(NOW / 86_400_000)},"sent":5}`, '{'])(
  'stored statistics that someone altered say nothing: %s',
  (text) => {
    const stored = { position: text, sums: text, today: text, 'hour:1': text };
    const read = parseStatistics({ ...stored, lastSendAt: '[1]', pace: '["x"]' }, NOW);
    expect(read).toEqual(parseStatistics({}, NOW));
  },
);

describe('a balance', () => {
  const currencies = [
    { paymentId: 1, name: 'BTC', usdRate: '64250.5' },
    { paymentId: 6, name: 'USDT (TRC-20)', usdRate: '1' },
    { paymentId: 7, name: 'USDT (ERC-20)', usdRate: '1' },
    { paymentId: 9, name: 'TRX', usdRate: undefined },
  ];
  const sum = (paymentId: number, amount: string): CurrencySum => ({ paymentId, symbol: undefined, count: 1, amount });
  const QUEUED = [sum(1, '0.002'), sum(6, '100'), sum(7, '50.000000000000000001')];
  const compare = (amount: string, of: object, queued = QUEUED) =>
    compareBalance({ balance: [{ paymentId: undefined, symbol: undefined, amount, ...of }], currencies }, queued);

  it.each([
    ['of a currency', '0.001', { paymentId: 1 }, 'BTC', '0.002', false],
    ['of a code of several currencies', '150', { symbol: 'USDT' }, 'USDT', '150.000000000000000001', false],
    ['of the account', '1000', {}, 'USD', '278.501000000000000001', true],
    ['in USD', '278.501', { symbol: 'USD' }, 'USD', '278.501000000000000001', false],
    ['in a symbol that is not known', '0', { symbol: 'EUR' }, 'EUR', undefined, true],
  ])('%s is compared with what is queued', (_, balance, of, currency, queued, isEnough) => {
    expect(compare(balance, of)).toEqual([{ currency, balance, queued, isEnough }]);
    const unknown = { queued: undefined, isEnough: true };
    if (currency === 'USD') expect(compare('1', of, [...QUEUED, sum(9, '5')])).toMatchObject([unknown]);
  });

  it('is not compared with amounts that may be in the currency of their symbol', () => {
    const inDollars = { ...sum(1, '400'), symbol: 'USD' };
    for (const account of [{ paymentId: 1 }, {}, { symbol: 'USD' }]) {
      expect(compare('1000', account, [...QUEUED, inDollars])).toEqual(compare('1000', account));
    }
  });
});

import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { type Logger, silentLogger } from '../../src/base/logger.js';
import { verifyJournal } from '../../src/control/audit/verify-journal.js';
import { readGatewayFacts, requestCurrencies } from '../../src/ledger/reads/gateway-facts.js';
import { readWorkers, type WorkerReport } from '../../src/ledger/reads/workers.js';
import type { JournalHead } from '../../src/ledger/sender-ledger.js';
import { JournalHeadPublisher } from '../../src/worker/account-sending.js';
import { parseBalance, toBalanceList } from '../../src/gateway/parse-balance.js';
import { keepGatewayFacts } from '../../src/worker/keep-gateway-facts.js';
import { parseCurrencies, toCurrencyList } from '../../src/gateway/parse-currencies.js';
import { RecentWork } from '../../src/worker/monitoring/recent-work.js';
import { describeWorker, publishWorker } from '../../src/worker/publish-worker.js';
import { noObserver } from '../../src/worker/sender/worker-observer.js';
import { ManualClock } from '../doubles/manual-clock.js';
import { aSend, LEDGER, makeJournalFolder } from '../journal/support/journal-folder.js';
import { openTestAccount, type TestAccount } from '../ledger/support/test-account.js';
import { until } from '../support/until.js';
import { fastClock } from './support/job-rig.js';
import { afterTest, closeAfterTest } from './support/close-after-test.js';

const QUICK_CLOCK = { ...fastClock(60), wallNow: () => Math.floor(systemClock.now() * 60) };

it('the report of a worker is written, also when it changes, and removed in the end', async () => {
  const { ledger, connection, redis } = closeAfterTest(openTestAccount());
  // Of a process that was killed, which the sender removes, and of what cannot be read.
  const dead: WorkerReport = { role: 'standby', at: 5, startedAt: 1, version: '1' };
  const others = ['host:2', JSON.stringify(dead), 'host:3', '{"role":7}', 'host:4', 'no JSON'];
  await redis.hset(connection.keys.workers, ...others);
  const read = async () => (await readWorkers(connection)).map(({ name, role }) => `${name} ${role}`).join();
  expect(await read()).toBe('host:2 standby');
  let role = 'standby';
  const end = new AbortController();
  const describe = (): Omit<WorkerReport, 'at'> => ({ role, startedAt: 1, version: '1.2.3' });
  const runtime = { ledger, clock: QUICK_CLOCK, logger: silentLogger };
  const reporting = publishWorker(runtime, 'host:1', describe, end.signal);
  await until('reported', async () => (await read()).includes('host:1 standby'));
  role = 'sender';
  await until('reported again, and removed', async () => (await read()) === 'host:1 sender');
  expect(await readWorkers(connection)).toMatchObject([{ version: '1.2.3', startedAt: 1 }]);
  end.abort();
  await reporting;
  expect(await readWorkers(connection)).toEqual([]);
});

it('a worker says its role, why its last attempts failed, and until when it holds off', () => {
  const clock = { now: () => 100_000, wallNow: () => 1_000_000 };
  const work = {
    notSent: undefined,
    failedPolls: undefined,
    ended: undefined,
    wasUnanswered: false,
    slow: undefined,
    tooClose: undefined,
    resumeWasRefused: false,
  };
  const facts = { work, opensAt: undefined, startedAt: 5, clock, status: { role: 'sender' } };
  const refused = { role: 'refused', reason: 'the journal is damaged' };
  expect(describeWorker({ ...facts, status: refused })).toMatchObject(refused);
  expect(describeWorker({ ...facts, opensAt: 110_000 })).toMatchObject({ holdOffUntil: 1_010_000 });
  expect(describeWorker({ ...facts, opensAt: 101_010 })).toMatchObject({ holdOffUntil: undefined });
  const notSent = { reason: 'ECONNREFUSED', code: 'GATEWAY_UNAVAILABLE', count: 3, retryAt: 102_000 } as const;
  const told = { lastError: 'ECONNREFUSED', failedAttempts: 3, nextRetryAt: 1_002_000 };
  expect(describeWorker({ ...facts, work: { ...work, notSent } })).toMatchObject(told);
  const slow = { durationMs: 8_000.4, at: 99_000 };
  expect(describeWorker({ ...facts, work: { ...work, slow } })).toMatchObject({ slowAt: 999_000, slowMs: 8_000 });
});

it('a worker says that it wrote two payouts within a second', () => {
  const clock = { ...systemClock, now: () => 100_000, wallNow: () => 1_000_000 };
  const work = new RecentWork(clock, noObserver);
  const read = () => describeWorker({ work, opensAt: 0, startedAt: 5, clock, status: { role: 'standby' } });
  work.observer.sendGap(1_000, true);
  expect(read().closeAt).toBeUndefined();
  work.observer.sendGap(999.9, true);
  expect(read()).toMatchObject({ closeAt: 1_000_000, closeMs: 999 });
});

it('a worker says for a while what failed and no longer does, the last of it', () => {
  let now = 100_000;
  const clock = { ...systemClock, now: () => now, wallNow: () => now + 900_000 };
  const work = new RecentWork(clock, noObserver);
  const read = () => describeWorker({ work, opensAt: 0, startedAt: 5, clock, status: { role: 'sender' } }).ended;
  work.observer.notSent('ENOSPC', 50, undefined);
  work.observer.notSent('ECONNREFUSED', 50, 'GATEWAY_UNAVAILABLE');
  expect(read()).toBeUndefined();
  now += 1_000;
  work.observer.sent('accepted', 5);
  const sends = { what: 'sends', error: 'ECONNREFUSED', code: 'GATEWAY_UNAVAILABLE', count: 2, at: 1_001_000 };
  expect(read()).toEqual(sends);
  work.observer.polled('in_progress');
  work.observer.sent('accepted', 5);
  expect(read()).toEqual(sends);
  work.observer.polled('error', 'HTTP 500', undefined);
  now += 1_000;
  work.observer.polled('completed');
  expect(read()).toEqual({ what: 'polls', error: 'HTTP 500', code: undefined, count: 1, at: 1_002_000 });
});

const MINUTE_MS = 60_000;

async function open() {
  const clock = new ManualClock();
  const folder = closeAfterTest(await makeJournalFolder());
  const journal = await folder.open();
  await journal.bind(LEDGER);
  const [published, logged]: [JournalHead[], object[]] = [[], []];
  const logger: Logger = { ...silentLogger, info: (fields) => void logged.push(fields) };
  const redis = { fails: false };
  const publisher = new JournalHeadPublisher({ journal, clock, logger }, async (head) => {
    if (redis.fails) throw new Error('Redis unavailable');
    published.push(head);
    return Promise.resolve();
  });
  const headOnDisk = async () => (await verifyJournal(folder.dir, 1))?.head;
  return { clock, journal, published, logged, redis, publisher, headOnDisk };
}

it('the head of the journal is published and logged every ten minutes until the lease ends', async () => {
  const { clock, journal, published, logged, publisher, headOnDisk } = await open();
  const end = new AbortController();
  const keeping = publisher.keep(end.signal);
  await clock.advance(0);
  const first = { journalId: journal.journalId, hash: await headOnDisk(), sends: 0 };
  expect(published).toEqual([first]);
  expect(logged).toEqual([{ head: first.hash, journalId: first.journalId, sends: 0 }]);
  await journal.append(aSend('p', 1));
  await clock.advance(10 * MINUTE_MS - 1);
  expect(published).toHaveLength(1);
  await clock.advance(1);
  const second = { ...first, hash: await headOnDisk(), sends: 1 };
  expect(second.hash).not.toBe(first.hash);
  expect([published, publisher.published]).toEqual([[first, second], { ...second, at: clock.wallNow() }]);
  end.abort();
  await keeping;
  expect(publisher.published).toBeUndefined();
  await clock.advance(60 * MINUTE_MS);
  expect(published).toHaveLength(2);
});

it('the head of the last line is published once, and again where that did not arrive', async () => {
  const { journal, published, logged, redis, publisher, headOnDisk } = await open();
  await journal.append(aSend('p', 1));
  // Nobody waits for this line; closing the journal does.
  journal.noteOutcome(aSend('p', 1), { kind: 'accepted', gatewayId: 'h' }, 5);
  await journal.close();
  redis.fails = true;
  await publisher.publishLast();
  redis.fails = false;
  await publisher.publishLast();
  await publisher.publishLast();
  expect(published.map(({ hash }) => hash)).toEqual([await headOnDisk()]);
  expect(logged).toHaveLength(2);
});

let account: TestAccount;
let stop: AbortController;
let calls: string[];
let aheadMs: number;
beforeEach(() => {
  account = closeAfterTest(openTestAccount());
  stop = new AbortController();
  afterTest(() => {
    stop.abort();
  });
  calls = [];
  aheadMs = 0;
});

const CURRENCIES = [{ payment_id: 6, currency: 'USDT', rate_usd: '1' }];
const NO_ROUTE = new Error('no route');
const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };

function keep(gateway: { currencies: unknown; balance: unknown }, more = {}) {
  const respond = (name: 'currencies' | 'balance') => async (): Promise<never> => {
    calls.push(name);
    const response = gateway[name];
    if (response instanceof Error) throw response;
    return Promise.resolve(response as never);
  };
  return keepGatewayFacts(
    {
      gateway: {
        readCurrencies: async () => toCurrencyList(await respond('currencies')()),
        readBalances: async (currencies) => toBalanceList(await respond('balance')(), currencies),
      },
      connection: { ...account.connection, clock },
      ...{ balanceEveryMs: 60_000, currenciesEveryMs: 3_600_000, queuedPaymentIds: () => [], logger: silentLogger },
      ...more,
    },
    stop.signal,
  );
}

const facts = async () => readGatewayFacts(account.connection);
const untilKnown = async (isKnown: (known: Awaited<ReturnType<typeof facts>>) => boolean) =>
  until('it is known', async () => isKnown(await facts()));

it('the facts of the gateway are cached, and not queried by the next sender before they are due', async () => {
  const first = keep({ currencies: CURRENCIES, balance: '12.5' });
  await untilKnown(({ balanceAt }) => balanceAt !== undefined);
  stop.abort();
  await first;
  const known = await facts();
  const currencies = [{ paymentId: 6, name: 'USDT', usdRate: '1' }];
  expect(known).toMatchObject({ currencies, balance: [{ amount: '12.5' }], isWhole: true, failure: undefined });
  expect(Date.now() - (known.balanceAt ?? 0)).toBeLessThan(5_000);
  stop = new AbortController();
  void keep({ currencies: CURRENCIES, balance: '13' });
  await delay(200);
  expect(calls).toEqual(['currencies', 'balance']);
});

it('the facts of the gateway stay when a query fails, with the reason, until one succeeds', async () => {
  const gateway = { currencies: CURRENCIES, balance: NO_ROUTE as unknown };
  void keep(gateway, { balanceEveryMs: 1 });
  await untilKnown(({ failure }) => failure !== undefined);
  expect(await facts()).toMatchObject({ failure: '/balance: no route', currencies: [{ paymentId: 6 }], balance: [] });
  gateway.balance = { odd: true };
  await untilKnown(({ failure }) => failure?.includes('form') === true);
  gateway.balance = '7';
  await untilKnown(({ failure }) => failure === undefined);
  expect((await facts()).balance).toEqual([{ amount: '7' }]);
});

it('the facts of the gateway are queried for a producer, at most every five minutes', async () => {
  void keep({ currencies: CURRENCIES, balance: '1' }, { balanceEveryMs: 0 });
  await until('they were queried at first', () => calls.length === 1);
  await requestCurrencies(account.connection);
  aheadMs += 10_000;
  await until('they were queried for it', () => calls.length === 2);
  await requestCurrencies(account.connection);
  aheadMs += 60_000;
  await delay(1_500);
  expect(calls).toHaveLength(2);
  aheadMs += 240_000;
  await until('they were queried again', () => calls.length === 3);
});

const USDT = ['TRC-20', 'ERC-20'].map((network, index) => ({
  ...{ payment_id: 6 + index, currency: 'USDT', name: `Tether (${network})`, rate_usd: '1' },
}));

it('currencies have the code as their name, with the network where several share it', () => {
  expect(parseCurrencies([...USDT, { payment_id: 1, currency: 'BTC' }])).toMatchObject([
    { paymentId: 6, name: 'USDT (TRC-20)', usdRate: '1' },
    { paymentId: 7, name: 'USDT (ERC-20)', usdRate: '1' },
    { paymentId: 1, name: 'BTC' },
  ]);
});

it.each<readonly [Readonly<Record<string, unknown>>, string | undefined, string | undefined]>([
  [{ id: 6, code: 'USDT', rate: 1.5e-7 }, 'USDT', '0.00000015'],
  [{ currency_id: '6', coin: 'USDT', usd: '-1' }, 'USDT', undefined],
  ...[{ id: 6 }, { id: 1.5, name: 'USDT' }].map((item) => [item, undefined, undefined] as const),
])('a currency is understood as %j: %p', (item, name, usdRate) => {
  expect(parseCurrencies([item])).toEqual(name === undefined ? [] : [{ paymentId: 6, name, usdRate }]);
});

const of = (amount: string, more = {}) => ({ paymentId: undefined, symbol: undefined, amount, ...more });
const [SEVEN, BITCOIN] = [of('7', { paymentId: 6 }), of('1', { paymentId: 1 })];
it.each<readonly [unknown, object[] | undefined]>([
  ['1000000.50', [of('1000000.5')]],
  [-3, [of('0')]],
  [{ amount: '5', currency: 'USD' }, [of('5', { symbol: 'USD' })]],
  [{ BTC: '0.5', USD: 7 }, [of('0.5', { paymentId: 1 }), of('7', { symbol: 'USD' })]],
  [
    [...[{ payment_id: 6, balance: '7' }], { code: 'BTC', value: '1' }],
    [SEVEN, BITCOIN],
  ],
  [[], []],
  ['plenty', undefined],
  [['1', '2'], undefined],
])('a balance is understood as %j, or not', (balance, parsed) => {
  expect(parseBalance(balance, parseCurrencies([...USDT, { id: 1, code: 'BTC' }]))).toEqual(parsed);
});

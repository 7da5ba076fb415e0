import { beforeEach, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { commandName, scriptSource } from '../../src/ledger/ledger-scripts.js';
import { RedisUnavailableError, StoppedError } from '../../src/base/errors.js';
import { silentLogger } from '../../src/base/logger.js';
import type { PayoutProducer } from '../../src/control/payout-producer.js';
import { takeCurrenciesRequest, writeGatewayFacts } from '../../src/ledger/reads/gateway-facts.js';
import { removePayouts } from '../ledger/support/remove-payouts.js';
import { account, names } from '../ledger/support/use-account.js';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest } from '../worker/support/close-after-test.js';
import { startOwnRedis } from '../worker/support/own-redis.js';
import { payoutInput } from './support/payout-input.js';
import { key, openProducer, useProducer, waiting } from './support/use-producer.js';

let aheadMs: number;
let producer: PayoutProducer;
const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
const open = (checkPaymentIds?: boolean): PayoutProducer =>
  openProducer({ connection: account.redis, clock, checkPaymentIds });

useProducer();
beforeEach(() => {
  aheadMs = 0;
  producer = open();
});

/** Counts the calls of the script on this connection. @param onSent - called behind each */
function countScripts(onSent: () => void = () => undefined): () => number {
  const commands = account.redis as unknown as Record<string, (...args: unknown[]) => unknown>;
  const name = commandName('enqueue-payouts');
  if (!(name in commands)) account.redis.defineCommand(name, { lua: scriptSource('enqueue-payouts') });
  const script = commands[name];
  let calls = 0;
  commands[name] = (...args) => {
    calls += 1;
    const reply = script?.apply(account.redis, args);
    onSent();
    return reply;
  };
  return () => calls;
}

const enqueueAll = (payoutIds: readonly string[], by = producer) =>
  payoutIds.map(async (payoutId) => by.enqueue(payoutInput({ payoutId })));

it('calls at the same time share a script call, and each gets its own result', async () => {
  await producer.enqueue(payoutInput({ payoutId: 'p7' }));
  const scripts = countScripts();
  const results = await Promise.all(enqueueAll(names(60)));
  expect(scripts()).toBe(2);
  expect(results).toEqual(names(60).map((payoutId) => ({ payoutId, state: 'queued', created: payoutId !== 'p7' })));
});

it('calls at the same time with one payoutId are one payout, and a conflict where they differ', async () => {
  const calls = ['12.5', '13', '12.5'].map(async (amount) => producer.enqueue(payoutInput({ amount })));
  const results = await Promise.allSettled(calls);
  expect(results).toMatchObject([
    { value: { created: true } },
    { reason: { fields: ['amount'] } },
    { value: { created: false } },
  ]);
  const differs = /^Payout p-1 already exists \(queued\) with a different amount\./;
  await expect(producer.enqueue(payoutInput({ amount: '13' }))).rejects.toThrow(differs);
  expect(await producer.get('p-1')).toMatchObject({ amount: '12.5' });
});

it.each<[string, (record: string) => Promise<unknown>]>([
  ['fails its script', async (record) => account.redis.set(record, 'no hash')],
  ['cannot be read', async (record) => account.redis.hset(record, 'state', 'refunding', 'n', 1, 'h0', 'q1')],
])('calls at the same time of which one meets a record that %s: only that one fails', async (_, damage) => {
  await damage(key('payout:p3'));
  const scripts = countScripts();
  const results = await Promise.allSettled(enqueueAll(names(6)));
  expect(results.map(({ status }) => status)).toEqual(
    names(6).map((payoutId) => (payoutId === 'p3' ? 'rejected' : 'fulfilled')),
  );
  expect(scripts()).toBe(7);
  await producer.close();
  expect((await waiting()).toSorted()).toEqual(['p0', 'p1', 'p2', 'p4', 'p5']);
});

it('calls at the same time are recorded as they were when they were made', async () => {
  const metadata = { invoice: 1 };
  const accepted = producer.enqueue(payoutInput({ metadata }));
  metadata.invoice = 2;
  await accepted;
  expect(await producer.get('p-1')).toMatchObject({ metadata: { invoice: 1 } });
});

describe('an aborted call', () => {
  it('enqueues nothing if the signal comes before the script, whatever is enqueued beside it', async () => {
    const stop = new AbortController();
    const aborted = producer.enqueue(payoutInput({ payoutId: 'aborted' }), { signal: stop.signal });
    const other = producer.enqueue(payoutInput({ payoutId: 'other' }), { signal: new AbortController().signal });
    stop.abort();
    const late = producer.enqueue(payoutInput({ payoutId: 'late' }), { signal: stop.signal });
    for (const call of [aborted, late]) await expect(call).rejects.toThrow(StoppedError);
    await expect(aborted).rejects.toThrow('Payout aborted was not enqueued: the call was aborted');
    expect(await other).toMatchObject({ created: true });
    expect(await producer.stats()).toMatchObject({ queued: 1 });
  });

  it('returns the payout as accepted if the signal comes after the script was sent', async () => {
    await producer.enqueue(payoutInput({ payoutId: 'before' }));
    const stop = new AbortController();
    const scripts = countScripts(() => {
      stop.abort();
    });
    const accepted = await producer.enqueue(payoutInput(), { signal: stop.signal });
    expect([scripts(), stop.signal.aborted, accepted]).toMatchObject([1, true, { payoutId: 'p-1', created: true }]);
    expect(await producer.get('p-1')).toMatchObject({ state: 'queued' });
  });
});

it('a call that waits behind a group fails with it within one time limit where Redis hangs, and closing ends too', async () => {
  const server = closeAfterTest(await startOwnRedis());
  const stuck = openProducer({ redisUrl: server.url });
  await stuck.enqueue(payoutInput());
  process.kill(server.pid, 'SIGSTOP');
  afterTest(() => process.kill(server.pid, 'SIGCONT'));
  const startedAt = performance.now();
  const calls = enqueueAll(['first'], stuck);
  for (const payoutIds of [['second'], names(3)]) {
    await systemClock.sleep(500);
    calls.push(...enqueueAll(payoutIds, stuck));
  }
  for (const call of calls) await expect(call).rejects.toBeInstanceOf(RedisUnavailableError);
  expect(performance.now() - startedAt).toBeLessThan(7_000);
  await stuck.close();
  expect(performance.now() - startedAt).toBeLessThan(15_000);
});

it('a Redis that is not there yet, or not any more, fails calls fast, and they work once it comes', async () => {
  const server = closeAfterTest(await startOwnRedis());
  const failsWithin = async (ms: number, work: () => Promise<unknown>): Promise<void> => {
    const startedAt = performance.now();
    await expect(work()).rejects.toThrow(RedisUnavailableError);
    expect(performance.now() - startedAt).toBeLessThan(ms);
  };
  await server.stop();
  producer = closeAfterTest(openProducer({ redisUrl: server.url }));
  for (const [payoutId, withinMs] of [
    ['p-1', 5_000],
    ['p-2', 7_000],
  ] as const) {
    const enqueue = async (): Promise<unknown> => producer.enqueue(payoutInput({ payoutId }));
    await failsWithin(withinMs, enqueue);
    await server.startAgain();
    await until('it is accepted', async () => enqueue().then(Boolean, () => false), 10_000);
    await until('it has a job', async () => (await producer.stats()).withoutJob === 0);
    await server.stop();
  }
});

it('a queue that fails after the ledger has the payout: it is accepted, the log says so, and the outbox has it', async () => {
  const warnings: string[] = [];
  producer = openProducer({ logger: { ...silentLogger, warn: (_, message) => void warnings.push(message) } });
  // The wait list as a wrong type makes BullMQ's script fail, as a Redis that becomes unavailable in between would.
  await account.redis.set(key('withdraw:wait'), 'not a list');
  expect(await producer.enqueue(payoutInput())).toMatchObject({ created: true });
  await until('it says so', () => warnings.includes('job not added yet; the worker will add it'));
  expect(await producer.stats()).toMatchObject({ queued: 1, withoutJob: 1 });
});

const HOUR_MS = 3_600_000;
const LISTED = [
  { paymentId: 1, name: 'BTC', usdRate: undefined },
  { paymentId: 6, name: 'USDT (TRC-20)', usdRate: '1' },
];

async function publish(currencies = LISTED, ageMs = HOUR_MS) {
  await writeGatewayFacts(account.connection, { currencies, currenciesAt: Date.now() - ageMs, isWhole: true });
}

const enqueue = async (paymentId: number, payoutId = 'p-1') => producer.enqueue(payoutInput({ payoutId, paymentId }));

describe('a payment id that the gateway does not list', () => {
  it('is refused with the list, its time and what to do, by its index among many, and nothing is enqueued', async () => {
    await publish();
    await expect(enqueue(7)).rejects.toThrow(
      /must be in the gateway's list of \d{4}-.* UTC: 1 BTC, 6 USDT \(TRC-20\) \(got 7\)\. If the gateway has it since, repeat/,
    );
    const inputs = [7, 6, 8].map((paymentId, index) => payoutInput({ payoutId: `p-${index}`, paymentId }));
    await expect(producer.enqueueMany(inputs)).rejects.toThrow(/\[0\]\.paymentId: .*\(got 7\).*\[2\]\.paymentId: /);
    expect((await producer.stats()).queued).toBe(0);
  });

  it('is answered as before when the payout exists, and when retention has removed it', async () => {
    await enqueue(7, 'there');
    await enqueue(7, 'gone');
    await producer.cancel('gone');
    expect(await removePayouts(account.connection, 'cancelled', account.clock.wallNow() + HOUR_MS, 10)).toHaveLength(1);
    await publish();
    await producer.close();
    producer = open();
    expect(await enqueue(7, 'there')).toEqual({ payoutId: 'there', state: 'queued', created: false });
    await expect(enqueue(7, 'gone')).rejects.toThrow('was cancelled and has been removed');
    await expect(enqueue(7, 'new')).rejects.toThrow('paymentId');
  });

  const damageFacts = async (): Promise<unknown> =>
    account.redis.hset(account.connection.keys.gateway, 'currencies', '{"currencies":7,"isWhole":true}');

  it.each<[string, () => Promise<unknown>, boolean?]>([
    ['before a worker has published a list', async () => Promise.resolve()],
    ['if the list is older than a day', async () => publish(LISTED, 25 * HOUR_MS)],
    ['if something else is there', damageFacts],
    ['if the check is switched off', async () => publish(), false],
  ])('is accepted %s', async (_, prepare, checkPaymentIds = true) => {
    await prepare();
    producer = open(checkPaymentIds);
    expect(await enqueue(7)).toMatchObject({ created: true });
  });

  it('is asked of the worker, and accepted once it is listed', async () => {
    await publish();
    expect(await enqueue(6)).toMatchObject({ created: true });
    aheadMs += 11_000;
    await expect(enqueue(7, 'p-2')).rejects.toThrow('(got 7)');
    expect(await takeCurrenciesRequest(account.connection)).toBe(true);
    await expect(enqueue(7, 'p-2')).rejects.toThrow('(got 7)');
    // One request is enough for all refusals of ten seconds.
    expect(await takeCurrenciesRequest(account.connection)).toBe(false);
    await publish([...LISTED, { paymentId: 7, name: 'USDT (ERC-20)', usdRate: '1' }], 0);
    aheadMs += 11_000;
    expect(await enqueue(7, 'p-2')).toMatchObject({ created: true });
  });
});

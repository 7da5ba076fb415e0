import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { AbstractConnector, Redis, type RedisOptions } from 'ioredis';
import { ClosedError, InvalidConfigError, InvalidInputError, type Problem } from '../src/base/errors.js';
import { closestName } from '../src/base/fields.js';
import { closeRedis, connectRedis, type RedisClient } from '../src/base/redis.js';
import { PayoutOperator } from '../src/control/payout-operator.js';
import { PayoutProducer } from '../src/control/payout-producer.js';
import { createPayoutWorker } from '../src/control/payout-worker.js';
import { createDashboard } from '../src/dashboard/create-dashboard.js';
import { startDashboard } from '../src/dashboard/start-dashboard.js';
import { createGatewayClient } from '../src/gateway/gateway-client.js';
import { startSandbox } from '../src/sandbox/start-sandbox.js';
import { newPlatformId, testRedisUrl } from './support/account.js';

/** What an application hands in: options that are wrong, and parts of its own. */

/** What JavaScript, or a cast, lets through. */
type Loose = Record<string, unknown>;

const SECRET = 'k-never-shown';
const ANN = { by: 'ann', reason: 'a test' };
const platformId = newPlatformId();
const redisUrl = testRedisUrl();
const journalDir = mkdtempSync(join(tmpdir(), 'payouts-options-'));
const account = { platformId, baseUrl: 'http://127.0.0.1:1', secretKey: SECRET };

let connection: RedisClient;

beforeAll(() => {
  connection = connectRedis(redisUrl, 'commands');
});

afterAll(async () => {
  await closeRedis(connection);
  rmSync(journalDir, { recursive: true });
});

const opened: { close?: () => unknown; stop?: () => unknown }[] = [];

afterEach(async () => {
  for (const each of opened.splice(0)) await (each.close ?? each.stop)?.call(each);
});

const MAKERS: Readonly<Record<string, readonly [options: Loose, make: (options: never) => object | Promise<object>]>> =
  {
    PayoutProducer: [{ platformId, redisUrl }, (options) => new PayoutProducer(options)],
    PayoutOperator: [{ platformId, redisUrl }, (options) => new PayoutOperator(options)],
    PayoutWorker: [{ accounts: [account], journalDir, redisUrl }, async (options) => createPayoutWorker(options)],
    createGatewayClient: [account, (options) => createGatewayClient(options)],
    createDashboard: [{ platformId, redisUrl }, (options) => createDashboard(options)],
    startDashboard: [{ platformId, redisUrl, host: '127.0.0.1', port: 0 }, async (options) => startDashboard(options)],
    startSandbox: [{ accounts: [{ platformId, secretKey: SECRET }] }, async (options) => startSandbox(options)],
  };

type Maker = keyof typeof MAKERS;

/** What is wrong with the options; no problems if they are accepted. */
async function problemsOf(maker: Maker, change: Loose, leaveOut?: string): Promise<readonly Problem[]> {
  const [options, make] = MAKERS[maker] ?? [];
  const given: Loose = { ...options, ...change, ...(leaveOut !== undefined && { [leaveOut]: undefined }) };
  try {
    opened.push((await make?.(given as never)) ?? {});
    return [];
  } catch (error) {
    expect([InvalidConfigError, InvalidInputError]).toContain((error as Error).constructor);
    expect((error as Error).message).not.toContain(SECRET);
    return (error as InvalidConfigError).problems;
  }
}

const makers = Object.keys(MAKERS);

it.each(makers)('the options of %s are accepted, also with undefined for what may be left out', async (maker) => {
  expect(await problemsOf(maker, { logger: undefined, clock: undefined })).toEqual([]);
});

it.each(makers)('the options of %s are an object with known names, a logger and a clock', async (maker) => {
  const given = { logge: SECRET, keyPrefix: SECRET, logger: { info: () => SECRET }, clock: Date.now };
  const problems = await problemsOf(maker, given);
  expect(new Map(problems.map(({ field, message }) => [field, message]))).toEqual(
    new Map([
      ['logge', 'is not a known field, did you mean logger?'],
      ['keyPrefix', 'is not a known field'],
      ['logger', 'must be an object with debug, info, warn, error, child'],
      ['clock', 'must be an object with now, wallNow, sleep'],
    ]),
  );
  for (const options of [undefined, SECRET]) {
    const make = async (): Promise<unknown> => MAKERS[maker]?.[1](options as never);
    await expect(make()).rejects.toThrow(/^options: must be an object( \(got (undefined|a string)\))?$/);
  }
});

it.each<[Maker, Loose, field: string, message: string]>([
  ['PayoutProducer', { singingKey: SECRET }, 'singingKey', 'is not a known field, did you mean signingKey?'],
  ['PayoutProducer', { checkAddresses: 'no' }, 'checkAddresses', 'must be true or false (got "no")'],
  ['PayoutWorker', { journalDays: 0 }, 'journalDays', 'must be a whole number from 1 to 36500 (got 0)'],
  ['PayoutWorker', { accounts: [] }, 'accounts', 'must name at least one account'],
  ['PayoutWorker', { accounts: [undefined] }, 'accounts[0]', 'must be an object (got undefined)'],
  ['createDashboard', { platformId: [] }, 'platformId', 'must name at least one account, and each once (got [])'],
  ['startDashboard', { port: 70_000 }, 'port', 'must be a whole number from 0 to 65535 (got 70000)'],
])('the options of %s refuse %j', async (maker, change, field, message) => {
  expect(await problemsOf(maker, change)).toEqual([{ field, message }]);
});

it('the settings of an account are refused before anything starts, each under its name', async () => {
  const wrong = {
    intervalMs: 999,
    quarantineMs: Infinity,
    pollMinMs: 20,
    pollMaxMs: 19,
    baseUrl: 'http://far.example',
  };
  const problems = await problemsOf('PayoutWorker', { accounts: [{ ...account, ...wrong }] });
  const messageOf = new Map(problems.map(({ field, message }) => [field, message]));
  for (const [name, message] of [
    ['intervalMs', 'must be a whole number from 1000 to 2147483647 (got 999)'],
    ['quarantineMs', 'must be a whole number from 0'],
    ['baseUrl', 'must begin with https:// (http:// is allowed for'],
  ] as const) {
    expect(messageOf.get(`${name} of account ${platformId}`)).toContain(message);
  }
  const poll = { accounts: [{ ...account, pollMinMs: 20, pollMaxMs: 19 }] };
  expect(await problemsOf('PayoutWorker', poll)).toMatchObject([
    { message: 'must not be more than pollMaxMs, 19 (got 20)' },
  ]);
});

it.each<[Maker, missing: string, message?: string]>([
  ['PayoutProducer', 'platformId'],
  ['PayoutProducer', 'redisUrl', 'is missing (or give a connection)'],
  ['PayoutWorker', 'accounts'],
  ['createGatewayClient', 'secretKey'],
])('the options of %s need %s', async (maker, missing, message = 'is missing') => {
  expect(await problemsOf(maker, {}, missing)).toEqual([{ field: missing, message }]);
});

it.each<[Maker, string]>([
  ['PayoutProducer', 'duplicate, disconnect'],
  ['PayoutWorker', 'duplicate, disconnect, defineCommand'],
])('the options of %s take one way to Redis', async (maker, methods) => {
  expect(await problemsOf(maker, { connection })).toEqual([
    { field: 'connection', message: 'is given, but so is redisUrl: give one of them' },
  ]);
  expect(await problemsOf(maker, { connection: { password: SECRET } }, 'redisUrl')).toEqual([
    { field: 'connection', message: `must be an object with ${methods}` },
  ]);
});

it('a connection with a keyPrefix is refused: its payouts would be where no worker looks', async () => {
  const prefixed = new Redis(redisUrl, { keyPrefix: 'shop:', commandTimeout: 5_000, lazyConnect: true });
  for (const maker of ['PayoutProducer', 'PayoutWorker']) {
    expect(await problemsOf(maker, { connection: prefixed }, 'redisUrl')).toEqual([
      { field: 'connection', message: 'must have no keyPrefix, under which no worker looks (got "shop:")' },
    ]);
  }
});

it('a connection that could hang is refused, and a number of replicas that Sentinels cannot keep', async () => {
  const hanging = { connection: new Redis({ lazyConnect: true }) };
  expect(await problemsOf('PayoutProducer', hanging, 'redisUrl')).toMatchObject([
    { field: 'connection', message: expect.stringContaining('has no commandTimeout') },
  ]);
  // Where nobody listens, the search for a Sentinel would outlive the test.
  const sentinel = `redis-sentinel://${new URL(redisUrl).host}/payouts`;
  const make = (): unknown => new PayoutProducer({ platformId, redisUrl: sentinel, redisReplicas: 0 });
  expect(make).toThrow(/REDIS_REPLICAS: .*at least 1/);
});

it('a connection that a worker cannot copy is refused', async () => {
  class Tunnel extends AbstractConnector {
    override async connect(): Promise<never> {
      return Promise.reject(new Error('unused'));
    }
  }
  const sentinels = [{ host: '127.0.0.1', port: 1 }];
  for (const [options, message] of [
    [{ Connector: Tunnel }, 'has a Connector of its own, which cannot be copied: give redisUrl'],
    [{ sentinels, name: 'm', role: 'slave' }, "has role 'slave', but the worker must write: let it lead to the master"],
  ] as const) {
    const own = new Redis({ lazyConnect: true, ...options } as Omit<RedisOptions, 'replyMapping'>);
    expect(await problemsOf('PayoutWorker', { connection: own }, 'redisUrl')).toEqual([
      { field: 'connection', message },
    ]);
  }
});

describe('a call of the producer', () => {
  let producer: PayoutProducer;

  beforeAll(() => {
    producer = new PayoutProducer({ platformId, connection });
  });

  afterAll(async () => producer.close());

  const payout = { payoutId: 'p-1', paymentId: 6, amount: '1', addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf' };
  const unknown = 'is not a known field, did you mean';

  it.each<[keyof PayoutProducer, args: readonly unknown[], message: string]>([
    ['waitFor', ['p-1', { timoutMs: 5 }], `timeoutMs: is missing; timoutMs: ${unknown} timeoutMs?`],
    ['enqueueMany', [[payout, { ...payout, refrence: 'x' }]], `[1].refrence: ${unknown} reference?`],
    ['on', ['complete', () => 1], 'name: must be the name of an event, did you mean completed? (got "complete")'],
    ['on', ['toString', () => 1], 'name: must be the name of an event (got "toString")'],
  ])('%s%j names what is wrong', async (name, args, message) => {
    const call = async (): Promise<unknown> =>
      Promise.resolve((producer[name] as (...all: unknown[]) => unknown)(...args));
    await expect(call()).rejects.toThrow(InvalidInputError);
    await expect(call()).rejects.toThrow(new Error(message));
  });
});

it('a call of the operator names what is wrong', async () => {
  const operator = new PayoutOperator({ platformId, connection });
  opened.push(operator);
  await expect(operator.retry(undefined as never, ANN)).rejects.toThrow('payoutId: is missing');
  const wrong = operator.resolve('p-1', { kind: 'notsent' } as never, ANN);
  await expect(wrong).rejects.toThrow('kind: must be one of sent, not_sent, write_off (got "notsent")');
});

const known = ['intervalMs', 'timeoutMs', 'signingKey', 'connection', 'clock'];

it.each([
  ['intervallMs', 'intervalMs'],
  ['singingKey', 'signingKey'],
  ['c', undefined],
  ['x'.repeat(1_000_000), undefined],
])('closestName of %.20s is %s', (name, closest) => {
  expect(closestName(name, known)).toBe(closest);
});

it('parts that are bound by `await using` end with the block', async () => {
  const ended: [page: string, role: () => string | undefined, producer: PayoutProducer, operator: PayoutOperator][] =
    [];
  {
    await using producer = new PayoutProducer({ platformId, redisUrl });
    await using operator = new PayoutOperator({ platformId, redisUrl });
    await using sandbox = await startSandbox({ accounts: [{ platformId, secretKey: SECRET }] });
    const accounts = [{ ...account, baseUrl: sandbox.url }];
    await using worker = await createPayoutWorker({ redisUrl, accounts, journalDir, allowVolatileRedis: true });
    await using dashboard = await startDashboard({ redisUrl, platformId, host: '127.0.0.1', port: 0 });
    expect((await fetch(`${dashboard.url}style.css`)).status).toBe(200);
    expect(await producer.get('p-1')).toBeUndefined();
    ended.push([dashboard.url, () => worker.accounts[0]?.status.role, producer, operator]);
  }
  for (const [page, role, producer, operator] of ended) {
    await expect(fetch(page)).rejects.toThrow('fetch failed');
    expect(role()).toBe('stopped');
    await expect(producer.get('p-1')).rejects.toThrow(ClosedError);
    await expect(operator.cancel('p-1', ANN)).rejects.toThrow(ClosedError);
  }
});

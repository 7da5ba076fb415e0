import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { AbstractConnector, Redis, type RedisOptions } from 'ioredis';
import { InvalidConfigError, InvalidInputError, type Problem } from '../src/base/errors.js';
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

/** What JavaScript, or a cast, lets through. */
type Loose = Record<string, unknown>;

const SECRET = 'k-never-shown';
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

describe('the options of', () => {
  it.each(Object.keys(MAKERS))('%s are accepted, also with undefined for what may be left out', async (maker) => {
    expect(await problemsOf(maker, { logger: undefined, clock: undefined })).toEqual([]);
  });

  it.each(Object.keys(MAKERS))('%s have no unknown name', async (maker) => {
    expect(await problemsOf(maker, { logge: SECRET, keyPrefix: SECRET })).toEqual([
      { field: 'logge', message: 'is not a known field, did you mean logger?' },
      { field: 'keyPrefix', message: 'is not a known field' },
    ]);
  });

  it.each(Object.keys(MAKERS))('%s are an object', async (maker) => {
    for (const options of [undefined, null, SECRET, 5]) {
      const make = async (): Promise<unknown> =>
        Promise.resolve(options).then((given) => MAKERS[maker]?.[1](given as never));
      await expect(make()).rejects.toThrow(
        /^options: must be an object \(got (undefined|null|a string|a number)\)|^options: must be an object$/,
      );
    }
  });

  it.each(Object.keys(MAKERS))('%s name a logger and a clock that can be used', async (maker) => {
    const problems = await problemsOf(maker, { logger: { info: () => SECRET }, clock: Date.now });
    expect(problems).toHaveLength(2);
    expect(problems).toContainEqual({
      field: 'logger',
      message: 'must be an object with debug, info, warn, error, child',
    });
    expect(problems).toContainEqual({ field: 'clock', message: 'must be an object with now, wallNow, sleep' });
  });

  it.each<[Maker, Loose, field: string, message: string]>([
    ['PayoutProducer', { singingKey: SECRET }, 'singingKey', 'is not a known field, did you mean signingKey?'],
    ['PayoutProducer', { checkAddresses: 'no' }, 'checkAddresses', 'must be true or false (got "no")'],
    ['PayoutProducer', { platformId: '7' }, 'platformId', 'must be a whole number (got "7")'],
    ['PayoutProducer', { redisUrl: 5 }, 'redisUrl', 'must be a string'],
    ['PayoutProducer', { redisReplicas: -1 }, 'redisReplicas', 'must be a whole number of at least 0 (got -1)'],
    ['PayoutOperator', { gateway: {} }, 'gateway', 'must be an object with getStatus'],
    ['PayoutOperator', { signer: SECRET }, 'signer', 'must be an object with sign'],
    ['PayoutWorker', { journalDir: '' }, 'journalDir', 'must not be empty (got "")'],
    ['PayoutWorker', { observe: {} }, 'observe', 'must be a function'],
    ['PayoutWorker', { intervalMs: 5 }, 'intervalMs', 'is not a known field'],
    ['PayoutWorker', { accounts: {} }, 'accounts', 'must be a list of accounts'],
    ['PayoutWorker', { accounts: [] }, 'accounts', 'must name at least one account'],
    [
      'PayoutWorker',
      { accounts: [{ ...account, intervallMs: 5 }] },
      `intervallMs of account ${platformId}`,
      'is not a known field, did you mean intervalMs?',
    ],
    [
      'PayoutWorker',
      { accounts: [{ ...account, baseUrl: 'http://far.example' }] },
      `baseUrl of account ${platformId}`,
      'must begin with https:// (http:// is allowed for 127.0.0.1, ::1 and localhost only)',
    ],
    ['PayoutWorker', { accounts: [undefined] }, 'accounts[0]', 'must be an object (got undefined)'],
    ['createDashboard', { platformId: [] }, 'platformId', 'must name at least one account, and each once (got [])'],
    ['createDashboard', { stuckAfterMs: 5 }, 'stuckAfterMs', 'must be a whole number of at least 1000 (got 5)'],
    ['createDashboard', { explorers: {} }, 'explorers', 'must be a Map'],
    ['startDashboard', { port: 70_000 }, 'port', 'must be a whole number from 0 to 65535 (got 70000)'],
    ['startSandbox', { setleAfterMs: 5 }, 'setleAfterMs', 'is not a known field, did you mean settleAfterMs?'],
    ['createGatewayClient', { secretKye: SECRET }, 'secretKye', 'is not a known field, did you mean secretKey?'],
  ])('%s refuse %j', async (maker, change, field, message) => {
    expect(await problemsOf(maker, change)).toEqual([{ field, message }]);
  });

  it.each<[Maker, missing: string, message?: string]>([
    ['PayoutProducer', 'platformId'],
    ['PayoutProducer', 'redisUrl', 'is missing (or give a connection)'],
    ['PayoutOperator', 'redisUrl', 'is missing (or give a connection)'],
    ['PayoutWorker', 'journalDir'],
    ['PayoutWorker', 'accounts'],
    ['createGatewayClient', 'secretKey'],
    ['startDashboard', 'host'],
  ])('%s need %s', async (maker, missing, message = 'is missing') => {
    expect(await problemsOf(maker, {}, missing)).toEqual([{ field: missing, message }]);
  });

  it.each<[Maker, string]>([
    ['PayoutProducer', 'duplicate, disconnect'],
    ['PayoutOperator', 'duplicate, disconnect'],
    ['createDashboard', 'duplicate, disconnect'],
    ['PayoutWorker', 'duplicate, disconnect, defineCommand'],
  ])('%s take one way to Redis', async (maker, methods) => {
    expect(await problemsOf(maker, { connection })).toEqual([
      { field: 'connection', message: 'is given, but so is redisUrl: give one of them' },
    ]);
    expect(await problemsOf(maker, { connection: { password: SECRET } }, 'redisUrl')).toEqual([
      { field: 'connection', message: `must be an object with ${methods}` },
    ]);
  });
});

it('a connection with a keyPrefix is refused: its payouts would be where no worker looks', async () => {
  const prefixed = new Redis(redisUrl, { keyPrefix: 'shop:', commandTimeout: 5_000, lazyConnect: true });
  for (const maker of ['PayoutProducer', 'PayoutWorker']) {
    expect(await problemsOf(maker, { connection: prefixed }, 'redisUrl')).toEqual([
      { field: 'connection', message: 'must have no keyPrefix, under which no worker looks (got "shop:")' },
    ]);
  }
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

  it.each<[string, () => unknown, message: string]>([
    ['get', async () => producer.get(undefined as never), 'payoutId: is missing'],
    ['waitFor', async () => producer.waitFor({} as never, { timeoutMs: 5 }), 'payoutId: must be a string (got {})'],
    [
      'waitFor',
      async () => producer.waitFor('p-1', { timoutMs: 5 } as never),
      'timeoutMs: is missing; timoutMs: is not a known field, did you mean timeoutMs?',
    ],
    ['cancel', async () => producer.cancel(5 as never), 'payoutId: must be a string (got 5)'],
    [
      'list',
      async () => producer.list({ status: 'queued' } as never),
      'status: is not a known field, did you mean state?; input: must name a state or a batch (got {})',
    ],
    [
      'enqueue',
      async () => producer.enqueue({ ...payout, adressTo: 'x' } as never),
      'adressTo: is not a known field, did you mean addressTo?',
    ],
    [
      'enqueueMany',
      async () => producer.enqueueMany([payout, { ...payout, refrence: 'x' }] as never),
      '[1].refrence: is not a known field, did you mean reference?',
    ],
    ['enqueueMany', async () => producer.enqueueMany(undefined as never), 'payouts: is missing'],
    [
      'on',
      async () => Promise.resolve(producer.on('complete' as never, () => undefined)),
      'name: must be the name of an event, did you mean completed? (got "complete")',
    ],
    [
      'on',
      async () => Promise.resolve(producer.on('toString' as never, () => undefined)),
      'name: must be the name of an event (got "toString")',
    ],
    ['on', async () => Promise.resolve(producer.on('completed', undefined as never)), 'listener: is missing'],
  ])('%s names what is wrong', async (_, call, message) => {
    const error = await Promise.resolve(call()).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(InvalidInputError);
    expect((error as Error).message).toBe(message);
  });
});

describe('a call of the operator', () => {
  it.each(['retry', 'release', 'cancel'] as const)('%s needs a payoutId', async (verb) => {
    const operator = new PayoutOperator({ platformId, connection });
    opened.push(operator);
    const call = operator[verb](undefined as never, { by: 'ann', reason: 'x' });
    await expect(call).rejects.toThrow(new InvalidInputError([{ field: 'payoutId', message: 'is missing' }]));
  });

  it('resolve needs one of its decisions', async () => {
    const operator = new PayoutOperator({ platformId, connection });
    opened.push(operator);
    const call = operator.resolve('p-1', { kind: 'notsent' } as never, { by: 'ann', reason: 'x' });
    await expect(call).rejects.toThrow('kind: must be one of sent, not_sent, write_off (got "notsent")');
  });
});

describe('closestName', () => {
  const known = ['intervalMs', 'timeoutMs', 'signingKey', 'connection', 'clock'];

  it.each([
    ['intervallMs', 'intervalMs'],
    ['intervalMS', 'intervalMs'],
    ['interval_ms', 'intervalMs'],
    ['singingKey', 'signingKey'],
    ['conection', 'connection'],
    ['keyPrefix', undefined],
    ['log', undefined],
    ['c', undefined],
    ['x'.repeat(1_000_000), undefined],
  ])('of %.20s is %s', (name, closest) => {
    expect(closestName(name, known)).toBe(closest);
  });
});

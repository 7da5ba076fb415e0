import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { AbstractConnector, Cluster, Command, Redis } from 'ioredis';
import { ClosedError, InvalidConfigError, InvalidInputError, type Problem } from '../src/base/errors.js';
import { closeRedis, connectRedis, type RedisClient } from '../src/base/redis.js';
import { PayoutOperator } from '../src/control/payout-operator.js';
import { PayoutProducer } from '../src/control/payout-producer.js';
import { createPayoutWorker } from '../src/control/payout-worker.js';
import { createDashboard } from '../src/dashboard/create-dashboard.js';
import { startDashboard } from '../src/dashboard/start-dashboard.js';
import { createGatewayClient } from '../src/gateway/v1/client.js';
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
    createDashboard: [{ platformId, redisUrl, password: SECRET }, (options) => createDashboard(options)],
    startDashboard: [{ platformId, redisUrl, host: '127.0.0.1', port: 0 }, async (options) => startDashboard(options)],
    startSandbox: [{ accounts: [{ platformId, secretKey: SECRET }] }, async (options) => startSandbox(options)],
  };

type Maker = keyof typeof MAKERS;

async function problemsOf(maker: Maker, change: Loose): Promise<readonly Problem[]> {
  const [options, make] = MAKERS[maker] ?? [];
  try {
    opened.push((await make?.({ ...options, ...change } as never)) ?? {});
    return [];
  } catch (error) {
    expect([InvalidConfigError, InvalidInputError]).toContain((error as Error).constructor);
    expect((error as Error).message).not.toContain(SECRET);
    return (error as InvalidConfigError).problems;
  }
}

it.each(Object.keys(MAKERS))(
  'the options of %s are an object with known names, a logger and a clock',
  async (maker) => {
    expect(await problemsOf(maker, { logger: undefined, clock: undefined })).toEqual([]);
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
      const make = async () => MAKERS[maker]?.[1](options as never);
      await expect(make()).rejects.toThrow(/^options: must be an object( \(got (undefined|a string)\))?$/);
    }
  },
);

const open = (options: Loose): Redis =>
  new Redis({ lazyConnect: true, commandTimeout: 5_000, reconnectOnError: () => false, ...options });
const only = (own: unknown): Loose => ({ redisUrl: undefined, connection: own });
class Tunnel extends AbstractConnector {
  override async connect(): Promise<never> {
    return Promise.reject(new Error('unused'));
  }
}
const replica = { sentinels: [{ host: '127.0.0.1', port: 1 }], name: 'm', role: 'slave' };
const SETTINGS: [setting: string, given: Loose, message: string][] = [
  ['intervalMs', { intervalMs: 999 }, 'must be a whole number from 1000 to 2147483647 (got 999)'],
  ['pollMinMs', { pollMinMs: 20, pollMaxMs: 19 }, 'must not be more than pollMaxMs, 19 (got 20)'],
];
const hangs = "has no commandTimeout, so a call could hang: use connectRedis(url, 'commands')";
const stays =
  "has no reconnectOnError, so after a failover it would stay with a server that is read-only: use connectRedis(url, 'commands')";
const unfit = (named: string): string =>
  `must not have ${named}: the ledger would read other replies than Redis gives. Use connectRedis(url, 'commands')`;
const UNFIT: readonly [Loose, string][] = [
  [{ stringNumbers: true }, 'the option stringNumbers (got true)'],
  [{ replyMapping: 'resp3' }, 'the option replyMapping (got "resp3")'],
  [{ enableAutoPipelining: true }, 'the option enableAutoPipelining (got true)'],
  [{ monitor: true }, 'the option monitor (got true)'],
  [{ readOnly: true }, 'the option readOnly (got true)'],
];
const cluster = (options: Loose): Cluster =>
  new Cluster([{ port: 1 }], { lazyConnect: true, redisOptions: { commandTimeout: 5_000 }, ...options });
const prefixed = 'must have no keyPrefix, under which no worker looks (got "shop:")';

it.each<[Maker, field: string, message: string, () => Loose]>([
  ['PayoutProducer', 'checkAddresses', 'must be true or false (got "no")', () => ({ checkAddresses: 'no' })],
  ['PayoutProducer', 'platformId', 'is missing', () => ({ platformId: undefined })],
  ['PayoutProducer', 'redisUrl', 'is missing (or give a connection)', () => ({ redisUrl: undefined })],
  ['PayoutWorker', 'accounts', 'must name at least one account', () => ({ accounts: [] })],
  ...SETTINGS.map(([setting, given, message]): [Maker, string, string, () => Loose] => [
    'PayoutWorker',
    `${setting} of account ${platformId}`,
    message,
    () => ({ accounts: [{ ...account, ...given }] }),
  ]),
  ['PayoutProducer', 'connection', hangs, () => only(open({ commandTimeout: undefined }))],
  ['PayoutProducer', 'connection', stays, () => only(open({ reconnectOnError: undefined }))],
  ['startDashboard', 'port', 'must be a whole number from 0 to 65535 (got 70000)', () => ({ port: 70_000 })],
  ...['PayoutProducer', 'PayoutWorker'].flatMap((maker): [Maker, string, string, () => Loose][] => [
    [maker, 'connection', 'is given, but so is redisUrl: give one of them', () => ({ connection })],
    [maker, 'connection', prefixed, () => only(open({ keyPrefix: 'shop:' }))],
    ...UNFIT.map(([given, named]): [Maker, string, string, () => Loose] => [
      ...([maker, 'connection', unfit(named), () => only(open(given))] as const),
    ]),
    [maker, 'connection', unfit('the option scaleReads (got "slave")'), () => only(cluster({ scaleReads: 'slave' }))],
  ]),
  ['PayoutProducer', 'connection', 'must be an object with duplicate, disconnect', () => only({ password: SECRET })],
  [
    'PayoutWorker',
    'connection',
    'has a Connector of its own, which cannot be copied: give redisUrl',
    () => only(open({ Connector: Tunnel })),
  ],
  [
    'PayoutWorker',
    'connection',
    "has role 'slave', but the worker must write: let it lead to the master",
    () => only(open(replica)),
  ],
])('the options of %s refuse: %s %s', async (maker, field, message, change) => {
  expect(await problemsOf(maker, change())).toEqual([{ field, message }]);
});

type Transformers = Record<'reply' | 'argument', Record<string, unknown>>;
const transformers = (Command as unknown as { readonly _transformer: Transformers })._transformer;

it.each([
  ['evalsha', 'reply', () => 'other'],
  ['hgetall', 'reply', (reply: unknown) => reply],
  ['hget', 'argument', (args: readonly unknown[]) => args.slice(1)],
] as const)('a client is refused where the program changed what every %s gets (%s)', async (name, kind, changed) => {
  const kept = { ...transformers[kind] };
  try {
    transformers[kind][name] = changed;
    const message = unfit(`a transformer of ${name}, which changes it for every client`);
    expect(await problemsOf('PayoutProducer', only(open({})))).toEqual([{ field: 'connection', message }]);
  } finally {
    transformers[kind] = kept;
  }
});

const ANN = { by: 'ann', reason: 'a test' };

/** What people wrote in their first hour, by hand or from JavaScript: field, rule, and what was given. */
const OK = { payoutId: 'p-1', paymentId: 6, amount: '1', addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf' };
const DECIMAL = 'amount: must be a decimal string such as "12.5"';
const DIGITS = ': up to 30 digits, then at most 18 decimal places, no sign, no exponent';
const PAYMENT_ID = 'paymentId: must be a whole number, the currency id that the gateway lists under /currencies';
const LISTED =
  'state: must be one of queued, held, sending, in_progress, completed, failed, rejected, unknown, cancelled, written_off';

const PAGE = 'give { state } or { batch }';
const ACTOR = 'give { by, reason }';

const PRODUCER_MISTAKES: readonly [method: string, args: readonly unknown[], message: string][] = [
  ['enqueue', [], 'payout: is missing'],
  ['enqueue', [null], 'payout: must be an object (got null)'],
  ['enqueue', [[]], 'payout: must be an object (got []): give one payout, or the list to enqueueMany'],
  ['enqueue', ['p-1'], 'payout: must be an object (got "p-1")'],
  ['enqueue', [{ ...OK, amount: 12.5 }], `${DECIMAL} (a number would lose digits) (got 12.5)`],
  ['enqueue', [{ ...OK, amount: '-1' }], `${DECIMAL}${DIGITS} (got "-1")`],
  ['enqueue', [{ ...OK, amount: '1e5' }], `${DECIMAL}${DIGITS} (got "1e5")`],
  ['enqueue', [{ ...OK, amount: '0' }], 'amount: must be more than 0 (got "0")'],
  ['enqueue', [{ ...OK, paymentId: '6' }], `${PAYMENT_ID} (got "6")`],
  ['enqueue', [{ ...OK, adressTo: 'x' }], 'adressTo: is not a known field, did you mean addressTo?'],
  ['enqueue', [{ ...OK, addressTo: undefined }], 'addressTo: is missing'],
  ['enqueue', [{ ...OK, payoutId: 77 }], 'payoutId: must be a string (got 77)'],
  ['enqueue', [{ ...OK, payoutId: 'a b' }], 'payoutId: must be 1 to 64 of A-Z a-z 0-9 + / = - : . , _ (got "a b")'],
  ['enqueue', [{ ...OK, metadata: { a: 1n } }], 'metadata: must be JSON (got { a: 1n })'],
  [
    'enqueue',
    [{ ...OK, notBefore: 'tomorrow' }],
    'notBefore: must be a Date or a time such as 2030-01-31T09:00:00Z (got "tomorrow")',
  ],
  ['enqueue', [{ ...OK, priority: -1 }], 'priority: must be at least 1 (got -1)'],
  ['enqueue', [OK, 'x'], 'options: must be an object (got "x")'],
  ['enqueue', [OK, null], 'options: must be an object (got null)'],
  ['enqueue', [OK, { signal: 5 }], 'signal: must be an AbortSignal (got 5)'],
  ['enqueueMany', [], 'payouts: is missing'],
  ['enqueueMany', ['x'], 'payouts: must be a list (got "x")'],
  ['enqueueMany', [[OK, null]], '[1].payout: must be an object (got null)'],
  ['get', [], 'payoutId: is missing'],
  ['get', [7], 'payoutId: must be a string (got 7)'],
  ['getByGatewayId', [], 'gatewayId: is missing'],
  ['list', [], `options: is missing: ${PAGE}`],
  ['list', ['queued'], `options: must be an object (got "queued"): ${PAGE}`],
  ['list', [{ state: 'pending' }], `${LISTED} (got "pending")`],
  ['list', [{ state: 'queued', limit: '5' }], 'limit: must be a whole number (got "5")'],
  ['list', [{ state: 'queued', cursor: 5 }], 'cursor: must be the next of the page before (got 5)'],
  ['batchStats', [], 'batch: is missing'],
  ['cancel', [], 'payoutId: is missing'],
  ['cancel', ['p-1', 'why'], 'options: must be an object (got "why")'],
  ['waitFor', [], 'payoutId: is missing'],
  ['waitFor', ['p-1'], 'options: is missing: give { timeoutMs }'],
  ['waitFor', ['p-1', 60], 'options: must be an object (got 60): give { timeoutMs }'],
  ['waitFor', ['p-1', { timeoutMs: '60' }], 'timeoutMs: must be a number of ms (got "60")'],
  ['waitFor', ['p-1', { timeoutMs: NaN }], 'timeoutMs: must be a number of ms (got NaN)'],
  ['waitFor', ['p-1', { timeoutMs: -1 }], 'timeoutMs: must be at least 0 (got -1)'],
  [
    'waitFor',
    ['p-1', { timoutMs: 5 }],
    'timeoutMs: is missing; timoutMs: is not a known field, did you mean timeoutMs?',
  ],
  ['on', ['completed'], 'listener: is missing'],
  ['on', ['complete', () => 1], 'name: must be the name of an event, did you mean completed? (got "complete")'],
  ['off', ['complete', () => 1], 'name: must be the name of an event, did you mean completed? (got "complete")'],
  ['events', [], 'options: is missing: give { group, consumer }'],
  ['events', ['books'], 'options: must be an object (got "books"): give { group, consumer }'],
  ['events', [{ group: 5 }], 'group: must be a string (got 5)'],
  [
    'events',
    [{ group: 'books', claimAfterMs: '1' }],
    'claimAfterMs: must be a whole number from 100 to 2147483647 (got "1")',
  ],
];

const OPERATOR_MISTAKES: readonly [method: string, args: readonly unknown[], message: string][] = [
  ['retry', ['p-1'], `actor: is missing: ${ACTOR}`],
  ['retry', [undefined, ANN], 'payoutId: is missing'],
  ['retry', ['p-1', 'a reason'], `actor: must be an object (got "a reason"): ${ACTOR}`],
  ['retry', ['p-1', { by: 'ann' }], 'reason: is missing'],
  ['release', ['p-1'], `actor: is missing: ${ACTOR}`],
  ['cancel', ['p-1'], `actor: is missing: ${ACTOR}`],
  ['resolve', ['p-1'], `actor: is missing: ${ACTOR}`],
  [
    'resolve',
    ['p-1', 'sent', ANN],
    'resolution: must be an object (got "sent"): give { kind }, with what its kind needs',
  ],
  ['resolve', ['p-1', { kind: 'sent' }, ANN], 'gatewayId: is missing'],
  ['resolve', ['p-1', { kind: 'not_sent' }, ANN], 'attempt: is missing'],
  ['resolve', ['p-1', { kind: 'notsent' }, ANN], 'kind: must be one of sent, not_sent, write_off (got "notsent")'],
  ['pause', [], `actor: is missing: ${ACTOR}`],
  ['pause', ['a reason'], `actor: must be an object (got "a reason"): ${ACTOR}`],
  ['resume', [], `actor: is missing: ${ACTOR}`],
  ['adoptLedger', [undefined, ANN], 'options: is missing: give { journalDirs }'],
  ['adoptLedger', [{ journalDirs: 'x' }, ANN], 'journalDirs: must be a list (got "x")'],
];

it.each<[Maker, method: string, args: readonly unknown[], message: string]>([
  ...PRODUCER_MISTAKES.map((row) => ['PayoutProducer', ...row] as [Maker, ...typeof row]),
  ...OPERATOR_MISTAKES.map((row) => ['PayoutOperator', ...row] as [Maker, ...typeof row]),
])('a call of %s.%s names what is wrong (%#)', async (maker, method, args, message) => {
  const [options, make] = MAKERS[maker] ?? [];
  const part = (await make?.(options as never)) as Record<string, (...all: readonly unknown[]) => unknown>;
  opened.push(part);
  const call = async () => Promise.resolve(part[method]?.(...args));
  await expect(call()).rejects.toThrow(InvalidInputError);
  await expect(call()).rejects.toThrow(new Error(message));
});

it('a server that is no Redis is named as that', async () => {
  const server = createServer((_, response) => response.end('hello')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const producer = new PayoutProducer({
    platformId,
    redisUrl: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
  });
  try {
    await expect(producer.get('p-1')).rejects.toThrow(/what answers there does not speak the protocol of Redis/);
  } finally {
    await producer.close();
    server.closeAllConnections();
    server.close();
  }
});

it('parts that are bound by `await using` end with the block', async () => {
  let parts;
  {
    await using producer = new PayoutProducer({ platformId, redisUrl });
    await using worker = await createPayoutWorker({ redisUrl, accounts: [account], journalDir });
    parts = { producer, worker };
  }
  expect(parts.worker.accounts[0]?.status.role).toBe('stopped');
  await expect(parts.producer.get('p-1')).rejects.toThrow(ClosedError);
});

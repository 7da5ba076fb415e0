import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { ConflictError, RedisUnavailableError, UnreadableRecordError } from '../src/base/errors.js';
import { silentLogger } from '../src/base/logger.js';
import { closeRedis, connectRedis, duplicateForWaiting, parseRedisUrl, type RedisClient } from '../src/base/redis.js';
import { replyCode, toRedisError } from '../src/base/redis-errors.js';
import { checkDurability } from '../src/ledger/redis-durability.js';
import { startLocalRedis, type LocalRedis } from '../src/sandbox/local-redis.js';
import { startScriptedSentinel, type ScriptedSentinel } from './support/scripted-sentinel.js';
import { until } from './support/until.js';
import { afterTest, closeAfterTest } from './worker/support/close-after-test.js';
import { startOwnRedis } from './worker/support/own-redis.js';

const url = process.env['REDIS_URL'] ?? '';
const clients: RedisClient[] = [];

afterEach(async () => {
  for (const client of clients.splice(0)) await closeRedis(client);
});

function open(...args: Parameters<typeof connectRedis>): RedisClient {
  const client = connectRedis(...args);
  clients.push(client);
  return client;
}

describe('parseRedisUrl', () => {
  const single = (host: string, port: number, login: object = {}) => ({
    ...{ kind: 'single', node: { host, port }, login: { db: 0, ...login } },
  });
  const u = { username: 'u', password: 'pw' };
  const nodes = (ports: Readonly<Record<string, number>>): object[] =>
    Object.entries(ports).map(([host, port]) => ({ host, port }));
  const password = 'a:b/c@d?e#f%g,h [ü]';
  const WITH_SECRETS = [
    ...['redis://u:hunter2', 'redis://u:a/hunter2@h', 'redis://u:a@hunter2@h', 'redis://u:hunter2%@h'],
    ...['redis://u:hunter2@h:99999', 'redis-sentinel://u:pw@h/m/hunter2'],
  ];

  it.each<[string, object]>([
    ['redis://h', single('h', 6379)],
    ['redis://[::1]:1', single('::1', 1)],
    [`redis://us%40er:${encodeURIComponent(password)}@h`, single('h', 6379, { username: 'us@er', password })],
    [
      'rediss-sentinel://u:pw@a:1,b,[::1]:3/mymaster/2',
      {
        ...{ kind: 'sentinel', masterName: 'mymaster', login: { ...u, db: 2, tls: {} } },
        nodes: nodes({ a: 1, b: 26379, '::1': 3 }),
      },
    ],
    ['rediss-cluster://u:pw@a:1,b', { kind: 'cluster', login: { ...u, tls: {} }, nodes: nodes({ a: 1, b: 6379 }) }],
  ])('reads %s', (url, target) => {
    expect(parseRedisUrl(url)).toEqual(target);
  });

  it.each([
    ['', /must begin with redis:/],
    ['redis://h:65536', /host:port/],
    ['redis://::1:6379', /host:port/],
    ['redis://a,b', /several hosts/],
    ['redis://h/x', /database/],
    ['redis://h?db=1', /without a query/],
    ['redis-cluster://h/1', /only one/],
    ['redis-sentinel://h', /name the master/],
    ...WITH_SECRETS.map((url): [string, RegExp] => [url, /./]),
  ])('refuses %j and says why, but never shows a password', (url, why) => {
    const read = () => parseRedisUrl(url);
    expect(read).toThrow(TypeError);
    expect(read).toThrow(why);
    expect(read).not.toThrow(/hunter2/);
  });
});

it('connectRedis hands user, password and TLS to a server, a sentinel and a cluster', () => {
  const options = (address: string) => {
    const made = connectRedis(address, 'commands');
    made.disconnect();
    return made instanceof Redis ? made.options : (made.options.redisOptions ?? {});
  };
  const login = { username: 'u', password: 'p@w' };
  const single = { ...login, host: '127.0.0.1', port: 1, db: 2, tls: {} };
  expect(options('rediss://u:p%40w@127.0.0.1:1/2')).toMatchObject(single);
  expect(options('redis-cluster://u:p%40w@127.0.0.1:1')).toMatchObject(login);
  // Where nobody listens, the client's search for a sentinel would outlive the test by two seconds.
  const { port } = new URL(url);
  expect(options(`rediss-sentinel://u:p%40w@127.0.0.1:${port}/m`)).toMatchObject({
    ...login,
    name: 'm',
    sentinels: [{ host: '127.0.0.1', port: Number(port) }],
    sentinelUsername: 'u',
    sentinelPassword: 'p@w',
    enableTLSForSentinelMode: true,
  });
});

it('connectRedis never sends a command of the sender again on a new connection', async () => {
  const client = open(url, 'sender');
  await new Promise((resolve) => client.once('ready', resolve));
  const other = open(url, 'commands');
  const key = `test:${crypto.randomUUID()}`;
  const clientId = await client.client('ID');
  const waiting = client.brpop(key, 0).catch(toRedisError);
  await other.client('KILL', 'ID', clientId);
  expect(await waiting).toBeInstanceOf(RedisUnavailableError);
});

it.each(['commands', 'sender', 'queue'] as const)(
  'connectRedis never works in database 0 where Redis lacks the one that is named: %s',
  async (role) => {
    const key = `test:${crypto.randomUUID()}`;
    const client = open(`${url.replace(/\/\d*$/, '')}/99`, role);
    const copy = (client as Redis).duplicate();
    afterTest(async () => closeRedis(copy));
    copy.on('error', () => undefined);
    for (const each of [client, copy]) void each.set(key, 'x').catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(await open(url, 'commands').exists(key)).toBe(0);
  },
);

const replyError = (message: string): Error => Object.assign(new Error(message), { name: 'ReplyError' });

it.each([
  ...['LOADING Redis is loading', 'READONLY You can not write', 'OOM command not allowed', 'NOAUTH x', 'MISCONF x'],
  'NOREPLICAS Not enough good replicas to write. script: 12ab, on @user_script:50.',
  'UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)',
  'ERR max number of clients reached',
])('toRedisError takes an error reply as Redis unavailable: %s', (message) => {
  expect(toRedisError(replyError(message))).toMatchObject({
    code: 'REDIS_UNAVAILABLE',
    message: expect.stringMatching(/^Redis unavailable \(.*asking again is safe$/),
  });
});

it.each([
  replyError('ERR user_script:17: no transition from failed to queued script: 12ab, on @user_script:17.'),
  new ConflictError('x'),
  new TypeError('x'),
  undefined,
])('toRedisError leaves mistakes, this project’s own errors and what is no error alone: %s', (error) => {
  expect(toRedisError(error)).toBe(error);
});

it('toRedisError takes a key of another type as a record that cannot be read', () => {
  const error = replyError('WRONGTYPE Operation against a key holding the wrong kind of value');
  expect(toRedisError(error)).toBeInstanceOf(UnreadableRecordError);
});

it('toRedisError gives the code of a reply, and of nothing else', () => {
  const errors = [replyError('NOPERM none'), replyError('ERR max number of clients reached'), new Error('LOADING x')];
  expect(errors.map(replyCode)).toEqual(['NOPERM', 'MAXCLIENTS', undefined]);
});

it('toRedisError keeps the cause of connection trouble', () => {
  const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', syscall: 'connect' });
  expect(toRedisError(cause)).toMatchObject({ code: 'REDIS_UNAVAILABLE', cause });
});

describe('real trouble is Redis unavailable', () => {
  const unavailable = async (asked: Promise<unknown>) => {
    expect(await asked.then(() => 'a reply', toRedisError)).toBeInstanceOf(RedisUnavailableError);
  };

  it.each([
    ['a port where nobody listens', 'redis://127.0.0.1:1'],
    ['a cluster that is not there', 'redis-cluster://127.0.0.1:1'],
    ['Sentinels that are not there', 'redis-sentinel://127.0.0.1:1/payouts'],
  ])('%s', async (_, url) => {
    for (const role of ['commands', 'sender'] as const) {
      const startedAt = performance.now();
      await unavailable(open(url, role).ping());
      if (role === 'commands') expect(performance.now() - startedAt).toBeLessThan(7_000);
    }
    await unavailable(checkDurability(open(url, 'commands')));
  });

  it('a wrong password, and TLS with a server that speaks none', async () => {
    const { host } = new URL(url);
    await unavailable(open(`redis://nobody:wrong@${host}`, 'commands').ping());
    await unavailable(open(`rediss://${host}`, 'commands').ping());
  });

  it('a connection that was closed, and a command that gets no reply in time', async () => {
    const client = open(url, 'commands');
    await unavailable(client.blpop(`test:${crypto.randomUUID()}`, 0));
    client.disconnect();
    await unavailable(client.ping());
  });
});

it('the log of a connection says once that Redis is unavailable, and once that it reconnected', async () => {
  const said: string[] = [];
  const hear = (level: string) => (fields: object, message: string) =>
    void said.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const server = closeAfterTest(await startOwnRedis());
  const logger = { ...silentLogger, warn: hear('warn'), info: hear('info') };
  const client = connectRedis(server.url, 'commands', logger);
  afterTest(async () => closeRedis(client));
  await client.ping();
  const ended = new Promise((resolve) => client.once('reconnecting', resolve));
  await server.stop();
  await ended;
  const ready = new Promise((resolve) => client.once('ready', resolve));
  await new Promise((resolve) => client.once('error', resolve));
  await server.startAgain();
  await ready;
  expect(said).toEqual([
    expect.stringMatching(/^warn Redis unavailable, reconnecting .*"role":"commands"/),
    'info Redis reconnected {"role":"commands"}',
  ]);
});

describe('with a Sentinel', () => {
  let master: LocalRedis;
  let sentinel: ScriptedSentinel;
  beforeAll(async () => {
    master = await startLocalRedis();
    sentinel = await startScriptedSentinel(master.port);
  });
  afterAll(async () => {
    await sentinel.close();
    await master.stop();
  });
  beforeEach(async () => {
    sentinel.releaseReplies();
    await until('none is left', () => sentinel.listening === 0);
  });

  async function isThere(client: RedisClient) {
    return client.ping().then(
      () => true,
      () => false,
    );
  }

  it.each(['commands', 'sender', 'queue'] as const)('news of a failover do not end a %s connection', async (role) => {
    const client = open(`redis-sentinel://127.0.0.1:${sentinel.port}/payouts`, role);
    // BullMQ makes copies, and so do reads that wait.
    const both = [client, duplicateForWaiting(client, 1_000)];
    clients.splice(0, clients.length, ...both);
    for (const each of both) await until('it is connected', async () => isThere(each));
    await until('both listen', () => sentinel.listening === both.length);

    sentinel.holdReplies();
    const admin = new Redis(master.url);
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await admin.quit();
    await until('both ask for the master', () => sentinel.held === both.length);
    sentinel.announceFailover();
    sentinel.releaseReplies();
    for (const each of both) await until('it is connected again', async () => isThere(each));
    expect(both.map(({ status }) => status)).toEqual(['ready', 'ready']);
    await until('both listen again', () => sentinel.listening === both.length);
  });
});

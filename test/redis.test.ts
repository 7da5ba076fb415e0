import { afterEach, describe, expect, it } from '@jest/globals';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import { ConflictError, RedisUnavailableError } from '../src/errors.js';
import { silentLogger } from '../src/logger.js';
import { closeRedis, connectRedis, parseRedisUrl, toRedisError, type RedisClient } from '../src/redis.js';
import { throwingLogger } from './support/throwing-watchers.js';
import { startOwnRedis } from './worker/support/own-redis.js';

describe('parseRedisUrl', () => {
  it.each([
    ['redis://h', { kind: 'single', node: { host: 'h', port: 6379 }, login: { db: 0 } }],
    ['redis://h:1/3', { kind: 'single', node: { host: 'h', port: 1 }, login: { db: 3 } }],
    ['redis://h:1/', { kind: 'single', node: { host: 'h', port: 1 }, login: { db: 0 } }],
    ['rediss://h:1', { kind: 'single', node: { host: 'h', port: 1 }, login: { db: 0, tls: {} } }],
    ['redis://[::1]:1', { kind: 'single', node: { host: '::1', port: 1 }, login: { db: 0 } }],
    ['redis://[2001:db8::7]', { kind: 'single', node: { host: '2001:db8::7', port: 6379 }, login: { db: 0 } }],
    ['redis://:pw@h', { kind: 'single', node: { host: 'h', port: 6379 }, login: { password: 'pw', db: 0 } }],
    ['redis://@h', { kind: 'single', node: { host: 'h', port: 6379 }, login: { db: 0 } }],
    [
      'rediss-sentinel://u:pw@a:1,b,[::1]:3/mymaster/2',
      {
        kind: 'sentinel',
        nodes: [
          { host: 'a', port: 1 },
          { host: 'b', port: 26379 },
          { host: '::1', port: 3 },
        ],
        masterName: 'mymaster',
        login: { username: 'u', password: 'pw', db: 2, tls: {} },
      },
    ],
    [
      'redis-cluster://a:1,b',
      {
        kind: 'cluster',
        nodes: [
          { host: 'a', port: 1 },
          { host: 'b', port: 6379 },
        ],
        login: {},
      },
    ],
    [
      'rediss-cluster://u:pw@a:1',
      { kind: 'cluster', nodes: [{ host: 'a', port: 1 }], login: { username: 'u', password: 'pw', tls: {} } },
    ],
  ])('reads %s', (url, target) => {
    expect(parseRedisUrl(url)).toEqual(target);
  });

  it.each(['redis', 'redis-sentinel', 'redis-cluster'])('decodes a password with special characters: %s', (scheme) => {
    const password = 'a:b/c@d?e#f%g,h [ü]';
    const target = parseRedisUrl(
      `${scheme}://us%40er:${encodeURIComponent(password)}@h:1/m`.replace(
        /\/m$/,
        scheme === 'redis-sentinel' ? '/m' : '',
      ),
    );
    expect(target.login).toMatchObject({ username: 'us@er', password });
  });

  it('takes everything behind the first colon as the password', () => {
    expect(parseRedisUrl('redis://u:a:b:c@h').login).toMatchObject({ username: 'u', password: 'a:b:c' });
  });

  it.each([
    ['', /must begin with redis:/],
    ['http://h', /must begin with redis:/],
    ['redis-other://h', /must begin with redis:/],
    ['redis://', /host:port/],
    ['redis://h:0', /host:port/],
    ['redis://h:65536', /host:port/],
    ['redis://h:x', /host:port/],
    ['redis://::1:6379', /host:port/],
    ['redis://a b:1', /host:port/],
    ['redis://a,b', /several hosts/],
    ['redis://h/x', /database/],
    ['redis://h/1/2', /database/],
    ['redis://h?db=1', /without a query/],
    ['redis-cluster://h/1', /only one/],
    ['redis-cluster://a,,b', /host:port/],
    ['redis-sentinel://h', /name the master/],
    ['redis-sentinel://h/m/x', /database/],
  ])('refuses %j and says why', (url, why) => {
    expect(() => parseRedisUrl(url)).toThrow(TypeError);
    expect(() => parseRedisUrl(url)).toThrow(why);
  });

  it.each([
    'redis://u:hunter2',
    'redis://hunter2:x',
    'redis://u:a/hunter2@h',
    'redis://u:a@hunter2@h',
    'redis://u:a?hunter2@h',
    'redis://u:a#hunter2@h',
    'redis://u:hunter2%@h',
    'redis://u:hunter2@h/x',
    'redis://u:hunter2@h:99999',
    'redis-cluster://u:a@hunter2@h',
    'redis-sentinel://u:hunter2@h',
    'redis-sentinel://u:pw@h/m/hunter2',
  ])('never shows the password of %s', (url) => {
    expect(() => parseRedisUrl(url)).toThrow(TypeError);
    expect(() => parseRedisUrl(url)).not.toThrow(/hunter2/);
  });
});

describe('connectRedis', () => {
  let client: RedisClient | undefined;
  afterEach(async () => {
    if (client !== undefined) await closeRedis(client);
  });
  const url = process.env['REDIS_URL'] ?? '';

  it('reaches the server that the address names', async () => {
    client = connectRedis(url, 'commands');
    expect(await client.ping()).toBe('PONG');
  });

  it('hands user, password and TLS to a server, a sentinel and a cluster', () => {
    const options = (address: string) => {
      const made = connectRedis(address, 'commands');
      made.disconnect();
      return made instanceof Redis ? made.options : (made.options.redisOptions ?? {});
    };
    const login = { username: 'u', password: 'p@w' };
    expect(options('rediss://u:p%40w@127.0.0.1:1/2')).toMatchObject({
      ...login,
      host: '127.0.0.1',
      port: 1,
      db: 2,
      tls: {},
    });
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

  it.each(['commands', 'sender'] as const)('fails soon and clearly where Redis is away: %s', async (role) => {
    client = connectRedis('redis://127.0.0.1:1', role);
    const startedAt = performance.now();
    const error = await client.ping().catch(toRedisError);
    expect(error).toBeInstanceOf(RedisUnavailableError);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });

  it('never sends a command of the sender again on a new connection', async () => {
    client = connectRedis(url, 'sender');
    await new Promise((resolve) => client?.once('ready', resolve));
    const other = connectRedis(url, 'commands');
    const key = `test:${crypto.randomUUID()}`;
    const clientId = await client.client('ID');
    const waiting = client.brpop(key, 0).catch(toRedisError);
    await other.client('KILL', 'ID', clientId);
    expect(await waiting).toBeInstanceOf(RedisUnavailableError);
    await closeRedis(other);
  });
});

describe('closeRedis', () => {
  it('leaves nothing behind that keeps the process from ending', async () => {
    const countTimers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = countTimers();
    const client = connectRedis(process.env['REDIS_URL'] ?? '', 'commands');
    await client.ping();
    await closeRedis(client);
    expect(countTimers()).toBeLessThanOrEqual(before);
  });
});

describe('toRedisError', () => {
  const replyError = (message: string): Error => Object.assign(new Error(message), { name: 'ReplyError' });

  it.each([
    'LOADING Redis is loading',
    'READONLY You can not write',
    'OOM command not allowed',
    'NOAUTH x',
    'MISCONF x',
    'NOREPLICAS Not enough good replicas to write. script: 12ab, on @user_script:50.',
    'UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)',
    'ERR max number of clients reached',
  ])('takes a refusal to work as Redis unavailable: %s', (message) => {
    expect(toRedisError(replyError(message))).toMatchObject({
      code: 'REDIS_UNAVAILABLE',
      message: expect.stringMatching(/^Redis unavailable \(.*asking again is safe$/),
    });
  });

  it.each([
    replyError('ERR wrong number of arguments'),
    replyError('WRONGTYPE Operation against a key holding the wrong kind of value'),
    replyError('ERR user_script:17: no transition from failed to queued script: 12ab, on @user_script:17.'),
    replyError('BUSYGROUP Consumer Group name already exists'),
    replyError('BUSYKEY Target key name already exists.'),
    new ConflictError('x'),
    new TypeError("Cannot read properties of undefined (reading 'length')"),
    Object.assign(new TypeError('The "key" argument must be a string'), { code: 'ERR_INVALID_ARG_TYPE' }),
    new RangeError('Invalid array length'),
    new SyntaxError('Unexpected token'),
    new Error('The ledger gave no answer for a payout'),
    Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT', syscall: 'open' }),
    'text',
    undefined,
  ])('leaves mistakes, this project’s own errors and what is no error alone: %s', (error) => {
    expect(toRedisError(error)).toBe(error);
  });

  it('keeps the cause of connection trouble', () => {
    const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', syscall: 'connect' });
    expect(toRedisError(cause)).toMatchObject({ code: 'REDIS_UNAVAILABLE', cause });
  });
});

describe('real trouble is Redis unavailable', () => {
  const clients: RedisClient[] = [];
  afterEach(async () => {
    for (const client of clients.splice(0)) await closeRedis(client);
  });
  const open = (...args: Parameters<typeof connectRedis>): RedisClient => {
    const client = connectRedis(...args);
    clients.push(client);
    return client;
  };
  const unavailable = async (asked: Promise<unknown>): Promise<void> => {
    expect(await asked.then(() => 'an answer', toRedisError)).toBeInstanceOf(RedisUnavailableError);
  };

  it.each([
    ['a port where nobody listens', 'redis://127.0.0.1:1'],
    ['a name that does not exist', 'redis://no-such-host.invalid:6379'],
    ['a cluster that is not there', 'redis-cluster://127.0.0.1:1'],
    ['Sentinels that are not there', 'redis-sentinel://127.0.0.1:1/payouts'],
  ])('%s', async (_, url) => {
    await unavailable(open(url, 'commands').ping());
    await unavailable(open(url, 'sender').ping());
  });

  it('a wrong password, TLS with a server that speaks none, and a server that is no Redis', async () => {
    const url = new URL(process.env['REDIS_URL'] ?? '');
    await unavailable(open(`redis://nobody:wrong@${url.host}`, 'commands').ping());
    await unavailable(open(`rediss://${url.host}`, 'commands').ping());
    const web = createServer((_request, response) => response.end('hello'));
    await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve));
    await unavailable(open(`redis://127.0.0.1:${(web.address() as AddressInfo).port}`, 'commands').ping());
    web.close();
    web.closeAllConnections();
  });

  it('a connection that was closed, and a command that is not answered in time', async () => {
    const url = process.env['REDIS_URL'] ?? '';
    const client = open(url, 'commands');
    await client.ping();
    await unavailable(client.blpop(`test:${crypto.randomUUID()}`, 0));
    client.disconnect();
    await unavailable(client.ping());
  });

  it('but not a wrong type, nor an argument that cannot be sent', async () => {
    const client = open(process.env['REDIS_URL'] ?? '', 'commands');
    const key = `test:${crypto.randomUUID()}`;
    await client.set(key, 'text');
    await expect(
      client.zcard(key).catch((error: unknown) => Promise.reject(toRedisError(error) as Error)),
    ).rejects.toThrow(/^WRONGTYPE/);
    await client.unlink(key);
  });
});

describe('the log of a connection', () => {
  it('says once that Redis is unavailable, and once that it reconnected', async () => {
    const said: string[] = [];
    const hear = (level: string) => (fields: object, message: string) =>
      void said.push(`${level} ${message} ${JSON.stringify(fields)}`);
    const server = await startOwnRedis();
    const logger = { ...silentLogger, warn: hear('warn'), info: hear('info') };
    const client = connectRedis(server.url, 'commands', logger);
    try {
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
    } finally {
      await closeRedis(client);
      await server.close();
    }
  });

  it('that throws changes nothing about a connection that cannot be had', async () => {
    const redis = connectRedis('redis://127.0.0.1:1', 'commands', throwingLogger);
    await expect(redis.get('key')).rejects.toThrow(/retries per request/);
    await closeRedis(redis);
  });
});

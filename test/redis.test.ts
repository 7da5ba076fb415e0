import { afterEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { RedisUnavailableError } from '../src/base/errors.js';
import { closeRedis, connectRedis, parseRedisUrl, type RedisClient } from '../src/base/redis.js';
import { toRedisError } from '../src/base/redis-errors.js';

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

  it.each(['commands', 'sender'] as const)('fails soon and clearly where Redis is unavailable: %s', async (role) => {
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

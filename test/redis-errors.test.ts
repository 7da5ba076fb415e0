import { afterEach, describe, expect, it } from '@jest/globals';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ConflictError, RedisUnavailableError } from '../src/base/errors.js';
import { silentLogger } from '../src/base/logger.js';
import { closeRedis, connectRedis, type RedisClient } from '../src/base/redis.js';
import { replyCode, toRedisError } from '../src/base/redis-errors.js';
import { checkDurability } from '../src/ledger/redis-durability.js';
import { throwingLogger } from './support/throwing-watchers.js';
import { startOwnRedis } from './worker/support/own-redis.js';

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
  ])('takes an error reply as Redis unavailable: %s', (message) => {
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
    new Error('The ledger gave no reply for a payout'),
    Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT', syscall: 'open' }),
    'text',
    undefined,
  ])('leaves mistakes, this project’s own errors and what is no error alone: %s', (error) => {
    expect(toRedisError(error)).toBe(error);
  });

  it('gives the code of a reply, and of nothing else', () => {
    const errors = [
      replyError('NOPERM this user has no permissions'),
      replyError('ERR max number of clients reached'),
      replyError('ERR no such key'),
      new Error('LOADING x'),
      'NOAUTH',
    ];
    expect(errors.map(replyCode)).toEqual(['NOPERM', 'MAXCLIENTS', 'ERR', undefined, undefined]);
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
    expect(await asked.then(() => 'a reply', toRedisError)).toBeInstanceOf(RedisUnavailableError);
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

  it('a connection that was closed, and a command that gets no reply in time', async () => {
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

  it('leaves a refused login to the error of each command, in one sentence', async () => {
    const server = await startOwnRedis();
    const owner = connectRedis(server.url, 'commands');
    await owner.config('SET', 'requirepass', 'right-word');
    const said: string[] = [];
    const logger = { ...silentLogger, warn: (_: object, message: string) => void said.push(message) };
    const client = connectRedis(server.url, 'commands', logger);
    try {
      const error = (await client.get('key').catch(toRedisError)) as Error;
      expect(error.message).toBe(
        'Redis unavailable (it asks for a password, and there is none in the address (NOAUTH)): check that it runs, and the address, user and password in REDIS_URL; asking again is safe',
      );
      expect(said).toEqual([]);
      await expect(checkDurability(client)).rejects.toThrow('NOAUTH');
    } finally {
      await closeRedis(owner);
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

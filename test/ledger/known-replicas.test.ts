import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { InvalidConfigError } from '../../src/base/errors.js';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { findRefusalOf } from '../../src/ledger/account-refusal.js';
import { WriteConfirmer } from '../../src/ledger/confirm-write.js';
import { KnownReplicas } from '../../src/ledger/known-replicas.js';
import { connectLedger, type LedgerConnection } from '../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../src/ledger/payout-ledger.js';
import { parseClusterReplicas, parseSentinelReplicas } from '../../src/ledger/replica-names.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';
import { startMasterWithReplica } from '../support/replicated-redis.js';
import { closeAfterTest } from '../worker/support/close-after-test.js';

const single = new Redis({ lazyConnect: true });
const cluster = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true });
const watched = new Redis({ lazyConnect: true, sentinels: [{ host: '127.0.0.1', port: 1 }], name: 'm' });
const seen = (count: number) => ({ count, names: Array.from({ length: count }, (_, index) => `10.0.0.${index}:6379`) });

it.each([
  ['one server', single, 0],
  ['a cluster', cluster, 0],
  ['Sentinel', watched, 1],
])('%s needs no replica before one was seen, Sentinel one at least', (_, redis, lowest) => {
  expect(new KnownReplicas(redis).of(connectLedger(redis, 1)).required).toBe(lowest);
});

it('REDIS_REPLICAS may only raise the number', () => {
  const account = new KnownReplicas(single, 2).of(connectLedger(single, 1));
  expect(account.required).toBe(2);
  account.see(seen(3));
  expect(account.required).toBe(3);
  expect(() => new KnownReplicas(single, 1.5)).toThrow(InvalidConfigError);
  expect(() => new KnownReplicas(single, 1.5)).toThrow('REDIS_REPLICAS: must be a whole number');
});

describe('the number of an account', () => {
  let redis: Redis;
  let connection: LedgerConnection;
  beforeAll(() => {
    const client: RedisClient = connectRedis(testRedisUrl(), 'commands');
    if (!(client instanceof Redis)) throw new Error('the tests run on one server');
    redis = client;
  });
  afterAll(async () => closeRedis(redis));
  beforeEach(() => {
    connection = connectLedger(redis, newPlatformId());
  });

  /** As another process, or this one after a restart. */
  const newProcess = async () => {
    const account = new KnownReplicas(redis).of(connection);
    await account.read(redis);
    return account;
  };

  it('is in the ledger for every other process, and survives a restart, a failover and a loss of all replicas', async () => {
    const first = await newProcess();
    first.see(seen(1));
    first.see(seen(3));
    first.see(seen(1));
    expect(first.required).toBe(3);
    await first.save();
    await first.save();
    const next = await newProcess();
    next.see(seen(0));
    await next.save();
    expect([next.required, next.missingFrom({ name: 'x:1', following: [] })]).toEqual([3, seen(3).names]);
  });

  it('has the names of all servers, so that after a failover the former master is the one that is missing', async () => {
    const master = await newProcess();
    master.see({ count: 2, names: ['a:1', 'b:1', 'c:1'] });
    await master.save();
    const promoted = await newProcess();
    promoted.see({ count: 1, names: ['b:1', 'c:1'] });
    await promoted.save();
    expect(promoted.missingFrom({ name: 'b:1', following: ['c:1'] })).toEqual(['a:1']);
    // Another took its place for good.
    promoted.see({ count: 2, names: ['b:1', 'c:1', 'd:1'] });
    await promoted.save();
    expect((await newProcess()).missingFrom({ name: 'b:1', following: ['c:1'] })).toEqual(['d:1']);
  });

  it('has no name that someone wrote to Redis and that is no address, and not any number of them', async () => {
    const names = ['\u001b[2J', 'a:1', '<b>', ...Array.from({ length: 5_000 }, (_, index) => `x:${index}`)];
    await redis.hset(connection.keys.ledger, 'replicas', '2', 'replicaNames', names.join(' '));
    const shown = (await newProcess()).missingFrom({ name: 'x:0', following: [] });
    expect([shown[0], shown.includes('<b>'), shown.length < 1_001]).toEqual(['a:1', false, true]);
  });

  it('is not lowered by what someone writes to Redis, but by the operator whose act is recorded', async () => {
    const account = await newProcess();
    account.setJournal(() => 3);
    for (const value of ['1', '0', '-7', 'many', '1e1', '']) {
      await redis.hset(connection.keys.ledger, 'replicas', value);
      await account.read(redis);
      expect(account.required).toBe(3);
    }
    await redis.hset(connection.keys.ledger, 'replicas', '3');
    const ledger = new PayoutLedger(connection);
    await ledger.lowerReplicas(seen(1), { by: 'ann', reason: 'node-3 was removed' });
    await account.read(redis);
    expect(account.required).toBe(3);
    account.setJournal(() => 1);
    expect([account.required, await ledger.readReplicas()]).toEqual([1, seen(1)]);
    const [act] = await redis.xrevrange(connection.keys.activity, '+', '-', 'COUNT', 1);
    expect(act?.[1]).toEqual(expect.arrayContaining(['replicas_lowered', 'ann', '1 remain: node-3 was removed']));
  });

  it('that someone raised absurdly is no number that a journal takes', async () => {
    const account = await newProcess();
    await redis.hset(connection.keys.ledger, 'replicas', '999999999');
    await account.read(redis);
    account.see(seen(2));
    await account.save();
    expect([account.required, await redis.hget(connection.keys.ledger, 'replicas')]).toEqual([
      999_999_999,
      '999999999',
    ]);
  });

  it('is raised by what the lease holder’s journal knows', async () => {
    const { RedisSenderLedger } = await import('../../src/ledger/redis-sender-ledger.js');
    const sender = new RedisSenderLedger(connection, 'reply');
    const journal = { journalId: 'j', host: 'h', dir: 'd', sends: 0, token: '', replicas: 2, at: 1 };
    await sender.acquireLease('one', await sender.readSender(), journal, 0);
    expect((await newProcess()).required).toBe(2);
    const { journals } = await sender.readSender();
    expect(journals).toEqual([journal]);
    await sender.acquireLease('two', await sender.readSender(), { ...journal, replicas: 1 }, 0);
    expect((await newProcess()).required).toBe(2);
  });
});

it('a Redis that refuses writes for want of replicas says which of the account’s are missing', async () => {
  const servers = closeAfterTest(await startMasterWithReplica());
  const client = connectRedis(servers.master.url, 'commands');
  closeAfterTest({ close: async () => closeRedis(client) });
  const connection = connectLedger(client, newPlatformId());
  const write = await new WriteConfirmer({ redis: client, known: new KnownReplicas(client) }).prepare(connection);
  await write.confirm();
  expect(await findRefusalOf(connection)).toBeUndefined();
  await (client as Redis).config('SET', 'min-replicas-to-write', '1');
  servers.link.cut();
  await servers.untilReplica('gone');
  const missing = [new URL(servers.replica.url).host];
  expect(await findRefusalOf(connection)).toMatchObject({ reason: expect.stringMatching(/min-replicas/), missing });
});

it('Sentinel’s list has replicas that are down, each once', () => {
  const replica = (port: string, flags: string) => [
    'name',
    `x:${port}`,
    'ip',
    '10.0.0.2',
    'port',
    port,
    'flags',
    flags,
  ];
  const list = [replica('6381', 's_down,slave'), replica('6380', 'slave'), replica('6380', 'slave')];
  expect(parseSentinelReplicas(list)).toEqual(['10.0.0.2:6380', '10.0.0.2:6381']);
});

it('a cluster’s list has the replicas of the server that replies, failed ones too', () => {
  const nodes = [
    'aa 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0-5460',
    'bb 10.0.0.2:6379@16379,host-b slave aa 0 0 1 connected',
    'cc 10.0.0.3:6379@16379 slave,fail aa 0 0 1 disconnected',
    'dd 10.0.0.4:6379@16379 master - 0 0 2 connected 5461-16383',
    'ee 10.0.0.5:6379@16379 slave dd 0 0 2 connected',
    '',
  ];
  expect(parseClusterReplicas(nodes.join('\n'))).toEqual(['10.0.0.2:6379', '10.0.0.3:6379']);
  expect(parseClusterReplicas('')).toEqual([]);
});

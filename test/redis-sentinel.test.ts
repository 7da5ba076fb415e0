import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { closeRedis, connectRedis, duplicateForWaiting, type RedisClient } from '../src/base/redis.js';
import { startLocalRedis, type LocalRedis } from '../src/sandbox/local-redis.js';
import { startScriptedSentinel, type ScriptedSentinel } from './support/scripted-sentinel.js';
import { until } from './support/until.js';

let master: LocalRedis;
let sentinel: ScriptedSentinel;
let clients: RedisClient[];

beforeEach(async () => {
  master = await startLocalRedis();
  sentinel = await startScriptedSentinel(master.port);
  clients = [];
});

afterEach(async () => {
  sentinel.releaseReplies();
  await Promise.all(clients.map(closeRedis));
  await sentinel.close();
  await master.stop();
});

async function isThere(client: RedisClient): Promise<boolean> {
  return client.ping().then(
    () => true,
    () => false,
  );
}

it.each(['commands', 'sender', 'queue'] as const)(
  'news of a failover while a %s connection asks for the master does not end it',
  async (role) => {
    const client = connectRedis(`redis-sentinel://127.0.0.1:${sentinel.port}/payouts`, role);
    // BullMQ makes copies, and so do reads that wait.
    clients = [client, duplicateForWaiting(client, 1_000)];
    for (const each of clients) await until('it is connected', async () => isThere(each));
    await until('both listen', () => sentinel.listening === clients.length);

    sentinel.holdReplies();
    await breakConnections();
    await until('both ask for the master', () => sentinel.held === clients.length);
    sentinel.announceFailover();
    sentinel.releaseReplies();
    for (const each of clients) await until('it is connected again', async () => isThere(each));
    expect(clients.map(({ status }) => status)).toEqual(['ready', 'ready']);
    await until('both listen again', () => sentinel.listening === clients.length);
  },
);

async function breakConnections(): Promise<void> {
  const admin = new Redis(master.url);
  await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await admin.quit();
}

import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { openAccount } from '../../src/queues/open-account.js';
import { findFreePort, startLocalRedis } from '../../src/sandbox/local-redis.js';
import { makeSelfSignedCertificate } from '../gateway/support/self-signed-certificate.js';
import { cents, numbered } from '../support/account.js';
import { connectAdmin, startRedisCluster, untilReply } from '../support/redis-cluster.js';
import { startManagedRedis, startRedisSentinel } from '../support/replicated-redis.js';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest, folderOfTest } from '../worker/support/close-after-test.js';
import { expectPromisesKept, untilSent, untilSettled, worldOfTest } from '../worker/support/payout-world.js';
import { untilSettledAfterOutage, type PayoutWorld } from '../worker/support/payout-world.js';

const keyOf = ({ platformId }: PayoutWorld) => `{payouts:${platformId}}:ledger`;

describe.each([
  { kind: 'Redis Cluster', start: async () => startRedisCluster() },
  { kind: 'Redis Sentinel', start: async () => startRedisSentinel() },
])('$kind', ({ start }) => {
  it('loses its master in the middle: once it is back as a replica the work continues, and the promises hold', async () => {
    const redis = closeAfterTest(await start());
    const world = await worldOfTest({ redis, sandbox: { latencyBeforeMs: { min: 0, max: 300 } } });
    await world.enqueue(8);
    const worker = world.startWorker();
    await untilSent(world, 3);
    await redis.killMaster(keyOf(world));
    await until('the worker waits for the old master', () => /replicas of Redis acknowledge/.test(worker.log()));
    const { arrivals } = world.sandbox.stats();
    await delay(2_000);
    expect(world.sandbox.stats().arrivals).toBe(arrivals);
    await redis.startMasterAgain(keyOf(world));
    await untilSettledAfterOutage(world, 8).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${worker.log()}`);
    });
    await expectPromisesKept(world);
    expect(await world.producer.enqueueMany(cents(['P-1']))).toMatchObject({ created: 0 });
    await world.enqueue(2, 'AFTER');
    await until('later payouts are sent too', () => world.sandbox.stats().arrivals === 10);
    worker.kill('SIGTERM');
    expect(await worker.ended).toBe(0);
  }, 120_000);

  it('loses a replica: nothing is sent until it is back, so that no failover forgets a send', async () => {
    const redis = closeAfterTest(await start());
    const world = await worldOfTest({ redis });
    await world.enqueue(4);
    const worker = world.startWorker();
    await untilSent(world, 2);
    await redis.killReplica(keyOf(world));
    await until('the worker says so', () => /Only \d of \d replicas of Redis acknowledge writes/.test(worker.log()));
    const { arrivals } = world.sandbox.stats();
    await delay(4_000);
    expect(world.sandbox.stats().arrivals).toBe(arrivals);
    await redis.startReplicaAgain(keyOf(world));
    await untilSettled(world, 4);
    await expectPromisesKept(world);
  }, 120_000);

  it('comes back from a copy that missed writes: nothing is sent until an operator decides', async () => {
    const redis = closeAfterTest(await start());
    const world = await worldOfTest({ redis });
    await world.enqueue(6);
    const worker = world.startWorker({ environment: { ALLOW_VOLATILE_REDIS: 'true' } });
    await untilSent(world, 1);
    await redis.killReplica(keyOf(world));
    await untilSent(world, 3);
    await redis.killOtherReplicas(keyOf(world));
    await redis.killMaster(keyOf(world));
    await redis.startReplicaAgain(keyOf(world));
    await until('the worker refuses', () => /adopt-ledger/.test(worker.log()), 60_000);
    expect(worker.log()).toMatch(/older|The send journal says that payout/);
    const { arrivals } = world.sandbox.stats();
    await delay(4_000);
    expect(world.sandbox.stats()).toMatchObject({ arrivals, duplicatePayments: [], blocked: false });
  }, 120_000);
});

describe('a managed Redis, whose failover behind one address leaves connections open', () => {
  it('worker, producer and jobs are back within seconds, and the promises hold', async () => {
    const redis = closeAfterTest(await startManagedRedis());
    const world = await worldOfTest({ redis });
    await world.enqueue(6);
    const worker = world.startWorker();
    await untilSent(world, 2);
    await redis.failOver();
    const since = performance.now();
    const isTaken = async () => (await world.enqueue(2, 'AFTER').catch(() => [])).length > 0;
    await until('the producer is back', isTaken, 20_000);
    await until('all are sent', () => world.sandbox.stats().arrivals === 8, 60_000).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${worker.log()}`);
    });
    // Six of a second each, and what a failover takes.
    expect(performance.now() - since).toBeLessThan(40_000);
    await untilSettledAfterOutage(world, 8);
    expect((await world.producer.stats()).unknown).toBe(0);
    await expectPromisesKept(world);
    const left = String(await redis.admin.call('CLIENT', 'LIST', 'TYPE', 'NORMAL')).split('\n');
    expect(left.filter((client) => client.includes('cmd=') && !/cmd=(client|info)/.test(client))).toEqual([]);
  }, 120_000);

  it('every kind of connection leaves a server that loads', async () => {
    const redis = closeAfterTest(await startManagedRedis());
    const promoted = connectAdmin(redis.replica.port);
    const connections = (['commands', 'sender', 'queue'] as const).map((role) => connectRedis(redis.url, role));
    connections.push((connections[2] as Redis).duplicate());
    afterTest(async () => {
      promoted.disconnect();
      await Promise.all(connections.map(closeRedis));
      process.kill(redis.master.pid, 'SIGKILL');
    });
    await until('all are connected', () => connections.every(({ status }) => status === 'ready'));
    const pairs = numbered(1_000, 'key').flatMap((key) => [key, randomBytes(100).toString('base64')]);
    await redis.admin.mset(pairs);
    await redis.admin.wait(1, 5_000);
    for (const [name, value] of Object.entries(SLOW_TO_LOAD)) await redis.admin.config('SET', name, value);
    await promoted.call('REPLICAOF', 'NO', 'ONE');
    await promoted.config('SET', 'repl-diskless-sync-delay', '0');
    // A write that the new master lacks: the former one takes a whole copy.
    await redis.admin.set('lost', '1');
    await redis.admin.call('REPLICAOF', '127.0.0.1', redis.replica.port);
    await untilReply(redis.admin, 'GET key-1', /LOADING/);
    const refusal = async (connection: RedisClient) => connection.get('key-1').then(String, String);
    const first = await Promise.all(connections.map(refusal));
    expect(first).toEqual(connections.map(() => expect.stringContaining('LOADING')));
    // At first the address still leads to the former master.
    await delay(2_000);
    redis.address.leadTo(redis.replica.port);
    const write = async (connection: RedisClient) => connection.set('after', '1').catch(String);
    for (const connection of connections) {
      await until('it writes', async () => (await write(connection)) === 'OK', 15_000);
    }
    expect(await redis.admin.get('key-1').catch(String)).toContain('LOADING');
  }, 60_000);
});

/** So that it still loads when the test ends, and replies meanwhile. */
const SLOW_TO_LOAD = { 'key-load-delay': '20000', 'loading-process-events-interval-bytes': '1024' };

/** A Redis in a folder of its own. */
async function start(dir: string, args: readonly string[] = []) {
  const redis = await startLocalRedis({ dir, args });
  afterTest(async () => redis.stop());
  return redis;
}

async function untilCompleted({ producer }: PayoutWorld, count: number) {
  await until(`${count} payouts are completed`, async () => (await producer.stats()).completed === count);
}

it('a Redis that speaks TLS is used with rediss://, once its authority is trusted', async () => {
  const dir = await folderOfTest('secured');
  const { cert, key } = makeSelfSignedCertificate();
  const [certFile, keyFile, tlsPort] = [join(dir, 'cert.pem'), join(dir, 'key.pem'), await findFreePort()];
  await writeFile(certFile, cert);
  await writeFile(keyFile, key);
  const tls = ['--tls-cert-file', certFile, '--tls-key-file', keyFile, '--tls-ca-cert-file', certFile];
  const args = ['--tls-port', String(tlsPort), '--tls-auth-clients', 'no', ...tls];
  const world = await worldOfTest({ redis: await start(dir, args) });
  await world.enqueue(2);
  const redisUrl = `rediss://127.0.0.1:${tlsPort}`;
  const distrustful = world.startWorker({ redisUrl });
  await until('it says why it waits', () => /waiting for Redis/.test(distrustful.log()));
  expect(distrustful.log()).toMatch(/self-signed certificate/);
  distrustful.kill('SIGKILL');
  world.startWorker({ redisUrl, environment: { NODE_EXTRA_CA_CERTS: certFile } });
  await untilCompleted(world, 2);
  await expectPromisesKept(world);
}, 60_000);

const password = 'p@ss/w:rd#1%';

it('a Redis user with few rights is enough for producer, worker and operator, with any character in its password', async () => {
  const { port } = await start(await folderOfTest('secured'));
  const admin = connectAdmin(port);
  afterTest(() => {
    admin.disconnect();
  });
  const text = await readFile(new URL('../../docs/redis.md', import.meta.url), 'utf8');
  const [, rights = ''] = /^ACL SETUSER payouts on >password (.+)$/m.exec(text) ?? [];
  await admin.call('ACL', 'SETUSER', 'payouts', 'on', `>${password}`, ...rights.split(' '));
  await admin.call('ACL', 'SETUSER', 'default', 'off');
  const url = `redis://payouts:${encodeURIComponent(password)}@127.0.0.1:${port}`;
  const world = await worldOfTest({ redis: { url } });
  await world.enqueue(3);
  await world.producer.cancel('P-3');
  const events = world.producer.events({ group: 'books', consumer: 'one' });
  expect((await events.next()).value).toMatchObject({ payoutId: 'P-1', to: 'queued' });
  await events.return();
  const worker = world.startWorker({ environment: { IN_FLIGHT_MAX_MS: '60000' } });
  await untilCompleted(world, 2);
  await expectPromisesKept(world);
  // A send without a response is recorded, and decided about by the time of Redis.
  world.sandbox.setFaults([{ kind: 'drop-before', times: 1 }]);
  await world.enqueue(1, 'Q');
  await until('the payout is unknown', async () => (await world.producer.stats()).unknown === 1);
  const account = closeAfterTest(openAccount(world.account));
  const notSent = { payoutId: 'Q-1', from: 'unknown', to: 'queued', by: 'ann', reason: 'none' } as const;
  await expect(account.ledger.change(notSent)).rejects.toThrow(/may still arrive at the gateway until .* UTC, in /);
  expect(await admin.call('ACL', 'LOG')).toEqual([]);
  expect(worker.log()).not.toContain(password);
}, 60_000);

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { openAccount } from '../../src/queues/open-account.js';
import { findFreePort, startLocalRedis } from '../../src/sandbox/local-redis.js';
import { makeSelfSignedCertificate } from '../gateway/support/self-signed-certificate.js';
import { cents } from '../support/account.js';
import { connectAdmin, startRedisCluster } from '../support/redis-cluster.js';
import { startRedisSentinel } from '../support/replicated-redis.js';
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
  await expect(account.ledger.change(notSent)).rejects.toThrow(/may still be on its way to the gateway for \d+ s/);
  expect(await admin.call('ACL', 'LOG')).toEqual([]);
  expect(worker.log()).not.toContain(password);
}, 60_000);

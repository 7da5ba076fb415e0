import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openAccount } from '../../src/queues/open-account.js';
import type { RedisClient } from '../../src/base/redis.js';
import { findFreePort, startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { makeSelfSignedCertificate } from '../gateway/support/self-signed-certificate.js';
import { connectAdmin } from '../support/redis-cluster.js';
import { expectPromisesKept, openWorld, type PayoutWorld } from '../worker/support/payout-world.js';
import { until } from '../support/until.js';
import { endAllWorkers } from '../worker/support/worker-process.js';

let dir: string;
let redis: LocalRedis;
let world: PayoutWorld;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-secured-'));
});

afterEach(async () => {
  await endAllWorkers();
  await world.close();
  await redis.stop();
  await rm(dir, { recursive: true, force: true });
});

async function untilCompleted(count: number): Promise<void> {
  await until(`${count} payouts are completed`, async () => (await world.producer.stats()).completed === count);
}

describe('a Redis that speaks TLS', () => {
  it('is used with rediss://, once its authority is trusted', async () => {
    const { cert, key } = makeSelfSignedCertificate();
    const [certFile, keyFile, tlsPort] = [join(dir, 'cert.pem'), join(dir, 'key.pem'), await findFreePort()];
    await writeFile(certFile, cert);
    await writeFile(keyFile, key);
    const tls = ['--tls-cert-file', certFile, '--tls-key-file', keyFile, '--tls-ca-cert-file', certFile];
    const args = ['--tls-port', String(tlsPort), '--tls-auth-clients', 'no', ...tls];
    redis = await startLocalRedis({ dir, args });
    world = await openWorld({ redis });
    await world.enqueue(2);
    const redisUrl = `rediss://127.0.0.1:${tlsPort}`;
    const distrustful = world.startWorker({ redisUrl });
    await until('it says why it waits', () => /waiting for Redis/.test(distrustful.log()));
    expect(distrustful.log()).toMatch(/self-signed certificate/);
    distrustful.kill('SIGKILL');
    world.startWorker({ redisUrl, environment: { NODE_EXTRA_CA_CERTS: certFile } });
    await untilCompleted(2);
    await expectPromisesKept(world);
  }, 60_000);
});

/** The rights that docs/redis.md names. */
async function readRights(): Promise<string[]> {
  const text = await readFile(new URL('../../docs/redis.md', import.meta.url), 'utf8');
  const [, rights = ''] = /^ACL SETUSER payouts on >password (.+)$/m.exec(text) ?? [];
  return rights.split(' ');
}

describe('a Redis user with few rights', () => {
  const password = 'p@ss/w:rd#1%';
  let admin: RedisClient;
  afterEach(() => {
    admin.disconnect();
  });

  /** A Redis with this user alone, and an account there. */
  async function openAsUser(): Promise<void> {
    redis = await startLocalRedis({ dir });
    admin = connectAdmin(redis.port);
    await admin.call('ACL', 'SETUSER', 'payouts', 'on', `>${password}`, ...(await readRights()));
    await admin.call('ACL', 'SETUSER', 'default', 'off');
    world = await openWorld({
      redis: { url: `redis://payouts:${encodeURIComponent(password)}@127.0.0.1:${redis.port}` },
    });
  }

  it('is enough for producer and worker, with any character in its password', async () => {
    await openAsUser();
    await world.enqueue(3);
    await world.producer.cancel('P-3');
    const events = world.producer.events({ group: 'books', consumer: 'one' });
    expect((await events.next()).value).toMatchObject({ payoutId: 'P-1', to: 'queued' });
    await events.return();
    const worker = world.startWorker();
    await untilCompleted(2);
    await expectPromisesKept(world);
    const refused = (await admin.call('ACL', 'LOG')) as unknown[];
    expect(refused).toEqual([]);
    expect(worker.log()).not.toContain(password);
  }, 60_000);

  it('is enough to record that a send has no response, and to decide about it by the time of Redis', async () => {
    await openAsUser();
    world.sandbox.setFaults([{ kind: 'drop-before', times: 1 }]);
    await world.enqueue(1);
    world.startWorker({ environment: { IN_FLIGHT_MAX_MS: '60000' } });
    await until('the payout is unknown', async () => (await world.producer.stats()).unknown === 1);
    const account = openAccount({ redisUrl: world.redisUrl, platformId: world.platformId });
    const notSent = {
      payoutId: 'P-1',
      from: 'unknown',
      to: 'queued',
      by: 'ann',
      reason: 'the gateway has none',
    } as const;
    await expect(account.ledger.change(notSent)).rejects.toThrow(/may still be on its way to the gateway for \d+ s/);
    await account.close();
    expect(await admin.call('ACL', 'LOG')).toEqual([]);
  }, 60_000);
});

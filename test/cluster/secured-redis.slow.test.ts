import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { findFreePort, startLocalRedis, type LocalRedis } from '../../src/sandbox/index.js';
import { makeSelfSignedCertificate } from '../gateway/support/self-signed-certificate.js';
import { connectAdmin } from '../support/redis-cluster.js';
import { expectPromisesKept, openWorld, until, type PayoutWorld } from '../worker/support/payout-world.js';
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
const RIGHTS =
  '~{payouts:* resetchannels -@all +@read +@write +@connection +@transaction +@scripting +@blocking -@dangerous +info +config|get';

describe('a Redis user with few rights', () => {
  it('is enough for producer and worker, with any character in its password', async () => {
    redis = await startLocalRedis({ dir });
    const password = 'p@ss/w:rd#1%';
    const admin = connectAdmin(redis.port);
    await admin.call('ACL', 'SETUSER', 'payouts', 'on', `>${password}`, ...RIGHTS.split(' '));
    await admin.call('ACL', 'SETUSER', 'default', 'off');
    world = await openWorld({
      redis: { url: `redis://payouts:${encodeURIComponent(password)}@127.0.0.1:${redis.port}` },
    });
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
    admin.disconnect();
  }, 60_000);
});

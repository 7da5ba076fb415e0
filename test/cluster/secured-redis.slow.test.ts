import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { openAccount } from '../../src/queues/open-account.js';
import { findFreePort, startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { makeSelfSignedCertificate } from '../gateway/support/self-signed-certificate.js';
import { connectAdmin } from '../support/redis-cluster.js';
import { afterTest, closeAfterTest, folderOfTest } from '../worker/support/close-after-test.js';
import { expectPromisesKept, worldOfTest, type PayoutWorld } from '../worker/support/payout-world.js';
import { until } from '../support/until.js';

/** A Redis in a folder of its own. */
async function start(dir: string, args: readonly string[] = []): Promise<LocalRedis> {
  const redis = await startLocalRedis({ dir, args });
  afterTest(async () => redis.stop());
  return redis;
}

async function untilCompleted({ producer }: PayoutWorld, count: number): Promise<void> {
  await until(`${count} payouts are completed`, async () => (await producer.stats()).completed === count);
}

describe('a Redis that speaks TLS', () => {
  it('is used with rediss://, once its authority is trusted', async () => {
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
});

describe('a Redis user with few rights', () => {
  const password = 'p@ss/w:rd#1%';

  it('is enough for producer, worker and operator, with any character in its password', async () => {
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
});

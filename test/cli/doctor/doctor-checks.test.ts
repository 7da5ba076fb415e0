import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  checkClock,
  checkRedis,
  checkRedisDurability,
  checkRedisLatency,
  checkRedisReplicas,
} from '../../../src/cli/doctor/check-redis.js';
import { checkGatewayConnection, checkGatewayCurrencies } from '../../../src/cli/doctor/check-services.js';
import { checkJournalFolder } from '../../../src/cli/doctor/check-journal.js';
import { systemClock, type Clock } from '../../../src/base/clock.js';
import { createGatewayClient } from '../../../src/gateway/gateway-client.js';
import { silentLogger } from '../../../src/base/logger.js';
import { closeRedis, connectRedis, type RedisClient } from '../../../src/base/redis.js';
import { startSandbox } from '../../../src/sandbox/index.js';
import { startMasterWithReplica } from '../../support/replicated-redis.js';
import { TEST_CERTIFICATE } from '../../sandbox/support/test-certificate.js';

let redis: RedisClient;

beforeAll(() => {
  redis = connectRedis(process.env['REDIS_URL'] ?? '', 'commands');
});

afterAll(async () => {
  await closeRedis(redis);
});

const noTrouble = (): undefined => undefined;

/** Each reading is this much later than the one before. */
function steppingClock(stepMs: number): Clock {
  let now = 0;
  return { ...systemClock, now: () => (now += stepMs) };
}

function clockAhead(byMs: number): Clock {
  return { ...systemClock, wallNow: () => Date.now() + byMs };
}

describe('checkRedis', () => {
  it.each([
    ['6.0.16', 'problem'],
    ['6.2.0', 'ok'],
    ['10.0.1', 'ok'],
  ])('judges version %s as %s', async (version, status) => {
    const other = connectRedis(process.env['REDIS_URL'] ?? '', 'commands');
    // Connecting asks for it too.
    await other.ping();
    Object.assign(other, { info: async () => Promise.resolve(`# Server\r\nredis_version:${version}\r\n`) });
    expect(await checkRedis(other, noTrouble)).toMatchObject({ status, detail: expect.stringContaining(version) });
    await closeRedis(other);
  });

  it('reports the version of the server', async () => {
    expect((await checkRedis(redis, noTrouble)).detail).toMatch(/^reachable, version \d+\.\d+\.\d+$/);
  });
});

it('reports the round trip to a distant Redis', async () => {
  expect(await checkRedisLatency(redis, steppingClock(1))).toMatchObject({
    status: 'ok',
    detail: '1.0 ms per round trip',
  });
  expect(await checkRedisLatency(redis, steppingClock(60))).toMatchObject({ status: 'warning' });
  expect(await checkRedisLatency(redis, steppingClock(600))).toMatchObject({ status: 'problem' });
});

it('accepts the settings that payouts need', async () => {
  expect(await checkRedisDurability(redis, false)).toMatchObject({ status: 'ok' });
});

describe('checkRedisReplicas', () => {
  it('requires an acknowledgement of each replica, and warns of min-replicas-to-write 0', async () => {
    const servers = await startMasterWithReplica();
    const client = connectRedis(servers.master.url, 'commands');
    try {
      expect(await checkRedisReplicas(client, undefined, false)).toMatchObject({
        status: 'ok',
        detail: '1 acknowledge every send before its request is written',
      });
      expect(await checkRedisDurability(client, false)).toMatchObject({
        status: 'warning',
        detail: expect.stringContaining('min-replicas-to-write is 0'),
      });
      servers.link.silence(['requests', 'replies']);
      await client.set('{payouts:1}:test', 'never replicated');
      expect(await checkRedisReplicas(client, undefined, false)).toMatchObject({
        status: 'problem',
        detail: 'only 0 of 1 acknowledge writes, so nothing is sent',
      });
      expect(await checkRedisReplicas(client, 0, false)).toMatchObject({
        status: 'ok',
        detail: 'none needed for a send',
      });
    } finally {
      await closeRedis(client);
      await servers.close();
    }
  });

  it('needs no acknowledgement without replicas', async () => {
    expect(await checkRedisReplicas(redis, undefined, false)).toMatchObject({ status: 'ok' });
  });
});

describe('checkClock', () => {
  it('compares with the clock of Redis', async () => {
    expect(await checkClock(systemClock, redis)).toMatchObject({ status: 'ok' });
    expect(await checkClock(clockAhead(60_000), redis)).toMatchObject({
      status: 'warning',
      detail: expect.stringMatching(/(59\.9|60\.0|60\.1) s ahead of the clock of Redis$/),
    });
    expect(await checkClock(clockAhead(-60_000), redis)).toMatchObject({
      status: 'warning',
      detail: expect.stringContaining('s behind the clock of Redis'),
    });
  });

  it('detects a clock that was never set, also without Redis', async () => {
    const neverSet = { ...systemClock, wallNow: () => 86_400_000 };
    expect(await checkClock(neverSet, undefined)).toMatchObject({
      status: 'problem',
      detail: expect.stringContaining('1970-01-02'),
    });
    expect(await checkClock(systemClock, undefined)).toMatchObject({ status: 'ok' });
  });
});

describe('checkGatewayConnection over TLS', () => {
  it('requires a trusted certificate that stays valid', async () => {
    const sandbox = await startSandbox({ accounts: [{ platformId: 1, secretKey: 'k' }], tls: TEST_CERTIFICATE });
    try {
      expect(await checkGatewayConnection(sandbox.url, systemClock)).toMatchObject({
        status: 'problem',
        detail: expect.stringContaining('self-signed certificate'),
      });
      const trusting = TEST_CERTIFICATE.cert;
      expect(await checkGatewayConnection(sandbox.url, systemClock, trusting)).toMatchObject({
        status: 'ok',
        detail: expect.stringMatching(/^reachable, TLSv1\.3, certificate valid for \d+ days$/),
      });
      const soonInvalid = clockAhead(Date.parse('2126-10-20T00:00:00Z') - Date.now());
      expect(await checkGatewayConnection(sandbox.url, soonInvalid, trusting)).toMatchObject({
        status: 'warning',
        detail: expect.stringContaining('valid for 8 days'),
      });
    } finally {
      await sandbox.close();
    }
  });
});

it('only warns if the gateway does not list its currencies', async () => {
  const sandbox = await startSandbox({
    accounts: [{ platformId: 1, secretKey: 'k' }],
    faults: [{ kind: 'reject', endpoint: 'currencies', times: 1, message: 'not now' }],
  });
  const options = { baseUrl: sandbox.url, platformId: 1, secretKey: 'k' };
  const gateway = createGatewayClient({ ...options, logger: silentLogger, clock: systemClock });
  try {
    expect(await checkGatewayCurrencies(gateway)).toMatchObject({
      status: 'warning',
      detail: expect.stringContaining('not now'),
    });
    expect(await checkGatewayCurrencies(gateway)).toMatchObject({
      status: 'ok',
      detail: expect.stringMatching(/^\d+ currencies$/),
    });
  } finally {
    gateway.close();
    await sandbox.close();
  }
});

it('detects a disk that is too slow for the journal', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'payouts-doctor-'));
  try {
    expect(await checkJournalFolder(dir, steppingClock(2))).toMatchObject({
      status: 'ok',
      detail: `${dir} is writable, synced to disk in 2.0 ms`,
    });
    expect(await checkJournalFolder(dir, steppingClock(60))).toMatchObject({ status: 'warning' });
    expect(await checkJournalFolder(dir, steppingClock(600))).toMatchObject({ status: 'problem' });
    expect(await checkJournalFolder(join(dir, 'not', 'yet'), steppingClock(2))).toMatchObject({
      status: 'ok',
      detail: expect.stringContaining('(created by the worker)'),
    });
  } finally {
    await rm(dir, { recursive: true });
  }
});

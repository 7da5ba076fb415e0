import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { systemClock, type Clock } from '../../../src/base/clock.js';
import { closeRedis, connectRedis, type RedisClient } from '../../../src/base/redis.js';
import { checkJournalFolder } from '../../../src/cli/doctor/check-journal.js';
import * as redisChecks from '../../../src/cli/doctor/check-redis.js';
import { checkGatewayConnection, checkGatewayCurrencies, checkWorker } from '../../../src/cli/doctor/check-services.js';
import { StoppedError } from '../../../src/base/errors.js';
import { startSandbox } from '../../../src/sandbox/index.js';
import { findFreePort } from '../../../src/sandbox/local-redis.js';
import { makeSelfSignedCertificate } from '../../gateway/support/self-signed-certificate.js';
import { testRedisUrl } from '../../support/account.js';
import { startMasterWithReplica } from '../../support/replicated-redis.js';
import { textWith } from '../support/cli-rig.js';

const { checkClock, checkRedis, checkRedisDurability, checkRedisLatency, checkRedisReplicas } = redisChecks;

let redis: RedisClient;
beforeAll(() => {
  redis = connectRedis(testRedisUrl(), 'commands');
});
afterAll(async () => closeRedis(redis));

/** Each reading is this much later than the one before. */
function steppingClock(stepMs: number): Clock {
  let now = 0;
  return { ...systemClock, now: () => (now += stepMs) };
}

const clockAhead = (byMs: number): Clock => ({ ...systemClock, wallNow: () => Date.now() + byMs });
const finding = (status: string, detail: RegExp | string = ''): unknown =>
  expect.objectContaining({ status, detail: textWith(detail) });

it.each([
  ['6.0.16', 'problem'],
  ['10.0.1', 'ok'],
])('judges version %s of Redis as %s', async (version, status) => {
  const other = connectRedis(testRedisUrl(), 'commands');
  // Connecting asks for it too.
  await other.ping();
  Object.assign(other, { info: async () => Promise.resolve(`# Server\r\nredis_version:${version}\r\n`) });
  expect(await checkRedis(other, () => undefined)).toEqual(finding(status, version));
  await closeRedis(other);
});

it.each([
  [1, 'ok', /^1\.0 ms per round trip$/],
  [60, 'warning', ''],
  [600, 'problem', ''],
] as const)('reports a round trip to Redis of %d ms as %s', async (stepMs, status, detail) => {
  expect(await checkRedisLatency(redis, steppingClock(stepMs))).toEqual(finding(status, detail));
});

it('requires an acknowledgement of each replica', async () => {
  const servers = await startMasterWithReplica();
  const client = connectRedis(servers.master.url, 'commands');
  const check = async (replicas?: number): Promise<unknown> => checkRedisReplicas(client, replicas, false);
  try {
    expect(await check()).toEqual(finding('ok', '1 acknowledge every send before its request is written'));
    expect(await checkRedisDurability(client, false)).toEqual(finding('warning', 'min-replicas-to-write is 0'));
    servers.link.silence(['requests', 'replies']);
    await client.set('{payouts:1}:test', 'never replicated');
    expect(await check()).toEqual(finding('problem', 'only 0 of 1 acknowledge writes, so nothing is sent'));
    expect(await check(0)).toEqual(finding('ok', 'none needed for a send'));
  } finally {
    await closeRedis(client);
    await servers.close();
  }
});

it('compares the clock with that of Redis, and detects one that was never set', async () => {
  expect(await checkClock(systemClock, redis)).toEqual(finding('ok'));
  expect(await checkClock(clockAhead(60_000), redis)).toEqual(
    finding('warning', /(59\.9|60\.\d) s ahead of the clock/),
  );
  expect(await checkClock(clockAhead(-60_000), redis)).toEqual(finding('warning', 's behind the clock of Redis'));
  const neverSet = { ...systemClock, wallNow: () => 86_400_000 };
  expect(await checkClock(neverSet, undefined)).toEqual(finding('problem', '1970-01-02'));
  expect(await checkClock(systemClock, undefined)).toEqual(finding('ok'));
});

it('requires a trusted certificate of the gateway that stays valid', async () => {
  const tls = makeSelfSignedCertificate();
  const sandbox = await startSandbox({ accounts: [{ platformId: 1, secretKey: 'k' }], tls });
  const check = async (clock: Clock, trusted?: string): Promise<unknown> =>
    checkGatewayConnection(sandbox.url, clock, trusted);
  try {
    expect(await check(systemClock)).toEqual(finding('problem', 'self-signed certificate'));
    const valid = finding('ok', /^reachable, TLSv1\.3, certificate valid for \d+ days$/);
    expect(await check(systemClock, tls.cert)).toEqual(valid);
    const soonInvalid = clockAhead(Date.parse('2049-12-23T00:00:00Z') - Date.now());
    expect(await check(soonInvalid, tls.cert)).toEqual(finding('warning', 'valid for 8 days'));
  } finally {
    await sandbox.close();
  }
});

it('only warns if the gateway does not list its currencies', async () => {
  const gateway = { currencies: async () => Promise.reject(new StoppedError('not now')) };
  expect(await checkGatewayCurrencies(gateway)).toEqual(finding('warning', 'not now'));
});

it('detects a disk that is too slow for the journal', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'payouts-doctor-'));
  const check = async (folder: string, stepMs: number): Promise<unknown> =>
    checkJournalFolder(folder, steppingClock(stepMs));
  expect(await check(dir, 2)).toEqual(finding('ok', `${dir} is writable, synced to disk in 2.0 ms`));
  expect(await check(dir, 60)).toEqual(finding('warning'));
  expect(await check(dir, 600)).toEqual(finding('problem'));
  expect(await check(join(dir, 'not', 'yet'), 2)).toEqual(finding('ok', '(created by the worker)'));
  await rm(dir, { recursive: true });
});

describe('checkWorker', () => {
  const ACCOUNT = { platformId: 7, role: 'sender', epoch: 1, paused: false, pausedReason: null, stopped: [] };
  const of = (changes: object, more: object = {}): object => ({
    ...{ ready: true, redis: 'up', accounts: [{ ...ACCOUNT, warnings: [], ...changes }], ...more },
  });

  it.each<[string, unknown, object[], string?]>([
    ['is well', of({}), [{ status: 'ok', detail: 'sender, without warnings' }]],
    ['serves on all addresses', of({ warnings: undefined }), [{ status: 'ok' }], '0.0.0.0'],
    [
      'refuses to send, and warns',
      of({ role: 'refused', reason: 'The journal is damaged.', warnings: ['One.'] }, { ready: false }),
      [
        { platformId: 7, status: 'problem', detail: 'must not send: The journal is damaged.' },
        { platformId: 7, status: 'warning', detail: 'One.' },
      ],
    ],
    [
      'has no Redis',
      of({}, { ready: false, redis: 'unavailable', accounts: [] }),
      [{ status: 'problem', detail: 'not ready: Redis is unavailable to it' }],
    ],
    ['stops', of({ role: 'stopped' }, { ready: false }), [{ status: 'problem', detail: 'not ready: it is stopping' }]],
    [
      'works for another account',
      of({ platformId: 8 }),
      [{ status: 'warning', detail: 'it works for other accounts, not for 7' }],
    ],
    ['is no worker', 'nonsense', [{ status: 'warning', detail: textWith('no worker') }]],
  ])('asks the worker, which %s', async (_, body, expected, host = '127.0.0.1') => {
    const server = createServer((__, response) => response.end(JSON.stringify(body)));
    await new Promise<void>((resolve) => server.listen(0, resolve));
    const found = await checkWorker(host, (server.address() as AddressInfo).port, [7]);
    server.close();
    server.closeAllConnections();
    expect(found).toMatchObject(expected);
  });

  it('says that none is there', async () => {
    const none = finding('warning', /no worker responds at .*ECONNREFUSED/);
    expect(await checkWorker('127.0.0.1', await findFreePort(), [7])).toEqual([none]);
  });
});

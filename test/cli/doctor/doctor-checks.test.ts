import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Queue } from 'bullmq';
import { type Clock, systemClock } from '../../../src/base/clock.js';
import { closeRedis, connectRedis, type RedisClient } from '../../../src/base/redis.js';
import { checkJournalFolder } from '../../../src/cli/doctor/check-journal.js';
import {
  checkGatewayConnection,
  checkGatewayCurrencies,
  checkKernel,
  checkWorker,
} from '../../../src/cli/doctor/check-services.js';
import * as redisChecks from '../../../src/cli/doctor/check-redis.js';
import { StoppedError } from '../../../src/base/errors.js';
import { startSandbox } from '../../../src/sandbox/index.js';
import { findFreePort } from '../../../src/sandbox/local-redis.js';
import type { JournalLine } from '../../../src/journal/journal-line.js';
import { toChainedLines } from '../../../src/journal/line-chain.js';
import { makeSelfSignedCertificate } from '../../gateway/support/self-signed-certificate.js';
import { connectLedger } from '../../../src/ledger/ledger-connection.js';
import { newPlatformId, testRedisUrl } from '../../support/account.js';
import { startMasterWithReplica } from '../../support/replicated-redis.js';
import { textWith } from '../support/cli-rig.js';
import { openAccount } from '../../../src/queues/open-account.js';
import { until } from '../../support/until.js';
import { NO_SENDER, problemOf, useDoctor, warningOf } from '../support/doctor-rig.js';
import { toCurrencyList } from '../../../src/gateway/parse-currencies.js';

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

it.each([
  [60, 'warning'],
  [600, 'problem'],
])('reports a disk that takes %d ms for an entry of the journal as %s', async (stepMs, status) => {
  expect(await checkJournalFolder(tmpdir(), steppingClock(stepMs))).toEqual(finding(status));
});

it('counts the replicas that acknowledge writes, and warns where Redis requires none', async () => {
  const servers = await startMasterWithReplica();
  const client = connectRedis(servers.master.url, 'commands');
  try {
    const connection = connectLedger(client, newPlatformId());
    const check = async (fixed: number | undefined, journaled = 0) =>
      checkRedisReplicas(connection, fixed, journaled, false);
    const acknowledged = '1 acknowledge every send before its request is written';
    expect(await check(1)).toEqual(finding('ok', acknowledged));
    expect(await check(undefined)).toEqual(finding('warning', `${acknowledged}; a Redis behind one address`));
    const missing = 'only 1 of 2 acknowledge writes, so nothing is sent';
    expect(await check(2)).toEqual(finding('problem', missing));
    expect(await check(undefined, 2)).toEqual(finding('problem', missing));
    const since = '2030-01-31T12:00:00.000Z';
    const report = { role: 'refused', startedAt: 1, at: 1, version: '1', missing: [{ name: '10.0.0.2:1', since }] };
    await client.hset(connection.keys.workers, 'host-1', JSON.stringify(report));
    await client.hset(connection.keys.ledger, 'replicas', '2', 'replicaNames', '10.0.0.1:1 10.0.0.2:1');
    expect(await check(undefined)).toMatchObject({
      detail: `only 1 of 2 acknowledge writes (not 10.0.0.1:1, 10.0.0.2:1 since ${since} at the latest), so nothing is sent`,
      fix: expect.stringMatching(/`payouts redis-replicas 1 .*replicas-missing.md/),
    });
    expect(await checkRedisDurability(client, false)).toEqual(finding('warning', 'min-replicas-to-write is 0'));
  } finally {
    await closeRedis(client);
    await servers.close();
  }
});

it('asks for the number of replicas where none is known, and Redis does not tell of all', async () => {
  const connection = connectLedger(redis, newPlatformId());
  const check = async (fixed?: number) => checkRedisReplicas(connection, fixed, 0, false);
  expect(await check()).toEqual(finding('ok', 'none known; if there may be one, set REDIS_REPLICAS'));
  expect(await check(0)).toMatchObject({ status: 'ok', detail: 'none known' });
});

it('detects a clock that was never set, also without that of Redis', async () => {
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

it('says how long nothing is sent after a crash, and warns of a kernel that makes that long', () => {
  expect(checkKernel({ retries: 6, orphanRetries: 6 }, 30_000)).toEqual(finding('ok', /56 s later/));
  const slow = checkKernel({ retries: 15, orphanRetries: 8 }, 30_000);
  expect(slow).toEqual(
    finding('warning', /15 min later \(net\.ipv4\.tcp_retries2 = 15, net\.ipv4\.tcp_orphan_retries = 8\)/),
  );
});

it('only warns if the gateway does not list its currencies', async () => {
  const check = async (list: () => Promise<never[]>): Promise<unknown> =>
    checkGatewayCurrencies({ readCurrencies: async () => toCurrencyList(await list()) });
  expect(await check(async () => Promise.reject(new StoppedError('not now')))).toEqual(finding('warning', 'not now'));
  expect(await check(async () => Promise.resolve([]))).toEqual(finding('warning', 'empty'));
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

const doctor = useDoctor();
const payout = (payoutId: string) => ({ payoutId, paymentId: 1, amount: '1', addressTo: `w-${payoutId}` });

const open = () => openAccount({ platformId: doctor.platformId, redisUrl: doctor.redis.url });

it.each(['withdraw', 'transactionstatus'])('settings on the %s queue, and its commands remove them', async (name) => {
  const queue = new Queue(name, { connection: { url: doctor.redis.url }, prefix: doctor.prefix });
  await queue.setGlobalConcurrency(5);
  await queue.setGlobalRateLimit(100, 1_000);
  await queue.pause();
  await doctor.client.set(queue.toKey('limiter'), '7');
  const found = await doctor.expectFindings(1, [problemOf(`${name} queue`, 'global concurrency of 5'), NO_SENDER]);
  for (const part of ['global rate limit (100 in 1000 ms)', 'paused', 'never expires'])
    expect(found[0]?.detail).toContain(part);
  const commands = found[0]?.fix?.matchAll(/redis-cli (HDEL|DEL) '([^']+)'((?: (?!&&)\S+)*)/g) ?? [];
  for (const [, command = '', key = '', fields = ''] of commands) {
    await doctor.client.call(command, key, ...fields.split(' ').filter((field) => field !== ''));
  }
  await doctor.expectFindings(0, [NO_SENDER]);
  await queue.rateLimit(60_000);
  await queue.close();
  await doctor.expectFindings(1, [problemOf(`${name} queue`, 'rate limited by hand for another'), NO_SENDER]);
});

it('finds payouts without a job: a warning, and beside a worker, which repairs it, a problem', async () => {
  const [account, producer] = [open(), doctor.openProducer()];
  const wait = account.queues.withdraw.toKey('wait');
  await producer.enqueueMany(['P-1', 'P-2', 'P-3', 'polled'].map(payout));
  await account.ledger.change({ payoutId: 'polled', from: 'queued', to: 'sending' });
  await account.ledger.change({ payoutId: 'polled', from: 'sending', to: 'in_progress', gatewayId: 'h' });
  // Its job has yet to be added, and its old one has yet to end: neither is missing.
  await doctor.expectFindings(0, [NO_SENDER]);
  await account.queues.removeWithdrawJob({ payoutId: 'polled' });
  await account.ledger.clearOutbox('in_progress', ['polled']);
  await doctor.client.rename(wait, 'elsewhere');
  const jobless = [warningOf('withdraw jobs', '3 of 3 payouts have no job'), warningOf('status jobs', '1 of 1')];
  await doctor.expectFindings(0, [NO_SENDER, ...jobless]);
  await doctor.client.rename('elsewhere', wait);
  await account.queues.addStatusJobs([payout('polled')], 60_000);
  const complete = /✓ withdraw jobs {12}3 jobs for 3 payouts\n.*✓ status jobs {14}1 job for 1 payout\n/;
  expect((await doctor.run()).out).toMatch(complete);
  const sender = `${doctor.prefix}:sender`;
  await doctor.client.hset(sender, { owner: 'host:1:abc', epoch: 4, beat: 17, released: 0 });
  const beating = setInterval(() => void doctor.client.hincrby(sender, 'beat', 1), 300);
  await doctor.client.del(wait);
  const { code, found } = await doctor.findings();
  clearInterval(beating);
  for (const each of [producer, account]) await each.close();
  expect([code, found]).toEqual([1, [problemOf('withdraw jobs', '3 of 3 payouts have no job')]]);
  expect(found[0]?.fix).toContain('within a minute');
});

it('payouts doctor says where the journal should be of which the ledger knows sends', async () => {
  const [dir, other] = [join(doctor.dir, 'journal'), join(doctor.dir, 'other')];
  const fileIn = (folder: string) => join(folder, `${doctor.platformId}.journal`);
  const [producer, worker] = [doctor.openProducer(), await doctor.startWorker(dir)];
  await producer.enqueue(payout('P-1'));
  await until('it is sent', async () => {
    const { queued, sending } = await producer.stats();
    return queued + sending === 0;
  });
  for (const each of [{ close: async () => worker.stop() }, producer]) await each.close();
  const missing = [problemOf('journal and ledger', 'knows a journal of this host that has sends'), NO_SENDER];
  await mkdir(other);
  const [moved] = await doctor.expectFindings(1, missing, { SEND_JOURNAL_DIR: other });
  expect(moved?.fix).toContain(`SEND_JOURNAL_DIR=${dir}`);
  await copyFile(fileIn(dir), fileIn(other));
  await doctor.expectFindings(0, [NO_SENDER]);
  expect((await doctor.run()).out).toMatch(/they agree on \d sends/);
  const [header = '', ...sent] = (await readFile(fileIn(dir), 'utf8')).trimEnd().split('\n');
  const lines = [header.replace(/"journalId":"[^"]*"/, '"journalId":"another-one"'), ...sent];
  const replaced = lines.map((line) => JSON.parse(line) as JournalLine);
  await writeFile(fileIn(dir), toChainedLines(replaced, []));
  const later = [warningOf('journal and ledger', 'began later'), NO_SENDER];
  const [began] = await doctor.expectFindings(0, later, { SEND_JOURNAL_DIR: dir });
  expect(began?.detail).toMatch(/the one before it \(\S+\) is gone/);
  await rm(dir, { recursive: true });
  const [lost] = await doctor.expectFindings(1, missing);
  expect(lost?.fix).toMatch(/Restore the file.*audit adopt-journal --account \d+ --reason WHY/);
  const known = `${doctor.prefix}:journals`;
  for (const [journalId, text] of Object.entries(await doctor.client.hgetall(known))) {
    await doctor.client.hset(known, journalId, text.replace(hostname(), 'another-host'));
  }
  await doctor.expectFindings(0, [warningOf('journal and ledger', 'the ledger has '), NO_SENDER]);
});

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { Clock } from '../../../src/base/clock.js';
import { formatTimeUtc, toIsoTime } from '../../../src/base/format.js';
import { closeRedis, connectRedis, type RedisClient } from '../../../src/base/redis.js';
import { KnownReplicas, UNNAMED } from '../../../src/ledger/known-replicas.js';
import { connectLedger } from '../../../src/ledger/ledger-connection.js';
import { startHealthServer } from '../../../src/worker/monitoring/health-server.js';
import { createWorkerMetrics } from '../../../src/worker/monitoring/worker-metrics.js';
import { RedisMonitor } from '../../../src/worker/redis-monitor.js';
import { cents, numbered } from '../../support/account.js';
import { startMasterWithReplica } from '../../support/replicated-redis.js';
import { until } from '../../support/until.js';
import { afterTest, closeAfterTest } from '../support/close-after-test.js';
import { fastClock } from '../support/job-rig.js';
import { startOwnRedis } from '../support/own-redis.js';
import { listeningLogger } from '../support/send-rig.js';
import { ask, readMetric, startWatchedWorker } from '../support/watched-worker.js';

it('/readyz says standing by, sending, paused, and stopped', async () => {
  const { url, platformId, worker, readyz } = await startWatchedWorker();
  const well = { paused: false, pausedReason: null, stopped: [], warnings: [] };
  const expectReady = async (account: object) => {
    const accounts = [{ platformId, ...well, ...account }];
    expect(await readyz()).toEqual([200, { ready: true, redis: 'up', accounts }]);
  };
  const page = (name: string) => ({ runbook: `docs/runbooks/${name}.md` });
  await expectReady({ headline: 'Waiting for a sender', ...page('worker-missing'), role: 'standby' });
  await until('the lease', () => worker.accounts[0]?.status.role === 'sender');
  await expectReady({ headline: 'Idle', role: 'sender', epoch: 1 });
  await worker.accounts[0]?.ledger.pause('an operator', 'to check it');
  const command = `payouts resume --account ${platformId} --reason WHY`;
  const stopped = [{ problem: 'paused: to check it', command }];
  const paused = { paused: true, pausedReason: 'to check it', stopped };
  await expectReady({ headline: 'Paused', ...page('paused'), role: 'sender', epoch: 1, ...paused });
  await worker.stop();
  expect(await readyz()).toMatchObject([503, { ready: false, accounts: [{ role: 'stopped' }] }]);
  expect(await ask(`${url}/healthz`)).toEqual([200, { alive: true }]);
});

it('/readyz has no character that a terminal obeys, whatever someone wrote to Redis', async () => {
  const { url, worker, readyz } = await startWatchedWorker();
  await until('the lease', () => worker.accounts[0]?.status.role === 'sender');
  const { ledger } = worker.accounts[0] ?? {};
  await ledger?.pause('an operator', 'to check it');
  const pausedReason = 'a\u009b31m\u202eb\u0085';
  await ledger?.connection.redis.hset(ledger.connection.keys.ledger, 'pausedReason', pausedReason);
  expect(await readyz()).toMatchObject([200, { accounts: [{ pausedReason }] }]);
  expect(await (await fetch(`${url}/readyz`)).text()).not.toMatch(/[\u0080-\u009f\u202a-\u202e]/);
});

it('/readyz says why a journal cannot be read', async () => {
  const prepare = async (dir: string, platformId: number) =>
    mkdir(join(dir, `${platformId}.journal`), { recursive: true });
  const { worker, readyz, metric } = await startWatchedWorker({ prepare });
  await until('the role refused', () => worker.accounts[0]?.status.role === 'refused');
  const accounts = [{ role: 'refused', reason: expect.stringMatching(/EISDIR/) }];
  expect(await readyz()).toMatchObject([503, { ready: false, redis: 'up', accounts }]);
  expect([await metric('payouts_sending_refused'), await metric('payouts_lease_held')]).toEqual([1, 0]);
});

it('pages and metrics are served while Redis is unavailable or hangs', async () => {
  const redis = closeAfterTest(await startOwnRedis());
  const { metric, readyz, url, platformId } = await startWatchedWorker({ redis });
  const account = { platform_id: String(platformId) };
  await until('the lease', async () => (await metric('payouts_lease_held')) === 1);
  const read = async () => {
    const response = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(5_000) });
    expect(response.headers.get('content-type')).toContain('text/plain; version=0.0.4');
    return response.text();
  };
  const untilUp = async () => until('Redis is back', async () => readMetric(await read(), 'payouts_redis_up') === 1);
  await untilUp();
  process.kill(redis.pid, 'SIGSTOP');
  const hung = await read();
  process.kill(redis.pid, 'SIGCONT');
  expect(readMetric(hung, 'payouts_redis_up')).toBe(0);
  expect(readMetric(hung, 'payouts_paused', account)).toBeUndefined();
  expect(readMetric(hung, 'payouts_lease_held', account)).toBe(1);
  await untilUp();

  await redis.stop();
  const accounts = [{ headline: 'Redis does not respond', paused: null, pausedReason: null }];
  expect(await readyz()).toMatchObject([503, { ready: false, redis: 'unavailable', accounts }]);
  expect(await ask(`${url}/healthz`)).toEqual([200, { alive: true }]);
  await redis.startAgain();
  await until('ready again', async () => (await readyz())[0] === 200);
});

const metrics = createWorkerMetrics({ version: '1.2.3' });
const options = { host: '127.0.0.1', port: 0, metrics, accounts: () => [] };

it('the health server is alive but not ready before the worker is, without other pages', async () => {
  const { url } = closeAfterTest(await startHealthServer(options));
  expect(await ask(`${url}/healthz`)).toEqual([200, { alive: true }]);
  expect(await ask(`${url}/readyz`)).toEqual([503, { ready: false, redis: 'unavailable', accounts: [] }]);
  expect(await (await fetch(`${url}/metrics`)).text()).toContain('\npayouts_redis_up 0\n');
  const port = Number(new URL(url).port);
  await expect(startHealthServer({ ...options, port })).rejects.toThrow(`127.0.0.1 port ${port}`);
  expect((await ask(`${url}/`))[0]).toBe(404);
  expect((await ask(`${url}/healthz`, { method: 'POST', body: 'x' }))[0]).toBe(405);
});

it('a worker counts and times sends, polls, pauses, waiting times and what is stuck', async () => {
  const { metric, enqueue, producer, sandbox, worker } = await startWatchedWorker({
    stuckAfterMs: 1_500,
    sandbox: { settleAfterMs: 4_000, failAddresses: ['failing-wallet'] },
  });
  const polls = async (result: string) => (await metric('payouts_polls_total', { result })) ?? 0;
  const age = async (state: string) => (await metric('payouts_oldest_age_seconds', { state })) ?? Number.NaN;
  await producer.enqueueMany(cents(numbered(3)));
  await until('all completed', async () => (await producer.stats()).completed === 3);
  expect(await metric('payouts_sends_total', { outcome: 'accepted' })).toBe(3);
  for (const name of ['send_duration', 'pacer_wait', 'journal_sync']) {
    // On a busy machine a begin may come too late and be repeated.
    expect(await metric(`payouts_${name}_seconds_count`)).toBeGreaterThanOrEqual(3);
    expect(await metric(`payouts_${name}_seconds_sum`)).toBeGreaterThan(0);
  }
  const reached = async (state: string) => [
    await metric(`payouts_enqueue_to_${state}_seconds_count`),
    (await metric(`payouts_enqueue_to_${state}_seconds_sum`)) ?? 0,
  ];
  const [[sentCount, sentS = 0], [completedCount, completedS = 0]] = [
    await reached('sent'),
    await reached('completed'),
  ];
  expect([sentCount, completedCount]).toEqual([3, 3]);
  // The second and the third wait for a second each, and the gateway settles after four.
  expect(sentS).toBeGreaterThan(3);
  expect(completedS).toBeGreaterThan(sentS + 3 * 3);
  expect(await metric('payouts_send_gap_seconds_bucket', { le: '1' })).toBe(0);
  expect(await metric('payouts_send_gap_seconds_sum')).toBeGreaterThanOrEqual(2.02);
  expect(await metric('payouts_polls_total', { result: 'completed' })).toBe(3);
  expect(await metric('payouts_lease_epoch')).toBe(1);

  sandbox.addFaults([{ kind: 'no-txhash', addresses: ['unknown-wallet'] }]);
  await enqueue('F', 'failing-wallet');
  await enqueue('U', 'unknown-wallet');
  sandbox.addFaults([{ kind: 'html-502', endpoint: 'transactionstatus', times: 1 }]);
  await until('a poll failed', async () => (await polls('error')) === 1);
  await until('stuck', async () => (await metric('payouts_stuck_in_progress')) === 1);
  expect(await age('in_progress')).toBeGreaterThan(1.5);
  await until('final', async () => (await polls('failed')) === 1);
  expect(await metric('payouts_stuck_in_progress')).toBe(0);

  await until('all sent', async () => (await producer.stats()).unknown === 1);
  expect(await metric('payouts_sends_total', { outcome: 'unknown' })).toBe(1);
  expect(await metric('payouts_in_state', { state: 'unknown' })).toBe(1);
  await worker.accounts[0]?.ledger.pause('an operator', 'to check it');
  expect(await metric('payouts_paused')).toBe(1);
});

const KEY = '{payouts:42}:ledger';

/** A minute of it is 100 ms. */
const quickClock = fastClock(600);
/** Nothing happens because of it. */
const patientClock: Clock = { ...quickClock, sleep: async (_ms, signal) => quickClock.sleep(1e9, signal) };

let redis: RedisClient;
let watch: RedisMonitor;
let said: string[];

function startWatch(url: string, clock = quickClock, fixed?: number) {
  redis = connectRedis(url, 'sender');
  said = [];
  const known = new KnownReplicas(redis, fixed);
  known.of(connectLedger(redis, 42));
  watch = new RedisMonitor(redis, known, clock, listeningLogger(said));
  watch.start();
  afterTest(async () => {
    await watch.stop();
    await closeRedis(redis);
  });
}

const FIRST_CONTACT = /^info first contact with this Redis/;
const shown = () => said.filter((line) => !line.startsWith('debug') && !FIRST_CONTACT.test(line));
const firstContacts = () => said.filter((line) => FIRST_CONTACT.test(line)).length;
const mayBegin = () => watch.hindrance(KEY) === undefined;
const untilMayBegin = async () => until('sends may begin', mayBegin);
const untilRefused = async (reason: RegExp) =>
  until(`refused with ${String(reason)}`, () => reason.test(watch.refusal(KEY) ?? ''));

it('settings that change stop sends within the minute, until they are right again', async () => {
  const { url } = closeAfterTest(await startOwnRedis());
  const admin = new Redis(url);
  afterTest(() => {
    admin.disconnect();
  });
  startWatch(url);
  await untilMayBegin();
  for (const [name, wrong, right, reason] of [
    ['appendonly', 'no', 'yes', /appendonly is off/],
    ['appendfsync', 'everysec', 'always', /appendfsync is everysec/],
  ] as const) {
    said.length = 0;
    await admin.config('SET', name, wrong);
    await untilRefused(reason);
    expect([watch.hindrance(KEY), watch.mayForget]).toEqual([watch.refusal(KEY), true]);
    await admin.config('SET', name, right);
    await untilMayBegin();
    expect(watch.mayForget).toBe(false);
    // With appendonly the reason changes on the way, because its first file has to be written.
    expect(new Set(shown().slice(0, -1))).toEqual(new Set(['error nothing is sent, because Redis may lose it']));
    expect(shown().at(-1)).toBe('info Redis keeps its writes again; sends may begin');
  }
});

it('a connection lets nothing begin before it was checked, each time after it broke', async () => {
  const { url } = closeAfterTest(await startOwnRedis());
  startWatch(url, { ...quickClock, sleep: async (ms, signal) => quickClock.sleep(600 * ms, signal) });
  expect(watch.hindrance(KEY)).toBe('Redis has yet to be checked');
  await untilMayBegin();
  for (let iteration = 0; iteration < 3; iteration += 1) {
    const atReady = new Promise<string | undefined>((resolve) => {
      redis.prependOnceListener('ready', () => {
        resolve(watch.hindrance(KEY));
      });
    });
    if ('stream' in redis) redis.stream.destroy();
    // The check of the connection that broke may have failed.
    expect(await atReady).toMatch(/^Redis (has yet to|cannot) be checked/);
    await until('checked again', mayBegin, 30_000);
  }
  expect(shown()).toEqual([]);
});

it('replicas that were seen are needed, also once the master has forgotten them', async () => {
  const servers = closeAfterTest(await startMasterWithReplica());
  startWatch(servers.master.url);
  await untilMayBegin();
  servers.link.silence(['requests', 'replies']);
  await redis.set('{payouts:42}:other', 'what the replica does not hear of');
  await untilRefused(/Only 0 of 1 replicas of Redis acknowledge writes/);
  servers.link.cut();
  await servers.untilReplica('gone');
  await delay(500);
  expect(watch.refusal(KEY)).toMatch(/Only 0 of 1 replicas/);
  expect(watch.mayForget).toBe(false);
  await until('it is named', () => watch.missing(KEY)[0]?.name === new URL(servers.replica.url).host);
  const [missing, ...others] = watch.missing(KEY);
  expect(others).toEqual([]);
  expect(Math.abs((missing?.since ?? 0) - quickClock.wallNow())).toBeLessThan(600 * 60_000);
  expect(watch.refusal(KEY)).toContain(
    `${missing?.name} is missing, since ${formatTimeUtc(toIsoTime(missing?.since ?? 0))}`,
  );
  servers.link.heal('never');
  await untilMayBegin();
  expect(watch.missing(KEY)).toEqual([]);
});

it('a replica that has just become silent is missed before its name is known, and since that moment', async () => {
  const servers = closeAfterTest(await startMasterWithReplica());
  startWatch(servers.master.url);
  await untilMayBegin();
  servers.link.silence(['requests', 'replies']);
  await redis.set('{payouts:42}:other', 'what the replica does not hear of');
  await until('it is missed', () => watch.missing(KEY).length === 1);
  const [{ name, since } = { name: '', since: 0 }] = watch.missing(KEY);
  expect(name).toBe(UNNAMED);
  const host = new URL(servers.replica.url).host;
  await until('it is named', () => watch.missing(KEY)[0]?.name === host);
  expect(watch.missing(KEY)).toEqual([{ name: host, since }]);
});

it('says at the first contact, once, what it took as known, unless Redis or the operator tells of all', async () => {
  const servers = closeAfterTest(await startMasterWithReplica());
  startWatch(servers.master.url);
  await untilMayBegin();
  await until('it is said', () => firstContacts() === 1);
  await watch.stop();
  await closeRedis(redis);
  // The account's number is in the ledger from then on.
  startWatch(servers.master.url);
  await untilMayBegin();
  expect(firstContacts()).toBe(0);
  await redis.del(KEY);
  await watch.stop();
  await closeRedis(redis);
  startWatch(servers.master.url, quickClock, 1);
  await untilMayBegin();
  expect(firstContacts()).toBe(0);
});

it('replicas stop sends at the first write that they do not acknowledge', async () => {
  const servers = closeAfterTest(await startMasterWithReplica());
  startWatch(servers.master.url, patientClock);
  await untilMayBegin();
  servers.link.silence(['requests', 'replies']);
  const write = await watch.writes.prepare(connectLedger(redis, 42));
  await redis.set('{payouts:42}:other', 'written');
  await expect(write.confirm()).rejects.toThrow(/only 0 of 1 replicas/);
  await untilRefused(/Only 0 of 1/);
});

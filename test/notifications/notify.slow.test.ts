import { beforeEach, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { NOTIFY_GROUP, readNotificationLag } from '../../src/ledger/reads/state-events.js';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import type { Notification } from '../../src/notifications/notification.js';
import { PayoutOperator } from '../../src/control/payout-operator.js';
import { openTestAccount, type TestAccount } from '../ledger/support/test-account.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { testRedisUrl } from '../support/account.js';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest } from '../worker/support/close-after-test.js';
import { SIGNING_SECRET, startNotify } from './support/notify-process.js';
import { startReceiver, type Receiver } from './support/receiver.js';

/** `payouts notify` as a process, with a real Redis and a real receiver. */

let account: TestAccount;
let operator: PayoutOperator;
let receiver: Receiver;

beforeEach(async () => {
  account = closeAfterTest(openTestAccount());
  operator = closeAfterTest(new PayoutOperator({ platformId: account.platformId, redisUrl: testRedisUrl() }));
  receiver = closeAfterTest(await startReceiver());
});

async function start(env: Record<string, string> = {}, url = `${receiver.url}/hook/hunter2`) {
  const started = await startNotify(testRedisUrl(), account.platformId, url, env);
  afterTest(async () => {
    started.kill('SIGKILL');
    await started.result;
  });
  await until('the group exists', async () => (await lag()) !== undefined);
  return started;
}

const lag = async () => readNotificationLag(account.connection);

const sentTo = ({ received }: Receiver) => received.map(({ body }) => JSON.parse(body) as Notification);

const enqueue = async (payoutId: string) => account.ledger.enqueue([aPayout(payoutId)]);

/** A pause and what ends it: two events. */
async function pause(reason: string) {
  await operator.pause({ by: 'alice', reason });
  await operator.resume({ by: 'alice', reason });
}

it('posts the chosen events from its first start on, in order', async () => {
  await pause('before');
  const notify = await start();
  await enqueue('P-1');
  await operator.cancel('P-1', { by: 'alice', reason: 'not chosen' });
  await pause('after');
  await until('both arrived', () => receiver.received.length === 2);
  expect(sentTo(receiver).map(({ type, reason }) => [type, reason])).toEqual([
    ['paused', 'after'],
    ['resumed', 'after'],
  ]);
  await until('nothing waits', async () => (await lag()) === 0);
  await enqueue('P-2');
  await until('what was not chosen does not wait either', async () => (await lag()) === 0);
  expect((await notify.read('/readyz')).body).toContain('"delivers":true');
  const { body } = await notify.read('/metrics');
  expect(body).toContain(`payouts_notifications_delivered_total{platform_id="${account.platformId}"} 2`);
  // It posts what happened while no process ran, too.
  notify.kill('SIGTERM');
  expect(await notify.result).toMatchObject({ code: 0 });
  await pause('meanwhile');
  expect(await lag()).toBeGreaterThan(0);
  await start();
  await until('both arrived', () => receiver.received.length === 4);
});

it('delivers again what a killed process had in hand', async () => {
  const first = await start();
  receiver.respond = (_received, response) => {
    first.kill('SIGKILL');
    setTimeout(() => void response.writeHead(204).end(), 100);
  };
  await pause('ticket 7');
  await first.result;
  expect(sentTo(receiver).map(({ type }) => type)).toEqual(['paused']);
  receiver.respond = (_received, response) => void response.writeHead(204).end();
  await start();
  // As long as the group waits for a consumer that is silent, and a little more.
  await until('all arrived', () => receiver.received.length === 3, 60_000);
  const [id, again] = sentTo(receiver).map((each) => each.id);
  expect(sentTo(receiver).map(({ type }) => type)).toEqual(['paused', 'paused', 'resumed']);
  expect(again).toBe(id);
});

it('retries what is refused with growing waits, keeps the order, and says so', async () => {
  const port = await findFreePort();
  const notify = await start({}, `http://127.0.0.1:${port}`);
  await pause('ticket 7');
  await until('it says that it waits', async () => (await notify.read('/readyz')).status === 503);
  expect((await notify.read('/metrics')).body).toMatch(/payouts_notifications_failing\{.*\} 1/);
  const late = await startReceiver(port);
  const times: number[] = [];
  late.respond = (_received, response) => {
    times.push(performance.now());
    response.writeHead(times.length < 4 ? 401 : 204).end();
  };
  await until('all arrived', () => times.length === 5);
  const gaps = times.slice(1, 4).map((time, index) => time - (times[index] ?? 0));
  for (const [index, lowest] of [800, 1_600, 3_200].entries()) expect(gaps[index]).toBeGreaterThanOrEqual(lowest);
  const sent = sentTo(late);
  expect(sent.map(({ type }) => type)).toEqual([...Array<string>(4).fill('paused'), 'resumed']);
  expect(new Set(sent.map(({ id }) => id)).size).toBe(2);
  await late.close();
});

it('has a heartbeat that stands still while it can read no events, and comes back', async () => {
  const notify = await start();
  const heartbeatAge = async () => {
    const { body } = await notify.read('/metrics');
    return Number(/^payouts_notifications_heartbeat_age_seconds\{.*\} (\S+)$/m.exec(body)?.[1]);
  };
  const { redis, keys } = account.connection;
  // A read that finds nothing takes five seconds.
  expect(await heartbeatAge()).toBeLessThan(7);
  await redis.rename(keys.events, `${keys.events}:aside`);
  await redis.set(keys.events, 'altered');
  await until('nothing was read for long', async () => (await heartbeatAge()) > 9);
  await redis.rename(`${keys.events}:aside`, keys.events);
  await until('it reads again', async () => (await heartbeatAge()) < 6);
  await pause('after');
  await until('both arrived', () => receiver.received.length === 2);
});

it('shows neither its secret nor the path of its URL in log, metrics or Redis', async () => {
  const notify = await start({ LOG_LEVEL: 'trace' });
  receiver.respond = () => undefined;
  await pause('ticket 7');
  await until('it timed out', async () => (await notify.read('/readyz')).body.includes('within 1000 ms'));
  const said = [(await notify.read('/readyz')).body, (await notify.read('/metrics')).body];
  notify.kill('SIGTERM');
  const { stdout, stderr } = await notify.result;
  const redis = new Redis(testRedisUrl());
  const keys = await redis.keys(`{payouts:${account.platformId}}*`);
  const stored = await Promise.all(keys.map(async (key) => (await redis.dumpBuffer(key)).toString('latin1')));
  const group = JSON.stringify(await redis.xinfo('CONSUMERS', account.connection.keys.events, NOTIFY_GROUP));
  redis.disconnect();
  expect(stderr).toContain('notification not delivered');
  const everything = [...said, stdout, stderr, ...stored, group].join('\n');
  expect(everything).not.toContain('hunter2');
  expect(everything).not.toContain(SIGNING_SECRET);
});

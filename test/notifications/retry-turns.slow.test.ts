import { beforeEach, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/logger.js';
import { startNotifyGroup } from '../../src/ledger/reads/state-events.js';
import { runNotifier } from '../../src/notifications/start-notifier.js';
import type { Notification } from '../../src/notifications/notification.js';
import { RetryTurns } from '../../src/notifications/retry-turns.js';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { openTestAccount, type TestAccount } from '../ledger/support/test-account.js';
import { testRedisUrl } from '../support/account.js';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest } from '../worker/support/close-after-test.js';
import { startReceiver, type Respond } from './support/receiver.js';

/** What waits for a receiver that was down goes on soon after it is back. */

/** Far below the wait that a refused notification reaches. */
const SOON_MS = 8_000;

let accounts: readonly TestAccount[];

beforeEach(async () => {
  accounts = [1, 2, 3].map(() => closeAfterTest(openTestAccount()));
  for (const { connection } of accounts) await startNotifyGroup(connection);
});

function notify(url: string) {
  const stop = new AbortController();
  const attempts = new Map<number, number>();
  const count = (id: number) => void attempts.set(id, (attempts.get(id) ?? 0) + 1);
  const running = runNotifier(
    testRedisUrl(),
    accounts.map(({ platformId }) => platformId),
    {
      receiver: { url, format: 'slack' },
      ...{ events: 'queued', timeoutMs: 1_000, logger: silentLogger, registry: new Registry(), stuckAfterMs: 1e9 },
      observe: (id) => ({
        worked: () => undefined,
        delivered: () => undefined,
        failed: () => {
          count(id);
        },
      }),
    },
    stop.signal,
  );
  afterTest(async () => {
    stop.abort();
    await running;
  });
  return () => [...attempts.values()].reduce((sum, each) => sum + each, 0);
}

const enqueueFor = async (count: number) => {
  for (const { ledger } of accounts.slice(0, count)) await ledger.enqueue([aPayout('P-1')]);
};

const textsOf = (received: readonly { readonly body: string }[]) =>
  received.map(({ body }) => (JSON.parse(body) as Pick<Notification, 'text'>).text);

it.each<[string, Respond | undefined]>([
  ['does not listen', undefined],
  ['answers with HTTP 503', (_received, response) => void response.writeHead(503).end()],
])('while the receiver %s, it is tried once a second, and all goes on soon after it is back', async (_, respond) => {
  const port = await findFreePort();
  const down = respond && (await startReceiver(port));
  if (down !== undefined && respond !== undefined) down.respond = respond;
  const attempts = notify(`http://127.0.0.1:${port}/hook`);
  await enqueueFor(1);
  await until('it was tried', () => attempts() >= 1);
  const [before, startedAt] = [attempts(), performance.now()];
  // Seven tries of doubling waits take more than two minutes.
  await until('it was tried again', () => attempts() >= before + 7);
  const elapsedS = (performance.now() - startedAt) / 1_000;
  expect(attempts() - before).toBeLessThanOrEqual(elapsedS + 2);
  await enqueueFor(3);
  await down?.close();
  const receiver = closeAfterTest(await startReceiver(port));
  const backAt = performance.now();
  await until('all arrived', () => receiver.received.length === 3);
  expect(performance.now() - backAt).toBeLessThan(SOON_MS);
  expect(new Set(textsOf(receiver.received)).size).toBe(3);
});

it('what was refused waits longer and longer, but not after a delivery of another account', async () => {
  let refuses = true;
  const receiver = closeAfterTest(await startReceiver());
  receiver.respond = (_received, response) => void response.writeHead(refuses ? 401 : 204).end();
  const attempts = notify(`${receiver.url}/hook`);
  const [first, second] = accounts;
  await first?.ledger.enqueue([aPayout('P-1')]);
  await until('it waits for eight seconds', () => attempts() === 4, 30_000);
  const tried = receiver.received.length;
  refuses = false;
  const changedAt = performance.now();
  await second?.ledger.enqueue([aPayout('P-1')]);
  await until('both arrived', () => receiver.received.length === tried + 2);
  // Within the 6.4 s that its own wait has at least.
  expect(performance.now() - changedAt).toBeLessThan(6_000);
});

it('Retry-After is waited for, whatever arrives elsewhere', async () => {
  const receiver = closeAfterTest(await startReceiver());
  const [first, second] = accounts;
  receiver.respond = (received, response) => {
    if (!received.body.includes(`Account ${first?.platformId}:`)) response.writeHead(204).end();
    else response.writeHead(429, { 'retry-after': '60' }).end();
  };
  const attempts = notify(`${receiver.url}/hook`);
  await first?.ledger.enqueue([aPayout('P-1')]);
  await until('it was told to wait', () => attempts() === 1);
  await second?.ledger.enqueue([aPayout('P-1')]);
  await until('the other arrived', () => receiver.received.length === 2);
  await systemClock.sleep(2_500);
  expect(receiver.received).toHaveLength(2);
});

it('turns are a second apart, from now on after a delivery', () => {
  let now = 0;
  const turns = new RetryTurns({ ...systemClock, now: () => now });
  expect([turns.takeTurn(), turns.takeTurn(), turns.takeTurn()]).toEqual([1_000, 2_000, 3_000]);
  now = 500;
  turns.delivered();
  expect(turns.takeTurn()).toBe(1_000);
  now = 60_000;
  expect(turns.takeTurn()).toBe(1_000);
});

import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { connectLedger } from '../../src/ledger/ledger-connection.js';
import { orderIdOf } from '../../src/ledger/order-id.js';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import { runCli } from '../support/cli.js';
import { TEST_AUDIENCE } from '../control/support/keys.js';
import { until } from '../support/until.js';
import { afterTest } from './support/close-after-test.js';
import {
  expectPace,
  openWorkerIn,
  type PayoutWorld,
  untilLeased,
  untilSent,
  untilSettled,
  worldOfTest,
} from './support/payout-world.js';

/** Payouts from end to end over the second generation of the API. */

const V2 = { api: 'v2' } as const;
const ENVIRONMENT = { GATEWAY_API: 'v2' };

/** The order ids of the attempts that the ledger has recorded. */
async function recordedOrderIds({ redisUrl, platformId }: PayoutWorld, payoutId: string) {
  const redis = connectRedis(redisUrl, 'commands');
  afterTest(async () => closeRedis(redis));
  const tokens = (await redis.hget(connectLedger(redis, platformId).keys.payout(payoutId), 'tokens')) ?? '';
  return tokens.split(' ').map((token, index) => orderIdOf({ payoutId, attempt: index + 1, token }));
}

const stateOf = async ({ producer }: PayoutWorld, payoutId: string) => (await producer.get(payoutId))?.state;

async function untilState(world: PayoutWorld, payoutId: string, state: string) {
  await until(`${payoutId} is ${state}`, async () => (await stateOf(world, payoutId)) === state);
}

it('pays, follows and completes, with an order id of each attempt that tells nothing of the payout', async () => {
  const world = await worldOfTest();
  const payoutIds = await world.enqueue(3);
  await openWorkerIn(world, {}, V2);
  await untilSettled(world, 3);
  const { sandbox, producer } = world;
  expect(await producer.stats()).toMatchObject({ completed: 3, unknown: 0 });
  expectPace(sandbox);
  const paid = sandbox.payments();
  expect(new Set(paid.map(({ orderId }) => orderId)).size).toBe(3);
  for (const [index, payoutId] of payoutIds.entries()) {
    expect(await recordedOrderIds(world, payoutId)).toEqual([paid[index]?.orderId]);
    expect(paid[index]?.orderId).toMatch(/^[0-9a-f]{32}$/);
  }
});

it.each(['drop-after', 'no-txhash'] as const)(
  'a payout whose response is not clear (%s) is unknown, is not sent again, and can be found by its order id',
  async (kind) => {
    const world = await worldOfTest({ sandbox: { faults: [{ kind, times: 1 }] } });
    const [payoutId = ''] = await world.enqueue(1);
    await openWorkerIn(world, {}, { ...V2, inFlightMaxMs: 100 });
    await untilState(world, payoutId, 'unknown');
    await world.enqueue(1, 'next');
    await untilSettled(world, 2);
    const [payment, ...others] = world.sandbox.payments();
    expect(others).toHaveLength(1);
    expect(await recordedOrderIds(world, payoutId)).toEqual([payment?.orderId]);
    expect(await stateOf(world, payoutId)).toBe('unknown');
    expectPace(world.sandbox);
  },
);

it('a payout of a worker that was killed within its send is unknown, and is paid once', async () => {
  const world = await worldOfTest({ sandbox: { faults: [{ kind: 'hang', times: 1 }] } });
  const [payoutId = ''] = await world.enqueue(1);
  const worker = world.startWorker({ environment: ENVIRONMENT });
  await untilSent(world, 1);
  worker.kill('SIGKILL');
  await worker.ended;
  await untilLeased(world.startWorker({ environment: ENVIRONMENT }));
  await untilState(world, payoutId, 'unknown');
  expect(world.sandbox.payments()).toHaveLength(1);
  expect(await recordedOrderIds(world, payoutId)).toEqual([world.sandbox.payments()[0]?.orderId]);
});

it('a block pauses the account, a rejection does not', async () => {
  const world = await worldOfTest({
    sandbox: { faults: [{ kind: 'reject', message: 'minimum amount is 10', times: 1 }] },
  });
  const [rejected = '', ...later] = await world.enqueue(3);
  await openWorkerIn(world, {}, V2);
  await untilState(world, rejected, 'rejected');
  await until('the next one is paid', () => world.sandbox.payments().length === 1);
  world.sandbox.setFaults([{ kind: 'block' }]);
  await until('it is paused', async () => (await world.producer.stats()).pausedReason !== null);
  expect((await world.producer.stats()).pausedReason).toMatch(/looks like a block: account blocked/);
  expect(world.sandbox.payments()).toHaveLength(1);
  expect(await Promise.all(later.map(async (payoutId) => stateOf(world, payoutId)))).not.toContain('unknown');
});

it.each([
  [V2, 1_000, 1_112],
  [{}, 0, 1_000],
])('of the polls of %j a tenth is left to look-ups', async (account, least, most) => {
  const world = await worldOfTest({ sandbox: { settleAfterMs: 60_000 } });
  await world.enqueue(1);
  await openWorkerIn(world, {}, { ...account, pollRate: 1 });
  const redis = connectRedis(world.redisUrl, 'commands');
  afterTest(async () => closeRedis(redis));
  const { prefix } = connectLedger(redis, world.platformId).keys;
  let longestMs = 0;
  const endsAt = performance.now() + 5_000;
  while (performance.now() < endsAt) {
    longestMs = Math.max(longestMs, await redis.pttl(`${prefix}:transactionstatus:limiter`));
    await delay(5);
  }
  expect(longestMs).toBeGreaterThan(least);
  expect(longestMs).toBeLessThanOrEqual(most);
});

it('an account file may choose the API of each account', async () => {
  const world = await worldOfTest();
  const { platformId } = world;
  const environment = await world.writeAccounts([{ platformId, api: 'v2' }]);
  await world.enqueue(1);
  world.startWorker({ environment });
  await untilSettled(world, 1);
  expect(world.sandbox.payments()[0]).toHaveProperty('orderId');
});

it('an account moves to v2 once nothing is under way; then v1 refuses', async () => {
  // The payment is under way for as long as no status is told.
  const world = await worldOfTest({ sandbox: { faults: [{ kind: 'reject', endpoint: 'transactionstatus' }] } });
  const { sandbox } = world;
  const [payoutId = ''] = await world.enqueue(1);
  const first = world.startWorker();
  await untilState(world, payoutId, 'in_progress');
  const second = world.startWorker({ environment: ENVIRONMENT, journalDir: join(world.dir, 'journal-v2') });
  await until('v2 says whose payouts these are', async () => {
    const { status, body } = await second.get('/readyz').catch(() => ({ status: 0, body: '' }));
    return status === 503 && body.includes(`pays at \\"${TEST_AUDIENCE} (v2)\\"`);
  });
  const env = { ...world.env, GATEWAY_BASE_URL: sandbox.url, ...ENVIRONMENT };
  const move = async () => runCli(['adopt-ledger', '--gateway', '--reason', 'v2', '--yes', '--json'], { env });
  const refused = await move();
  expect(refused.stderr).toContain('Nothing was changed: payouts are sending, in_progress, unknown');
  expect(refused.code).not.toBe(0);
  expect(await stateOf(world, payoutId)).toBe('in_progress');

  sandbox.setFaults([]);
  await untilState(world, payoutId, 'completed');
  first.kill('SIGTERM');
  await first.ended;
  const moved = await move();
  expect(JSON.parse(moved.stdout)).toEqual({ audience: `${TEST_AUDIENCE} (v2)`, before: TEST_AUDIENCE, changed: true });
  await world.enqueue(1, 'Q');
  await untilSettled(world, 2);
  expect(sandbox.payments().map((payment) => 'orderId' in payment)).toEqual([false, true]);
  await world.startWorker().said('the ledger is of another gateway');
  expectPace(sandbox);
});

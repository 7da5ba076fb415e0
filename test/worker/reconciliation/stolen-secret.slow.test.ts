import { describe, expect, it } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../../../src/base/clock.js';
import { createGatewayClient } from '../../../src/gateway/gateway-client.js';
import { readActivity, type Activity } from '../../../src/ledger/reads/activity.js';
import { connectLedger } from '../../../src/ledger/ledger-connection.js';
import { readReconciliation, type ReconciledBalance } from '../../../src/ledger/reads/reconciliation.js';
import { silentLogger } from '../../../src/base/logger.js';
import { closeRedis, connectRedis } from '../../../src/base/redis.js';
import { until } from '../../support/until.js';
import {
  closeAfterTest,
  startWatchedWorker,
  WATCHED_SECRET_KEY,
  type WatchedWorker,
} from '../support/watched-worker.js';

/** The whole worker, a sandbox gateway, a real Redis, and someone else with the same secret key. */

const FAILING = 'wallet-failsxxxxxxxxxxxxxxxxxxxxxx';
/** The sandbox has 10¹² USD; a thousandth is tolerated. */
const STOLEN_BTC = '100000';

async function startReconciling(account: object = {}): Promise<WatchedWorker> {
  return startWatchedWorker({
    account: { balanceEveryMs: 200, maxUnknownsInARow: 5, ...account },
    sandbox: { failAddresses: [FAILING] },
  });
}

function watch({ platformId }: WatchedWorker): () => Promise<ReconciledBalance | undefined> {
  const redis = connectRedis(process.env['REDIS_URL'] ?? '', 'commands');
  closeAfterTest({ close: async () => closeRedis(redis) });
  const connection = connectLedger(redis, platformId);
  return async () => (await readReconciliation(connection)).reconciliation?.balances[0];
}

async function activities({ platformId }: WatchedWorker): Promise<readonly Activity[]> {
  const redis = connectRedis(process.env['REDIS_URL'] ?? '', 'commands');
  closeAfterTest({ close: async () => closeRedis(redis) });
  return (await readActivity(connectLedger(redis, platformId), 1)).activities;
}

async function steal({ platformId, sandbox }: WatchedWorker): Promise<void> {
  // Not at the same time as the worker, or the gateway blocks the account.
  await delay(1_100);
  const baseUrl = sandbox.url;
  const thief = createGatewayClient({
    ...{ baseUrl, platformId, secretKey: WATCHED_SECRET_KEY, logger: silentLogger, clock: systemClock },
  });
  const request = { paymentId: 1, amount: STOLEN_BTC, addressTo: 'wallet-thiefxxxxxxxxxxxxxxxxxxxxxx' };
  const outcome = await thief.withdraw(request);
  expect(outcome.kind).toBe('accepted');
  thief.close();
}

async function untilJudged(read: ReturnType<typeof watch>): Promise<void> {
  await until('the balance is judged', async () => (await read())?.unexplained !== undefined);
}

describe('a worker that compares the balance', () => {
  it('explains what it sent, also failed and unknown payouts; finds what someone else took, and tells', async () => {
    const world = await startReconciling();
    const read = watch(world);
    await world.enqueue('P-1');
    await world.enqueue('P-2', FAILING);
    await until('both have ended', async () => {
      const { completed, failed } = await world.producer.stats();
      return completed + failed === 2;
    });
    world.sandbox.setFaults([{ kind: 'drop-after', times: 1, endpoint: 'withdraw' }]);
    await world.enqueue('P-3');
    await until('it is unknown', async () => (await world.producer.stats()).unknown === 1);
    await untilJudged(read);
    await delay(3_000);
    expect(await read()).toMatchObject({ unexplained: '0', isSuspected: false });
    expect(await world.metric('payouts_balance_unexplained', { currency: 'USD' })).toBe(0);
    expect(await world.producer.stats()).toMatchObject({ paused: false });

    await steal(world);
    const stolenAt = performance.now();
    await until('it is found', async () => (await read())?.drop !== undefined);
    // Two readings, one a second; and a busy machine.
    expect(performance.now() - stolenAt).toBeLessThan(15_000);
    // What failed and what is unknown could have taken more than it did.
    const found = Number((await read())?.drop?.amount);
    expect(found).toBeGreaterThan(100_000 * 64_250.5 - 5_000);
    expect(found).toBeLessThanOrEqual(100_000 * 64_250.5);
    expect(await world.metric('payouts_balance_unexplained', { currency: 'USD' })).toBe(found);
    const activity = await activities(world);
    expect(activity[0]?.reason).toMatch(/^the balance fell by 6,425,0\S+ USD more than the payouts explain$/);
    expect(await world.producer.stats()).toMatchObject({ paused: false });
  });

  it('does not stop the account, also with the setting that did', async () => {
    const world = await startReconciling({ pauseOnUnexplainedDrop: true });
    const read = watch(world);
    await untilJudged(read);
    await steal(world);
    await until('it is found', async () => (await read())?.drop !== undefined);
    expect(await world.producer.stats()).toMatchObject({ paused: false });
    await world.enqueue('P-1');
    await until('payouts continue', async () => (await world.producer.stats()).completed === 1);
  });
});

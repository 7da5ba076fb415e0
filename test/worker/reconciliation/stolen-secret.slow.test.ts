import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { systemClock } from '../../../src/base/clock.js';
import { silentLogger } from '../../../src/base/logger.js';
import { createGatewayClient } from '../../../src/gateway/gateway-client.js';
import { readActivity } from '../../../src/ledger/reads/activity.js';
import { readReconciliation, type ReconciledBalance } from '../../../src/ledger/reads/reconciliation.js';
import { openTestAccount } from '../../ledger/support/test-account.js';
import { until } from '../../support/until.js';
import { closeAfterTest, startWatchedWorker, WATCHED_SECRET_KEY as secretKey } from '../support/watched-worker.js';

/** The whole worker, a sandbox gateway, a real Redis, and someone else with the same secret key. */

const FAILING = 'wallet-failsxxxxxxxxxxxxxxxxxxxxxx';
/** The sandbox has 10¹² USD; a thousandth is tolerated. */
const STOLEN_BTC = '100000';
const STOLEN_USD = 100_000 * 64_250.5;

it('explains what it sent, also failed and unknown payouts; finds and tells what someone else took, and sends on', async () => {
  const watched = await startWatchedWorker({
    // The setting that once stopped the account does not.
    account: { balanceEveryMs: 200, maxUnknownsInARow: 5, pauseOnUnexplainedDrop: true },
    sandbox: { failAddresses: [FAILING] },
  });
  const { platformId, sandbox, producer, metric } = watched;
  const { connection } = closeAfterTest(openTestAccount(platformId));
  const read = async (): Promise<ReconciledBalance | undefined> =>
    (await readReconciliation(connection)).reconciliation?.balances[0];
  const unexplained = async (): Promise<unknown> => metric('payouts_balance_unexplained', { currency: 'USD' });
  await watched.enqueue('P-1');
  await watched.enqueue('P-2', FAILING);
  await until('both have ended', async () => {
    const { completed, failed } = await producer.stats();
    return completed + failed === 2;
  });
  sandbox.setFaults([{ kind: 'drop-after', times: 1, endpoint: 'withdraw' }]);
  await watched.enqueue('P-3');
  await until('it is unknown', async () => (await producer.stats()).unknown === 1);
  await until('the balance is judged', async () => (await read())?.unexplained !== undefined);
  await delay(3_000);
  expect(await read()).toMatchObject({ unexplained: '0', isSuspected: false });
  expect(await unexplained()).toBe(0);

  // Not at the same time as the worker, or the gateway blocks the account.
  await delay(1_100);
  const options = { baseUrl: sandbox.url, platformId, secretKey, logger: silentLogger, clock: systemClock };
  const thief = createGatewayClient(options);
  const request = { paymentId: 1, amount: STOLEN_BTC, addressTo: 'wallet-thiefxxxxxxxxxxxxxxxxxxxxxx' };
  expect((await thief.withdraw(request)).kind).toBe('accepted');
  thief.close();
  // Two readings, one a second; and a busy machine.
  await until('it is found', async () => (await read())?.drop !== undefined, 15_000);
  // What failed and what is unknown could have taken more than it did.
  const found = Number((await read())?.drop?.amount);
  expect(found).toBeGreaterThan(STOLEN_USD - 5_000);
  expect(found).toBeLessThanOrEqual(STOLEN_USD);
  expect(await unexplained()).toBe(found);
  const { activities } = await readActivity(connection, 1);
  expect(activities[0]?.reason).toMatch(/^the balance fell by 6,425,0\S+ USD more than the payouts explain$/);
  expect(await producer.stats()).toMatchObject({ paused: false });
  await watched.enqueue('P-4');
  await until('payouts continue', async () => (await producer.stats()).completed === 2);
});

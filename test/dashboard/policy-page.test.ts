import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { writePolicyReport, type PolicyReport } from '../../src/ledger/reads/policy-report.js';
import { openDashboard, type RunningDashboard } from './support/running-dashboard.js';
import { openSampleAccount, type SampleAccount } from './support/sample-account.js';

let account: SampleAccount;
let dashboard: RunningDashboard;

beforeAll(async () => {
  account = await openSampleAccount();
  dashboard = await openDashboard(account);
});

afterAll(async () => {
  await dashboard.close();
  await account.close();
});

function report(at: number): PolicyReport {
  const rule = { unit: 'usd', limit: '1000.00', withinMs: 86_400_000, unknown: null } as const;
  return {
    ...{ hash: 'f'.repeat(64), at, ratesAt: at - 30_000, ratesMissingSince: null },
    rules: [
      { ...rule, rule: 'day', per: null, buckets: [{ bucket: '', spent: '905.50', wanted: '200.00', ratio: 0.9055 }] },
      {
        ...rule,
        rule: 'wallet',
        per: 'address',
        buckets: [{ bucket: '<b>', spent: '10.00', wanted: '0.00', ratio: 0.01 }],
      },
    ],
    held: [{ rule: 'day', reason: 'wait', count: 2 }],
  };
}

it('says that there is no policy where no worker has told of one', async () => {
  expect(await dashboard.read('/policy')).toContain('PAYOUT_POLICY_FILE');
});

it('shows how much of each window is used, and what is held', async () => {
  await writePolicyReport(account.ledger.connection, report(Date.now()));
  const page = await dashboard.read('/policy');
  expect(page).toContain('aria-label="day: 91 % used"');
  expect(page).toContain('905.50 of 1,000.00 USD in 24 h');
  expect(page).toContain('200.00 USD');
  expect(page).toContain('&lt;b&gt;');
  expect(page).not.toContain('<b>');
  expect(page).toMatch(/href="\/held\?kind=policy&amp;rule=day&amp;reason=wait"\s*>2 payouts<\/a\s*>\s*by day/);
  expect(page).not.toContain('no worker with a policy sends now');
});

it('says so where the worker that told it has stopped', async () => {
  await writePolicyReport(account.ledger.connection, report(Date.now() - 120_000));
  expect(await dashboard.read('/policy')).toContain('no worker with a policy sends now');
});

it('takes what someone put in its place for none', async () => {
  const { redis, keys } = account.ledger.connection;
  await redis.set(keys.policy, '{"rules":"<script>"}');
  expect(await dashboard.read('/policy')).toContain('PAYOUT_POLICY_FILE');
});

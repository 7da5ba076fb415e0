import { expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import type { PolicyReport } from '../../../src/ledger/reads/policy-report.js';
import { createPolicyGauges, setPolicyGauges } from '../../../src/worker/monitoring/account-gauges.js';
import { readMetric } from '../support/watched-worker.js';

const HASH = 'a'.repeat(64);
const NOW = 1_000_000;
const RULE = { unit: 'amount', limit: '10', withinMs: 1_000, per: null, unknown: null } as const;
const REPORT: PolicyReport = {
  ...{ hash: HASH, at: NOW, ratesAt: NOW - 20_000, ratesMissingSince: null },
  rules: [
    { ...RULE, rule: 'day', buckets: [{ bucket: '', spent: '9', wanted: '2', ratio: 0.9 }] },
    { ...RULE, rule: 'wallet', per: 'address', buckets: [] },
  ],
  held: [
    { rule: 'day', reason: 'wait', count: 3 },
    { rule: 'denied', reason: 'refuse', count: 1 },
  ],
};

async function metricsOf(
  policy: { hash: string; reloadTrouble: string | undefined } | undefined,
  report: PolicyReport | undefined,
): Promise<(name: string, labels?: Readonly<Record<string, string>>) => number | undefined> {
  const registry = new Registry();
  setPolicyGauges(createPolicyGauges(registry), { platformId: 7, policy }, report, NOW);
  const text = await registry.metrics();
  return (name, labels = {}) => readMetric(text, name, { platform_id: '7', ...labels });
}

it('tell of the policy, its windows, what it holds and the age of the rates', async () => {
  const metric = await metricsOf({ hash: HASH, reloadTrouble: undefined }, REPORT);
  expect(metric('payouts_policy_info', { hash: HASH })).toBe(1);
  expect(metric('payouts_policy_reload_failed')).toBe(0);
  expect(metric('payouts_policy_usage_ratio', { rule: 'day' })).toBe(0.9);
  expect(metric('payouts_policy_usage_ratio', { rule: 'wallet' })).toBe(0);
  expect(metric('payouts_held', { rule: 'day', kind: 'wait' })).toBe(3);
  expect(metric('payouts_held', { rule: 'denied', kind: 'refuse' })).toBe(1);
  expect(metric('payouts_rate_age_seconds')).toBe(20);
});

it('tell of a file that could not be read again, also where no worker has told of windows', async () => {
  const metric = await metricsOf({ hash: HASH, reloadTrouble: 'is no YAML' }, undefined);
  expect(metric('payouts_policy_reload_failed')).toBe(1);
  expect(metric('payouts_policy_usage_ratio', { rule: 'day' })).toBeUndefined();
  expect(metric('payouts_rate_age_seconds')).toBeUndefined();
});

it('tell nothing of an account without a policy', async () => {
  const metric = await metricsOf(undefined, REPORT);
  expect(metric('payouts_policy_reload_failed')).toBeUndefined();
  expect(metric('payouts_held', { rule: 'day', kind: 'wait' })).toBeUndefined();
});

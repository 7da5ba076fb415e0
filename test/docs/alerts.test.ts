import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { alertRules as rules } from './support/alert-rules.js';
import { HEADLINES } from '../../src/operator/account-headline.js';
import { exportAccounts } from '../../src/operator/account-gauges.js';
import { createLoginMetrics } from '../../src/dashboard/login.js';
import { createWorkerMetrics } from '../../src/worker/monitoring/worker-metrics.js';

/** Every series of a worker with one account, and of a dashboard, by name; the gauges of the account are known by their name alone. */
async function seriesOfWorker(): Promise<string> {
  const metrics = createWorkerMetrics({ version: '1.2.3' });
  metrics.observe(1);
  const { registry } = createLoginMetrics();
  exportAccounts(registry, 'dashboard', () => [], 1);
  return `${await metrics.registry.metrics()}${await registry.metrics()}`;
}

function metricsIn(expr: string): string[] {
  return expr.match(/\bpayouts_[a-z_]+/g) ?? [];
}

describe.each(rules)('$alert', ({ expr, labels, annotations }) => {
  it('names metrics that exist', async () => {
    const text = await seriesOfWorker();
    const names = metricsIn(expr);
    expect(names).not.toEqual([]);
    for (const name of names) {
      const metric = name.replace(/_(bucket|sum|count)$/, '');
      expect(text).toMatch(new RegExp(`^# TYPE ${metric} ${metric === name ? '(counter|gauge)' : 'histogram'}$`, 'm'));
    }
  });

  it('has a severity, a summary and an action', () => {
    expect(labels.severity).toMatch(/^(critical|warning)$/);
    expect(annotations.summary).toMatch(/\.$/);
    expect(annotations.action).toMatch(/^[A-Z].{40,}\.$/);
  });

  it('has a runbook, and names the account in the commands that it shows', () => {
    expect(annotations.runbook).toMatch(/^docs\/runbooks\/[a-z-]+\.md$/);
    expect(existsSync(new URL(`../../${annotations.runbook}`, import.meta.url))).toBe(true);
    if (!annotations.summary.includes('$labels.platform_id')) return;
    const commands = [...annotations.action.matchAll(/`payouts ([^`]*)`/g)].map(([, command = '']) => command);
    // A service, or a command that is only spoken of.
    for (const command of commands.filter((each) => !/^(worker|notify|resume)$/.test(each))) {
      expect(command).toMatch(/ --account \{\{ \$labels\.platform_id \}\}/);
    }
  });
});

it('has an index of runbooks in the words of the headlines', () => {
  const rows = readFileSync(new URL('../../docs/runbooks/README.md', import.meta.url), 'utf8').split('\n');
  const pages: [words: string, runbook?: string][] = Object.values(HEADLINES).map((row) => [...row]);
  const missing = pages.filter(
    ([words, runbook]) =>
      runbook !== undefined && !rows.some((row) => row.includes(`\`${words}\``) && row.includes(`(${runbook}.md)`)),
  );
  expect(missing).toEqual([]);
});

it('leads to runbooks that the index links, as it does every page', () => {
  const folder = new URL('../../docs/runbooks/', import.meta.url);
  const index = readFileSync(new URL('README.md', folder), 'utf8');
  const pages = readdirSync(folder).filter((name) => name !== 'README.md');
  expect(pages.filter((name) => !index.includes(`(${name})`))).toEqual([]);
});

it('picks outcomes, results and buckets that are counted', async () => {
  const text = await seriesOfWorker();
  const picks = rules.flatMap(({ expr }) => [...expr.matchAll(/(payouts_[a-z_]+)\{(outcome|result|le)="([^"]+)"\}/g)]);
  expect(picks.length).toBeGreaterThan(3);
  for (const [, name, label, value] of picks) {
    expect(text).toMatch(new RegExp(`^${name ?? ''}\\{.*${label ?? ''}="${value ?? ''}".*\\} 0$`, 'm'));
  }
});

it('has a rule for everything that needs an operator', () => {
  const watched = new Set(rules.flatMap(({ expr }) => metricsIn(expr)));
  const needed = [
    ...['redis_up', 'redis_refuses_writes', 'redis_may_forget', 'replicas_missing'],
    ...['lease_held', 'objections', 'sending_refused', 'paused'],
    ...['in_state', 'late_payments', 'oldest_age_seconds', 'stuck_in_progress'],
    ...['due', 'balance', 'balance_needed', 'balance_unexplained'],
    ...['not_sent_total', 'clock_offset_seconds', 'sends_total', 'polls_total'],
    ...['journal_sync_seconds_bucket', 'send_gap_seconds_bucket', 'log_failures_total', 'jobs_recreated_total'],
    ...[
      'dashboard_login_failures_total',
      'signature_failures_total',
      'key_not_after_timestamp_seconds',
      'keys_reload_failed',
    ],
    ...['process_start_time_seconds'],
  ].map((name) => `payouts_${name}`);
  expect(needed.filter((name) => !watched.has(name))).toEqual([]);
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
});

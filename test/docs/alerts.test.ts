import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { createLoginMetrics } from '../../src/dashboard/login.js';
import { exportAccounts } from '../../src/operator/account-gauges.js';
import { createWorkerMetrics } from '../../src/worker/monitoring/worker-metrics.js';
import { alertRules as rules } from './support/alert-rules.js';

/** Every series of a worker with one account, and of a dashboard, by name; the gauges of the account are known by their name alone. */
async function seriesOfWorker(): Promise<string> {
  const metrics = createWorkerMetrics({ version: '1.2.3' });
  metrics.observe(1);
  const { registry } = createLoginMetrics();
  exportAccounts(registry, 'dashboard', () => [], 1);
  return `${await metrics.registry.metrics()}${await registry.metrics()}`;
}

/** Asserts that every metric of a query exists, with the outcomes, results and buckets that it picks. */
async function expectKnown(expr: string): Promise<void> {
  const text = await seriesOfWorker();
  const names = expr.match(/\bpayouts_[a-z_]+/g) ?? [];
  expect(names).not.toEqual([]);
  for (const name of names) {
    const metric = name.replace(/_(bucket|sum|count)$/, '');
    expect(text).toMatch(new RegExp(`^# TYPE ${metric} ${metric === name ? '(counter|gauge)' : 'histogram'}$`, 'm'));
  }
  const picks = expr.matchAll(/(payouts_[a-z_]+)\{(outcome|result|le)="([^"]+)"\}/g);
  for (const [, name = '', label = '', value = ''] of picks)
    expect(text).toMatch(new RegExp(`^${name}\\{.*${label}="${value}".*\\} 0$`, 'm'));
}

it('the dashboard for Grafana asks for metrics that exist', async () => {
  const path = new URL('../../docs/grafana-dashboard.json', import.meta.url);
  const { panels } = JSON.parse(readFileSync(path, 'utf8')) as { panels: { targets: { expr: string }[] }[] };
  const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
  expect(queries.length).toBeGreaterThan(5);
  for (const expr of queries) await expectKnown(expr);
});

describe.each(rules)('$alert', ({ expr, labels, annotations }) => {
  it('names metrics, outcomes, results and buckets that exist', async () => expectKnown(expr));

  it('has a severity and a runbook, and names the account in the commands that it shows', () => {
    expect(labels.severity).toMatch(/^(critical|warning)$/);
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

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, it } from '@jest/globals';
import { startWatchedWorker } from '../worker/support/watched-worker.js';
import { until } from '../support/until.js';

/** The dashboard for Grafana, its queries held against the metrics of a worker that has sent. */

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
  }[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly query: string }[] };
}

const { panels, templating } = JSON.parse(
  readFileSync(new URL('../../docs/grafana-dashboard.json', import.meta.url), 'utf8'),
) as Dashboard;
const queries = panels.flatMap(({ title, targets }) => targets.map((target) => ({ title, ...target })));

/** The label names of each metric, and what values they have. */
let series: Map<string, Map<string, Set<string>>>;

beforeAll(async () => {
  const { enqueue, producer, url, sandbox } = await startWatchedWorker({ account: { balanceEveryMs: 100 } });
  await enqueue('sent');
  await producer.enqueue({
    ...{ payoutId: 'later', paymentId: 6, amount: '1', addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf' },
    notBefore: '2099-01-01T00:00:00Z',
  });
  await until('the payout was sent', () => sandbox.stats().payments > 0);
  let text = '';
  await until('the queued amount is known', async () => {
    text = await (await fetch(`${url}/metrics`)).text();
    return text.includes('payouts_queued_amount{') && text.includes('payouts_balance_needed{');
  });
  series = parseSeries(text);
}, 60_000);

function parseSeries(text: string): typeof series {
  const found: typeof series = new Map();
  for (const [, name = '', labels = ''] of text.matchAll(/^(payouts_[a-z_]+)(?:\{(.*)\})? \S+$/gm)) {
    const names = found.get(name) ?? new Map<string, Set<string>>();
    for (const [, label = '', value = ''] of labels.matchAll(/(\w+)="([^"]*)"/g)) {
      names.set(label, (names.get(label) ?? new Set()).add(value));
    }
    found.set(name, names);
  }
  return found;
}

it.each(queries)('$title: $expr names a metric and labels that a worker has', ({ expr, legendFormat }) => {
  const [, metric = '', matchers = ''] = /(payouts_[a-z_]+)(?:\{([^}]*)\})?/.exec(expr) ?? [];
  expect([...series.keys()]).toContain(metric);
  const labels = series.get(metric) ?? new Map<string, Set<string>>();
  const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(', '));
  const matched = [...matchers.matchAll(/(\w+)=~?"/g)].map(([, name = '']) => name);
  for (const name of [...grouped, ...matched]) expect([...labels.keys()]).toContain(name);
  for (const [, name = '', values = ''] of matchers.matchAll(/(\w+)=~?"([\w|]+)"/g)) {
    for (const value of values.split('|')) expect([...(labels.get(name) ?? [])]).toContain(value);
  }
  for (const [, name = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) expect(grouped).toContain(name);
});

it('the choice of an account comes from a metric that every worker has', () => {
  const [, metric = '', label = ''] =
    /^label_values\((\w+), (\w+)\)$/.exec(templating.list.find(({ name }) => name === 'account')?.query ?? '') ?? [];
  expect([...(series.get(metric)?.keys() ?? [])]).toContain(label);
});

it('every query passes promtool', () => {
  const dir = mkdtempSync(join(tmpdir(), 'payouts-grafana-'));
  try {
    // As Grafana fills it in.
    const fillIn = (expr: string) => expr.replaceAll('$__rate_interval', '5m').replaceAll('$account', '.*');
    const rules = queries.map(({ expr }, index) => ({ record: `query_${index}`, expr: fillIn(expr) }));
    // JSON is YAML.
    writeFileSync(join(dir, 'rules.yml'), JSON.stringify({ groups: [{ name: 'queries', rules }] }));
    execFileSync('promtool', ['check', 'rules', join(dir, 'rules.yml')]);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

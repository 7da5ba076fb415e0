import { readdirSync, readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { expect, it } from '@jest/globals';
import { COMMAND_GROUPS } from '../../src/cli/command-groups.js';
import type { CommandGroup } from '../../src/cli/context/run-program.js';
import { createLoginMetrics } from '../../src/dashboard/login.js';
import { exportAccounts } from '../../src/operator/account-gauges.js';
import { HEADLINES } from '../../src/operator/account-headline.js';
import { createWorkerMetrics } from '../../src/worker/monitoring/worker-metrics.js';
import { runInProcess } from '../cli/support/in-process.js';
import { WAYS } from '../told/ways/index.js';
import { alertRules } from './support/alert-rules.js';

/** Alerts of metrics that exist, and runbooks: an index of every page, the alerts of each, and commands that exist. */

const DOCS = new URL('../../docs/', import.meta.url);
const read = (page: string): string => readFileSync(new URL(`runbooks/${page}.md`, DOCS), 'utf8');
const index = read('README');
const pages = readdirSync(new URL('runbooks/', DOCS))
  .map((file) => file.replace(/\.md$/, ''))
  .filter((page) => page !== 'README');

/** Planned work: steps to follow, no symptom. The index lists them apart. */
const PROCEDURES = ['accounts', 'backup', 'gateway-key', 'move-redis', 'restore-redis', 'upgrade'];

/** Every series of a worker with one account, and of a dashboard; the gauges of the account are known by their name alone. */
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
  const { panels } = JSON.parse(readFileSync(new URL('grafana-dashboard.json', DOCS), 'utf8')) as {
    panels: { targets: { expr: string }[] }[];
  };
  const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
  expect(queries.length).toBeGreaterThan(5);
  for (const expr of queries) await expectKnown(expr);
});

it.each(alertRules)(
  '$alert asks for what exists, has a severity and a runbook, and names the account in its commands',
  async ({ expr, labels, annotations: { runbook, summary, action } }) => {
    await expectKnown(expr);
    expect(labels.severity).toMatch(/^(critical|warning)$/);
    expect(pages.map((page) => `docs/runbooks/${page}.md`)).toContain(runbook);
    if (!summary.includes('$labels.platform_id')) return;
    const commands = [...action.matchAll(/`payouts ([^`]*)`/g)].map(([, command = '']) => command);
    // A service, or a command that is only spoken of.
    for (const command of commands.filter((each) => !/^(worker|notify|resume)$/.test(each))) {
      expect(command).toMatch(/ --account \{\{ \$labels\.platform_id \}\}/);
    }
  },
);

/** Alerts about what has happened to money, access or a process, or about other alerts, while payouts go out. */
const OF_EVENTS = [
  ...['PayoutsPaidLate', 'PayoutsSentTooClose', 'PayoutsFailed', 'PayoutsKeysReloadFailed'],
  ...['PayoutsPolicyChanged', 'PayoutsPolicyNearlyUsed', 'PayoutsPolicyReloadFailed'],
  // Payouts go out: test/told/alerts.slow.test.ts makes these two.
  ...['PayoutsExporterMissing', 'PayoutsHeldTooLong'],
  ...['PayoutsDashboardGuessed', 'PayoutsNotificationsLate', 'PayoutsProcessRestarts'],
];

it('each alert answers a way to stand still, or tells of an event; the ways have names of their own', () => {
  const answers = [...new Set(WAYS.flatMap(({ told }) => told.alerts))];
  expect([...answers, ...OF_EVENTS].sort()).toEqual(alertRules.map(({ alert }) => alert).sort());
  expect(new Set(WAYS.map(({ name }) => name)).size).toBe(WAYS.length);
});

it.each(pages.filter((page) => !PROCEDURES.includes(page)))('the page %s names its alerts, and no other', (page) => {
  const own = alertRules.filter(({ annotations }) => annotations.runbook === `docs/runbooks/${page}.md`);
  const [, see = ''] = /^- \*\*See:\*\*(.*)$/m.exec(read(page)) ?? [];
  const named = [...see.matchAll(/`(Payouts\w+)`/g)].map(([, alert]) => alert);
  expect(named.sort()).toEqual(own.map(({ alert }) => alert).sort());
});

it('the index has every page, in the words of the headlines, and what risks money first', () => {
  expect(pages.filter((page) => !index.includes(`(${page}.md)`))).toEqual([]);
  const rows = index.split('\n');
  for (const [words, runbook] of Object.values(HEADLINES).map((row): [string, string?] => [...row]))
    if (runbook !== undefined)
      expect(rows.filter((row) => row.includes(`\`${words}\``) && row.includes(`(${runbook}.md)`))).toHaveLength(1);
  const [risky = ''] = index.split('## No money');
  for (const page of pages.filter((each) => !PROCEDURES.includes(each))) {
    const isAtRisk = /^- \*\*At risk:\*\* (yes|sending it again)/m.test(read(page));
    expect({ page, isAtRisk: risky.includes(`(${page}.md)`) }).toEqual({ page, isAtRisk });
  }
});

/** The words of a command up to what a shell does with its output. */
function wordsOf(command: string): string[] {
  const [own = ''] = /^(?:[^"'|>;)&]|"[^"]*"|'[^']*')*/.exec(command) ?? [];
  return [...own.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? '',
  );
}

/** The same commands, which do nothing once their arguments are read. */
function parseOnly(onParsed: () => void): CommandGroup[] {
  const silence = (command: Command): void => {
    command.action(onParsed);
    command.commands.forEach(silence);
  };
  return COMMAND_GROUPS.map((group) => ({
    ...group,
    commands: group.commands.map((entry) => ({
      ...entry,
      load: async () => {
        const define = await entry.load();
        return (command, context) => {
          define(command, context);
          const under = command.commands;
          if (under.length === 0) command.action(onParsed);
          else under.forEach(silence);
        };
      },
    })),
  }));
}

function commandsIn(text: string): string[] {
  const blocks = [...text.matchAll(/^```(?:sh)?\n(.*?)^```$/gms)].flatMap(([, block = '']) => block.split('\n'));
  const inline = [...text.replace(/^```.*?^```$/gms, '').matchAll(/`(payouts [^`]+)`/g)].map(
    ([, command = '']) => command,
  );
  const lines = blocks.flatMap((line) => /(?:^ *|until |worker )(payouts .*)$/.exec(line)?.[1] ?? []);
  return [...lines, ...inline];
}

const readme = readFileSync(new URL('../README.md', DOCS), 'utf8');
/** The action of an alert as an operator reads it. */
const filled = (action: string): string =>
  action
    .replaceAll('{{ $labels.platform_id }}', '7')
    .replaceAll('{{ $labels.role }}', 'producer')
    .replaceAll(/\{\{.*?\}\}/g, 'notify');
const documented = [
  ['README.md', [...readme.matchAll(/^- `(payouts resolve .*?)`/gm)].map(([, command = '']) => command)] as const,
  ...['README', ...pages].map((page) => [`runbooks/${page}.md`, commandsIn(read(page))] as const),
  ...alertRules.map(({ alert, annotations }) => [alert, commandsIn(filled(annotations.action))] as const),
].filter(([, commands]) => commands.length > 0);

it.each(documented)('%s names commands that the program accepts', async (_, commands) => {
  for (const command of commands) {
    const [, ...args] = wordsOf(command);
    const account = args[args.indexOf('--account') + 1] ?? '7';
    const env = { GATEWAY_PLATFORM_ID: /^\d+$/.test(account) ? account : '7' };
    let parsed = args.includes('--version');
    const groups = parseOnly(() => (parsed = true));
    const { code, stderr } = await runInProcess(args, env, groups);
    expect({ command, code, stderr, parsed }).toEqual({ command, code: 0, stderr: '', parsed: true });
  }
});

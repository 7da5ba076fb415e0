import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { expect, it } from '@jest/globals';
import { validate } from 'dockerfile-utils';
import { parse } from 'yaml';
import { systemClock } from '../../src/base/clock.js';
import { readConfig, type VariableName } from '../../src/base/config.js';
import type { Setting } from '../../src/base/setting.js';
import { SETTINGS } from '../../src/base/settings.js';
import { COMMAND_GROUPS } from '../../src/cli/command-groups.js';
import '../../src/cli/demo/demo-command.js';
import '../../src/cli/worker/worker-command.js';
import { toExitCode } from '../../src/cli/context/exit-code.js';
import type { CommandGroup } from '../../src/cli/context/run-program.js';
import { readPolicyFile } from '../../src/control/policy/policy-file.js';
import { createLoginMetrics } from '../../src/dashboard/login.js';
import * as index from '../../src/index.js';
import { NotifyStatus } from '../../src/notifications/notify-server.js';
import { exportAccounts } from '../../src/operator/account-gauges.js';
import { HEADLINES } from '../../src/operator/account-headline.js';
import { checkGrafana, type GrafanaDashboard } from '../../scripts/check-grafana.js';
import { createWorkerMetrics } from '../../src/worker/monitoring/worker-metrics.js';
import { runInProcess } from '../cli/support/in-process.js';
import { keyEntry, keyringOf, testKey } from '../control/support/keys.js';
import { alertRules, recordingRules } from '../told/alerts.js';
import { WAYS } from '../told/ways/index.js';
import { folderOfTest } from '../worker/support/close-after-test.js';

/** The documents against the repository: what they refer to exists. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const namesIn = (folder: string) => readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
const all = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, found = '']) => found);
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };

const documents = [
  ...readdirSync(ROOT),
  ...['docs', 'test/proofs'].flatMap((folder) => namesIn(folder).map((name) => `${folder}/${name}`)),
].filter((path) => path.endsWith('.md') && !path.includes('node_modules'));
const sources = ['src', 'test', 'scripts'].flatMap((folder) => namesIn(folder).map((name) => `${folder}/${name}`));

/** The anchors that a Markdown renderer gives the headings of a document. */
function anchorsOf(path: string) {
  return all(read(path), /^#+ (.+)$/gm).map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_\- ]/gu, '')
      .replaceAll(' ', '-'),
  );
}

const isThere = (path: string, anchor?: string) =>
  existsSync(join(ROOT, path)) && (anchor === undefined || anchorsOf(path).includes(anchor));

it.each(documents)('%s names links, npm scripts and files that exist', (document) => {
  const text = read(document);
  const broken = all(text, /\]\(([^)\s]+)\)/g).filter((link) => {
    const [file = '', anchor] = link.split('#');
    return !link.includes('://') && !isThere(file === '' ? document : join(dirname(document), file), anchor);
  });
  expect(broken).toEqual([]);
  const named = all(text, /npm run (?:--silent |-s )?([a-z][\w:-]*)/g);
  expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
  // A changelog names what there was.
  if (document === 'CHANGELOG.md') return;
  const paths = all(text, /`((?:src|test|docs|scripts|bench|examples)\/[\w./-]*)`/g);
  expect(paths.filter((path) => !isThere(path))).toEqual([]);
  const names = all(text, /`([\w-]+(?:\/[\w-]+)*(?:\.slow)?(?:\.test)?\.(?:ts|lua))`/g);
  expect(names.filter((name) => !sources.some((path) => `/${path}`.endsWith(`/${name}`)))).toEqual([]);
});

it('the sources name pages and anchors that exist', () => {
  const named = sources
    .filter((path) => /^src\/.*\.(ts|lua|js|css)$/.test(path))
    .flatMap((path) => [...read(path).matchAll(/\b(docs\/[\w/-]+\.md)(?:#([\w-]+))?/g)]);
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter(([, page = '', anchor]) => !isThere(page, anchor)).map(([name]) => name)).toEqual([]);
});

it('a block of commands for operators stops at its first error', () => {
  // Those that no test runs name no language.
  const forOperators = documents.filter((path) => path.startsWith('docs/runbooks/') || path === 'docs/deploy.md');
  const blocks = forOperators.flatMap((page) => all(read(page), /^ *```(?:sh)?\n(.*?)^ *```$/gms));
  expect(blocks.length).toBeGreaterThan(20);
  for (const block of blocks.filter((each) => each.trim().includes('\n'))) expect(block).toMatch(/^\(set -e\n.*^\)$/ms);
  // Without `-e` redis-cli says that it was refused, and ends as if all were well.
  for (const line of blocks.flatMap((block) => block.split('\n')))
    if (/\b(BGSAVE|REPLICAOF|CONFIG SET)\b/.test(line)) expect(line).toContain('redis-cli -e');
});

it('docs/errors.md lists every error class that is exported, with the exit code of its code', () => {
  const text = ['src/base/errors.ts', 'src/gateway/gateway.ts'].map(read).join('\n');
  /** The code of a class, or of the class that it extends. */
  const codeOf = (name: string): string | undefined => {
    const [, parent = '', body = ''] = new RegExp(`class ${name} extends (\\w+) \\{(.*?)^\\}`, 'ms').exec(text) ?? [];
    return parent === 'PayoutError' ? /super\('(\w+)'/.exec(body)?.[1] : codeOf(parent);
  };
  const rows = [...read('docs/errors.md').matchAll(/^\| `(\w+)` +\| `(\w+)` +\| (\d) /gm)];
  const isErrorClass = (value: unknown) => typeof value === 'function' && value.prototype instanceof index.PayoutError;
  const exported = Object.entries(index).flatMap(([name, value]) => (isErrorClass(value) ? [name] : []));
  expect(rows.map(([, name]) => name).sort()).toEqual(exported.sort());
  for (const [, name = '', code = '', exitCode] of rows) {
    expect([name, codeOf(name)]).toEqual([name, code]);
    expect([name, toExitCode(new index.PayoutError(code as index.ErrorCode, ''))]).toEqual([name, Number(exitCode)]);
  }
});

it('.env.example is an environment with the defaults of the code, which their own rules accept', () => {
  const rows = new Map(Object.values(SETTINGS).map((row): [string, Setting] => [row.variable, row]));
  for (const [name, row] of rows)
    if ('default' in row) expect([name, row.rule.safeParse(row.default).success]).toEqual([name, true]);
  const set = [...read('.env.example').matchAll(/^([A-Z]\w*)=(.*)$/gm)];
  const environment = Object.fromEntries(set.map(([, name = '', value = '']) => [name, value]));
  const names = [...rows].filter(([, { secret }]) => secret !== true).map(([name]) => name as VariableName);
  const required = names.filter((name) => 'required' in (rows.get(name) ?? {}));
  expect(readConfig(names, { ...environment, DASHBOARD_USER: '' })).toEqual(
    readConfig(names, Object.fromEntries(required.map((name) => [name, environment[name]]))),
  );
});

it('the two Dockerfiles have no mistake, run the same, and pin their images by content', () => {
  const files = ['Dockerfile', 'deploy/docker/Dockerfile'].map(read);
  const [[dockerfile = '', ofPackage = '']] = [files];
  for (const file of files) expect(validate(file).map(({ message }) => message)).toEqual([]);
  const howItRuns = (file: string) => file.slice(file.indexOf('# By number'));
  expect(howItRuns(ofPackage)).toBe(howItRuns(dockerfile));
  expect(howItRuns(dockerfile)).toContain('ENTRYPOINT');
  const built = all(scripts['build'] ?? '', /(scripts\/[\w.-]+)/g);
  expect(built.length).toBeGreaterThan(0);
  expect(built.filter((path) => !dockerfile.includes(path))).toEqual([]);
  const images = all(files.join('\n'), /^FROM (\S+)/gm);
  expect(images).toHaveLength(3);
  expect(new Set(images).size).toBe(1);
  for (const image of images) expect(image).toMatch(/:\d+\.\d+\.\d+[\w-]*@sha256:[0-9a-f]{64}$/);
});

it('the policies of the examples load without a warning, with every person in the keyring, and docs/control.md has each', async () => {
  const dir = await folderOfTest('policies');
  mkdirSync(join(dir, 'policies'), { mode: 0o700 });
  // In a checkout of a user with the umask 002, others than the owner can write folders and files.
  for (const name of namesIn('examples').filter((each) => /^(policies\/)?[\w-]+\.(yaml|txt)$/.test(each)))
    writeFileSync(join(dir, name), read(`examples/${name}`), { mode: 0o600 });
  const persons = ['alice', 'bob', 'carol', 'dora', 'emil', 'fay', 'gus'];
  const keyring = keyringOf(
    ...persons.map((person, index) => keyEntry(testKey(index + 1), { name: person, role: 'approver', person })),
  );
  const shop = 'policies/shop.yaml';
  for (const name of ['policy.yaml', ...readdirSync(join(dir, 'policies')).map((each) => `policies/${each}`)]) {
    if (!name.endsWith('.yaml')) continue;
    // That of a shop needs no keyring.
    const found = readPolicyFile(join(dir, name), { platformId: 4242, keyring: name === shop ? undefined : keyring });
    expect({ name, ...found }).toMatchObject({ name, warnings: [], policy: { uncovered: 'hold' } });
    expect(read('docs/control.md')).toContain(`(../examples/${name})`);
  }
});

/** Runbooks: an index of every page, the alerts of each, and commands that exist. */
const readPage = (page: string) => read(`docs/runbooks/${page}.md`);
const indexPage = readPage('README');
const pages = readdirSync(join(ROOT, 'docs/runbooks')).flatMap((file) =>
  file === 'README.md' ? [] : [file.replace(/\.md$/, '')],
);

/** Planned work: steps to follow, no symptom. The index lists them apart. */
const PROCEDURES = ['accounts', 'backup', 'gateway-key', 'move-redis', 'restore-redis', 'upgrade'];

/** Every series of a worker with one account, of a dashboard and of `payouts notify`; the gauges of the account are known by their name alone. */
async function seriesOfWorker() {
  const metrics = createWorkerMetrics({ version: '1.2.3' });
  metrics.observe(1);
  const { registry } = createLoginMetrics();
  exportAccounts(registry, 'dashboard', () => [], 1);
  const notify = new NotifyStatus(systemClock);
  notify.observe(1);
  const registries = [metrics.registry, registry, notify.registry];
  return (await Promise.all(registries.map(async (each) => each.metrics()))).join('');
}

/** Every metric of a query exists, with the outcomes, results and buckets that it picks. */
async function expectKnown(expr: string) {
  const text = await seriesOfWorker();
  const recorded = expr.match(/\bplatform_id:[\w:]+/g) ?? [];
  expect(recorded.filter((name) => !recordingRules.some(({ record }) => record === name))).toEqual([]);
  const names = expr.match(/(?<!:)\bpayouts_[a-z_]+/g) ?? [];
  expect([...recorded, ...names]).not.toEqual([]);
  for (const name of names) {
    const metric = name.replace(/_(bucket|sum|count)$/, '');
    expect(text).toMatch(new RegExp(`^# TYPE ${metric} ${metric === name ? '(counter|gauge)' : 'histogram'}$`, 'm'));
  }
  const picks = expr.matchAll(/(payouts_[a-z_]+)\{(outcome|result|le)="([^"]+)"\}/g);
  for (const [, name = '', label = '', value = ''] of picks)
    expect(text).toMatch(new RegExp(`^${name}\\{.*${label}="${value}".*\\} 0$`, 'm'));
}

/** Gauges that every process of the account reports, so that a sum over processes would count them again and again. */
function namesOfSharedGauges() {
  const { registry } = createLoginMetrics();
  const own = new Set(registry.getMetricsAsArray().map(({ name }) => name));
  exportAccounts(registry, 'dashboard', () => [], 1);
  return registry.getMetricsAsArray().flatMap(({ name }) => (own.has(name) ? [] : [name]));
}

it.each(recordingRules)('$record is recorded from what exists', async ({ expr }) => expectKnown(expr));

it('no alert and no panel adds up over processes what each of them reports', () => {
  const names = namesOfSharedGauges();
  expect(names).toContain('payouts_held');
  const panels = read('docs/grafana-dashboard.json').replaceAll('\\"', '"');
  const queries = [...[...alertRules, ...recordingRules].map(({ expr }) => expr), panels].join('\n');
  const sums = RegExp(`\\b(sum|count|avg)( by \\([^)]*\\))? \\((${names.join('|')})\\b`, 'g');
  expect(queries.match(sums) ?? []).toEqual([]);
});

const readGrafana = () => JSON.parse(read('docs/grafana-dashboard.json')) as GrafanaDashboard;

it('the dashboard for Grafana asks for metrics that exist', async () => {
  const { panels, annotations } = readGrafana();
  const queries = [...panels.flatMap(({ targets }) => targets), ...annotations.list].map(({ expr }) => expr);
  expect(queries.length).toBeGreaterThan(5);
  for (const expr of queries) await expectKnown(expr);
});

it('each panel for Grafana has a sentence, a unit, a runbook and an id, and each great event is an annotation', () => {
  const dashboard = readGrafana();
  const problemsOf = (change: Partial<GrafanaDashboard>) => checkGrafana({ ...dashboard, ...change }, pages);
  expect(problemsOf({})).toEqual([]);
  const [first, ...others] = dashboard.panels;
  if (first === undefined) throw new Error('no panel');
  const faults: [Partial<typeof first>, string][] = [
    [{ description: '' }, 'has no sentence'],
    [{ description: 'Sender' }, 'has no sentence'],
    [{ fieldConfig: { defaults: {} } }, 'has no unit'],
    [{ links: [] }, 'links to no runbook'],
    [{ links: [{ url: '${runbooks:raw}/no-such-page' }] }, 'links to no runbook'],
  ];
  for (const [fault, problem] of faults)
    expect(problemsOf({ panels: [{ ...first, ...fault }, ...others] })).toEqual([
      expect.stringContaining(`${first.title} ${problem}`),
    ]);
  expect(problemsOf({ panels: [...others, first, first] })).toEqual([expect.stringContaining('the id of another')]);
  const { list } = dashboard.annotations;
  for (const name of ['Pause', 'Take-over', 'Adoption'])
    for (const left of [
      list.filter((each) => each.name !== name),
      list.map((each) => (each.name === name ? { ...each, enable: false } : each)),
    ])
      expect(problemsOf({ annotations: { list: left } })).toEqual([
        expect.stringContaining(`${name} is no annotation`),
      ]);
});

it.each(alertRules)(
  '$alert asks for what exists, has a severity and a runbook, and names the account in its commands',
  async ({ expr, labels, annotations: { runbook, summary, action } }) => {
    await expectKnown(expr);
    expect(labels.severity).toMatch(/^(critical|warning)$/);
    expect(pages.map((page) => `docs/runbooks/${page}.md`)).toContain(runbook);
    if (!summary.includes('$labels.platform_id')) return;
    const commands = all(action, /`payouts ([^`]*)`/g);
    // A service, or a command that is only spoken of.
    for (const command of commands.filter((each) => !/^(worker|notify|resume)$/.test(each)))
      expect(command).toMatch(/ --account \{\{ \$labels\.platform_id \}\}/);
  },
);

it('monitoring.md gives each alert the address of its runbook at the dashboard', () => {
  const [, command = ''] = /^```sh\n(sed [^\n]*) > payouts-alerts\.yml\n```$/m.exec(read('docs/monitoring.md')) ?? [];
  const text = execFileSync('sh', ['-c', command], { cwd: ROOT, encoding: 'utf8' });
  const { groups } = parse(text) as { groups: { rules: { alert: string; annotations: { runbook: string } }[] }[] };
  const rules = groups.flatMap((group) => group.rules);
  expect(rules.map(({ alert }) => alert)).toEqual(alertRules.map(({ alert }) => alert));
  for (const { annotations } of rules)
    expect(pages.map((page) => `https://payouts.example.com/runbooks/${page}`)).toContain(annotations.runbook);
});

/** Alerts about what has happened to money, access or a process, or about other alerts, while payouts go out. */
const OF_EVENTS = [
  ...['PayoutsPaidLate', 'PayoutsSentTooClose', 'PayoutsFailed', 'PayoutsKeysReloadFailed'],
  'PayoutsReceiptsFailed',
  ...['PayoutsPolicyChanged', 'PayoutsPolicyNearlyUsed', 'PayoutsPolicyReloadFailed'],
  // Payouts go out: test/told/alerts.slow.test.ts makes these three.
  ...['PayoutsExporterMissing', 'PayoutsHeldTooLong', 'PayoutsKeysUnreadable'],
  ...['PayoutsDashboardGuessed', 'PayoutsNotificationsLate', 'PayoutsNotifierSilent', 'PayoutsProcessRestarts'],
];

it('each alert answers a way to stand still, or tells of an event; the ways have names of their own', () => {
  const answers = [...new Set(WAYS.flatMap(({ told }) => told.alerts))];
  expect([...answers, ...OF_EVENTS].sort()).toEqual(alertRules.map(({ alert }) => alert).sort());
  expect(new Set(WAYS.map(({ name }) => name)).size).toBe(WAYS.length);
});

it.each(pages.filter((page) => !PROCEDURES.includes(page)))('the page %s names its alerts, and no other', (page) => {
  const own = alertRules.filter(({ annotations }) => annotations.runbook === `docs/runbooks/${page}.md`);
  const [, see = ''] = /^- \*\*See:\*\*(.*)$/m.exec(readPage(page)) ?? [];
  const named = all(see, /`(Payouts\w+)`/g);
  expect(named.sort()).toEqual(own.map(({ alert }) => alert).sort());
});

it('the index has every page, in the words of the headlines, and what risks money first', () => {
  expect(pages.filter((page) => !indexPage.includes(`(${page}.md)`))).toEqual([]);
  const rows = indexPage.split('\n');
  for (const [words, runbook] of Object.values(HEADLINES).map((row): [string, string?] => [...row]))
    if (runbook !== undefined)
      expect(rows.filter((row) => row.includes(`\`${words}\``) && row.includes(`(${runbook}.md)`))).toHaveLength(1);
  const [risky = ''] = indexPage.split('## No money');
  for (const page of pages.filter((each) => !PROCEDURES.includes(each))) {
    const isAtRisk = /^- \*\*At risk:\*\* (yes|sending it again)/m.test(readPage(page));
    expect({ page, isAtRisk: risky.includes(`(${page}.md)`) }).toEqual({ page, isAtRisk });
  }
});

/** The words of a command up to what a shell does with its output. */
function wordsOf(command: string) {
  const [own = ''] = /^(?:[^"'|>;)&]|"[^"]*"|'[^']*')*/.exec(command) ?? [];
  return [...own.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? '',
  );
}

/** The same commands, which do nothing once their arguments are read. */
function parseOnly(onParsed: () => void): CommandGroup[] {
  const silence = (command: Command) => {
    if (command.commands.length === 0) command.action(onParsed);
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
          silence(command);
        };
      },
    })),
  }));
}

function commandsIn(text: string) {
  const blocks = all(text, /^```(?:sh)?\n(.*?)^```$/gms).flatMap((block) => block.split('\n'));
  const inline = all(text.replace(/^```.*?^```$/gms, ''), /`(payouts [^`]+)`/g);
  const lines = blocks.flatMap((line) => /(?:^ *|until |worker )(payouts .*)$/.exec(line)?.[1] ?? []);
  return [...lines, ...inline];
}

/** The action of an alert as an operator reads it. */
const filled = (action: string) =>
  action
    .replaceAll('{{ $labels.platform_id }}', '7')
    .replaceAll('{{ $labels.role }}', 'producer')
    .replaceAll(/\{\{.*?\}\}/g, 'notify');
const documented = [
  ['README.md', all(read('README.md'), /^- `(payouts resolve .*?)`/gm)] as const,
  ...['README', ...pages].map((page) => [`runbooks/${page}.md`, commandsIn(readPage(page))] as const),
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

it('README.md names every command', () => {
  const [, section = ''] = read('README.md').split('## Commands');
  const [table = ''] = section.split('\n## ');
  const names = COMMAND_GROUPS.flatMap(({ commands }) => commands.map(({ usage }) => usage.replace(/ .*/, '')));
  expect(names.length).toBeGreaterThan(15);
  for (const name of names) expect(table).toMatch(new RegExp(`[ \`]${name}\``));
});

import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { Deployment, StatefulSet } from 'kubernetes-types/apps/v1.js';
import type { ConfigMap, Service } from 'kubernetes-types/core/v1.js';
import ts from 'typescript';
import { parse, parseAllDocuments } from 'yaml';
import { readConfig, readSettings, type VariableName } from '../../src/base/config.js';
import type { Setting } from '../../src/base/setting.js';
import * as settings from '../../src/base/settings.js';
import { checkDurability } from '../../src/ledger/redis-durability.js';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { startProgram } from '../support/cli.js';
import { until } from '../support/until.js';
import { afterTest, folderOfTest } from '../worker/support/close-after-test.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const rows: readonly Setting[] = Object.values(settings.SETTINGS);
const isSecret = ({ secret }: Setting) => secret === true;
const inFile = rows.map((row) => (isSecret(row) ? `${row.variable}_FILE` : row.variable));
const variables = [...inFile, ...rows.map(({ variable }) => variable)];
const { WITHDRAW_TIMEOUT_MS } = readConfig(['WITHDRAW_TIMEOUT_MS'], {});

type ComposeService = Partial<
  Readonly<{
    image: string;
    profiles: readonly string[];
    command: readonly string[];
    environment: Readonly<Record<string, string>>;
    secrets: readonly (string | { readonly source: string; readonly target: string })[];
    volumes: readonly string[];
    stop_grace_period: string;
    healthcheck: { readonly test: readonly string[] };
  }>
>;

interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
}

/** docker-compose.yml as compose reads it with this environment: `${NAME:-default}` filled in, `$$` as `$`. */
function readCompose(given: Readonly<Record<string, string>> = {}) {
  const fill = (text: string) =>
    text.replace(/\$\$|\$\{(\w+):-([^}]*)\}/g, (whole, name: string | undefined, fallback: string) =>
      name === undefined ? whole.slice(1) : (given[name] ?? '') || fallback,
    );
  // As text, since an environment has only that.
  const parsed: unknown = parse(read('docker-compose.yml'), { merge: true, schema: 'failsafe' });
  const filled = JSON.stringify(parsed, (_, value: unknown) => (typeof value === 'string' ? fill(value) : value));
  return JSON.parse(filled) as Compose;
}

function serviceOf(name: string, environment?: Record<string, string>) {
  const service = readCompose(environment).services[name];
  if (service === undefined) throw new Error(`there is no service ${name}`);
  return service;
}

const LIVE = ['worker', 'dashboard', 'notify', 'serve'];

/** Paths, hosts and ports inside a container, which compose itself decides. */
const SET_BY_COMPOSE = [
  ...['ALLOW_READABLE_SECRETS', 'SEND_JOURNAL_DIR', 'HEALTH_HOST', 'HEALTH_PORT', 'GATEWAY_EVENTS_HOST'],
  ...['DASHBOARD_HOST', 'DASHBOARD_PORT', 'NOTIFY_HEALTH_PORT'],
  ...['SERVE_HOST', 'SERVE_PORT', 'SERVE_HEALTH_PORT', 'SERVE_TOKENS_FILE'],
];

/** A value that is allowed, and not the default. */
function otherValue(row: Setting) {
  const fallback = 'default' in row ? row.default : '';
  const candidates = [
    ...[true, false, Number(fallback) + 1, 7, 'debug', 'v2', 'slack', 'paid,failed', 'https://other.example'],
    ...['2030-01-31T09:00:00Z', '10.0.0.0/8', '6=https://x.example/{txhash}'],
  ];
  return String(candidates.find((each) => each !== fallback && row.rule.safeParse(each).success));
}

it('docker-compose.yml passes dclint without a warning', () => {
  const args = ['--max-warnings', '0', 'docker-compose.yml'];
  const { status, stdout } = spawnSync('node_modules/.bin/dclint', args, { cwd: ROOT, encoding: 'utf8' });
  expect({ status, stdout: stdout.trim() }).toEqual({ status: 0, stdout: '' });
}, 30_000);

it.each(LIVE)('docker-compose.yml gives %s each setting that exists, with the defaults of the code', (name) => {
  const settable = rows.filter((row) => !isSecret(row) && !SET_BY_COMPOSE.includes(row.variable));
  const others = Object.fromEntries(settable.map((row) => [row.variable, otherValue(row)]));
  expect(serviceOf(name, others).environment).toMatchObject(others);

  const { environment = {} } = serviceOf(name);
  const names = settable.map(({ variable }) => variable as VariableName);
  const required = { GATEWAY_PLATFORM_ID: '1', GATEWAY_BASE_URL: 'https://gateway.example' };
  expect(readConfig(names, { ...environment, ...required })).toEqual(readConfig(names, required));
  expect(inFile).toEqual(expect.arrayContaining(Object.keys(environment)));
});

it('docker-compose.yml has a file for each secret, and the gateway’s key for the worker alone', () => {
  const given = LIVE.flatMap((name) => {
    const { environment = {}, secrets = [] } = serviceOf(name);
    const mounted = secrets.map((each) => (typeof each === 'string' ? `/run/secrets/${each}` : each.target));
    expect(mounted.some((path) => path.includes('gateway_secret_key'))).toBe(name === 'worker');
    // A setting of its own (PAYOUT_ACCOUNTS_FILE) is a path, not the file of a secret.
    const files = Object.entries(environment).filter(
      ([variable]) => variable.endsWith('_FILE') && !rows.some((row) => row.variable === variable),
    );
    for (const [, path] of files) expect(mounted).toContain(path);
    return files.map(([variable]) => variable);
  });
  const secretFiles = rows.filter(isSecret).map(({ variable }) => `${variable}_FILE`);
  expect([...new Set(given)].sort()).toEqual(secretFiles.sort());
});

it('docker-compose.yml shares no volume and no secret of a real account with the sandbox, whose files alone are in the repository', () => {
  const { services, secrets } = readCompose();
  const used = (inSandbox: boolean, key: 'secrets' | 'volumes') =>
    Object.values(services)
      .filter(({ profiles = [] }) => profiles.includes('sandbox') === inSandbox)
      .flatMap((service) => (service[key] ?? []).map((each) => (typeof each === 'string' ? each : each.source)))
      .map((each) => each.split(':')[0] ?? '');
  for (const key of ['secrets', 'volumes'] as const) {
    expect(used(true, key).filter((each) => used(false, key).includes(each))).toEqual([]);
    expect(used(true, key).length).toBeGreaterThan(1);
  }
  for (const [name, { file }] of Object.entries(secrets)) {
    expect({ name, exists: existsSync(join(ROOT, file)) }).toEqual({ name, exists: name.startsWith('sandbox_') });
  }
});

it('docker-compose.yml starts worker and dashboard of the sandbox with its settings', () => {
  const files = { REDIS_URL_FILE: '', GATEWAY_SECRET_KEY_FILE: '', DASHBOARD_PASSWORD_FILE: '' };
  const own = { ...serviceOf('sandbox-worker').environment, ...files, GATEWAY_SECRET_KEY: 'k-sandbox-only' };
  const ofAccount = { ...settings.ACCOUNT_IDENTITY, ...settings.ACCOUNT_SETTINGS };
  const ofPrograms = {
    ...settings.WORKER_SETTINGS,
    ...settings.WORKER_COMMAND_SETTINGS,
    ...settings.DASHBOARD_SETTINGS,
  };
  expect(() => readSettings({ ...ofAccount, ...ofPrograms }, own)).not.toThrow();
});

it('docker-compose.yml lets no service write but to volumes and memory, or have a capability, and pins each', () => {
  const rights = { cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] };
  const hardened = { ...rights, read_only: 'true', tmpfs: ['/tmp'] };
  for (const service of Object.values(readCompose().services)) {
    expect(service).toMatchObject(hardened);
    expect(service.image).toMatch(/^(payout-queue:local|redis:\d+\.\d+\.\d+-\w+(@sha256:\w+)?)$/);
  }
});

/** What compose starts as Redis with this secret, with the paths of the container in a folder of the test. */
async function startRedis(redisUrl: string) {
  const dir = await folderOfTest('compose');
  const port = await findFreePort();
  await writeFile(join(dir, 'redis_url'), redisUrl);
  const { command: [shell = '', option = '', script = ''] = [], healthcheck } = serviceOf('redis');
  const inFolder = (text = '') => text.replace(/\/run\/secrets\/|\/tmp\//g, `${dir}/`);
  const { result, kill } = startProgram(shell, [option, `${inFolder(script)} --port ${port} --dir ${dir}`]);
  afterTest(async () => {
    kill('SIGKILL');
    await result;
  });
  const check = inFolder(healthcheck?.test[1]).replace('redis-cli', `redis-cli -p ${port}`);
  return { result, kill, port, health: () => spawnSync('sh', ['-c', check]).status };
}

it('docker-compose.yml has a Redis that asks for the password of the URL, forgets nothing, is healthy, and ends in good order', async () => {
  const { result, kill, port, health } = await startRedis(`redis://:s3cret_pass-word@redis:6379\n`);
  await until('it is healthy', () => health() === 0);
  const stranger = new Redis(port, { lazyConnect: true, retryStrategy: null }).on('error', () => undefined);
  await expect(stranger.get('key')).rejects.toThrow('NOAUTH');
  stranger.disconnect();
  const redis = new Redis(port, { password: 's3cret_pass-word' });
  expect((await checkDurability(redis)).problems).toEqual([]);
  redis.disconnect();
  kill('SIGTERM');
  expect(await result).toMatchObject({ code: 0 });
  expect(health()).not.toBe(0);
});

it.each(['redis://redis:6379', 'redis://:p$(id)@redis:6379'])(
  'docker-compose.yml starts no Redis with %j',
  async (url) => {
    const stderr: unknown = expect.stringContaining('redis_url must be redis://:PASSWORD@HOST:6379');
    expect(await (await startRedis(url)).result).toMatchObject({ code: 1, stderr });
  },
);

const SYSTEMD = 'deploy/systemd';
const unitOf = (name: string) => read(`${SYSTEMD}/payouts-${name}.service`);

const UNITS = ['dashboard', 'notify', 'serve', 'worker'];
const isInstalled = spawnSync('systemd-analyze', ['--version']).status === 0;
(isInstalled ? it : it.skip).each(UNITS)(
  'payouts-%s.service passes systemd-analyze verify, and is hardened',
  (name) => {
    const analyze = (...args: readonly string[]) =>
      spawnSync('systemd-analyze', [...args, join(ROOT, SYSTEMD, `payouts-${name}.service`)], { encoding: 'utf8' });
    const { status, stdout, stderr } = analyze('verify');
    expect({ status, output: stdout + stderr }).toEqual({ status: 0, output: '' });
    const [, exposure] = /exposure level for \S+: ([\d.]+)/.exec(analyze('security', '--offline=true').stdout) ?? [];
    expect(Number(exposure)).toBeLessThan(2);
  },
);

it.each(UNITS)(
  'payouts-%s.service restarts, reads the settings, and sets variables that exist to credentials that it loads',
  (name) => {
    const unit = unitOf(name);
    for (const line of ['WantedBy=multi-user.target', 'Restart=always', 'EnvironmentFile=/etc/payouts/payouts.env']) {
      expect(unit).toContain(line);
    }
    expect(unit).toMatch(new RegExp(`^ExecStart=/usr/bin/env .*payouts ${name}$`, 'm'));
    const set = [...unit.matchAll(/([A-Z_]+)=%d\/([\w-]+)/g)];
    for (const [, variable, credential = ''] of set) {
      expect(variables).toContain(variable);
      expect(unit).toContain(`LoadCredential=${credential}:/etc/payouts/secrets/${credential}`);
    }
    expect([...unit.matchAll(/^LoadCredential=/gm)].length).toBe(set.length);
  },
);

it('payouts.env sets variables that exist, and reads alike for systemd and a shell', () => {
  for (const line of read(`${SYSTEMD}/payouts.env`).split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    expect(line).toMatch(/^[A-Z_]+=[\w./:-]+$/);
    expect(variables).toContain(line.split('=')[0]);
  }
});

const isRoot = process.getuid?.() === 0;

(isRoot ? it : it.skip)('payouts-admin runs `payouts` as the worker’s user, with its settings', async () => {
  const dir = await folderOfTest('admin');
  await chmod(dir, 0o755);
  await writeFile(join(dir, 'payouts'), '#!/bin/sh\necho "$(id -un) $GATEWAY_PLATFORM_ID $#:$2"\n', { mode: 0o755 });
  await writeFile(join(dir, 'payouts.env'), '# settings\nGATEWAY_PLATFORM_ID=4243\n');
  const PATH = `${dir}:${process.env['PATH'] ?? ''}`;
  const { status, stdout } = spawnSync(join(ROOT, SYSTEMD, 'payouts-admin'), ['pause', '--reason=two words'], {
    env: { PATH, PAYOUTS_ENV: join(dir, 'payouts.env'), PAYOUTS_USER: 'nobody' },
    encoding: 'utf8',
  });
  expect({ status, stdout }).toEqual({ status: 0, stdout: 'nobody 4243 2:--reason=two words\n' });
});

interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

const KUBERNETES = 'deploy/kubernetes';
const manifests = readdirSync(join(ROOT, KUBERNETES)).filter((name) => name !== 'kustomization.yaml');
const objects = manifests.flatMap((name) =>
  parseAllDocuments(read(`${KUBERNETES}/${name}`)).map((document) => document.toJS() as KubernetesObject),
);
const workloads = objects.filter(({ kind }) => /^(StatefulSet|Deployment)$/.test(kind)) as unknown as (
  StatefulSet | Deployment
)[];

function find(kind: string, name: string) {
  return objects.find((each) => each.kind === kind && each.metadata.name === name);
}

const worker = find('StatefulSet', 'payouts-worker') as StatefulSet;

/** What the compiler says of objects: of a field that does not exist, too, which most JSON schemas of Kubernetes allow. */
async function findMistakes(found: readonly KubernetesObject[]) {
  const path = join(await folderOfTest('kubernetes'), 'objects.ts');
  const lines = found.map((object, index) => {
    const { apiVersion, kind } = object;
    const module = `kubernetes-types/${apiVersion.includes('/') ? apiVersion : `core/${apiVersion}`}.js`;
    return `export const o${index}: import('${module}').${kind} = ${JSON.stringify(object)};`;
  });
  await writeFile(path, lines.join('\n'));
  const program = ts.createProgram([path], {
    ...{ strict: true, noEmit: true, skipLibCheck: true, types: [], lib: ['lib.es2022.d.ts'] },
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    paths: { 'kubernetes-types/*': [join(ROOT, 'node_modules/kubernetes-types/*')] },
  });
  return ts.getPreEmitDiagnostics(program).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '));
}

it('deploy/kubernetes fits the API of Kubernetes, where a wrong field would be found', async () => {
  const broken = JSON.stringify(worker).replace('"readinessProbe"', '"readinesProbe"');
  const mistakes = await findMistakes([...objects, JSON.parse(broken) as KubernetesObject]);
  expect(mistakes).toEqual([expect.stringMatching(/readinesProbe/)]);
});

it('deploy/kubernetes keeps the journal of the worker on a volume that outlives it, and gives it alone the key of the gateway', () => {
  const { spec } = worker;
  expect(spec?.volumeClaimTemplates?.map(({ metadata }) => metadata?.name)).toEqual(['journal']);
  expect(spec?.persistentVolumeClaimRetentionPolicy).toEqual({ whenDeleted: 'Retain', whenScaled: 'Retain' });
  const [container] = spec?.template.spec?.containers ?? [];
  const mounted = container?.volumeMounts?.find(({ name }) => name === 'journal')?.mountPath;
  expect(container?.env).toContainEqual({ name: 'SEND_JOURNAL_DIR', value: mounted });
  const withKey = workloads.filter((each) => JSON.stringify(each).includes('GATEWAY_SECRET_KEY'));
  expect(withKey.map(({ metadata }) => metadata?.name)).toEqual(['payouts-worker']);
});

it.each(workloads.map((each) => [each.metadata?.name, each.spec] as const))(
  'restricts %s, whose probes, Service, volumes and variables exist',
  (_name, spec) => {
    const pod = spec?.template.spec;
    const [container] = pod?.containers ?? [];
    expect(pod?.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
    const restricted = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true };
    expect(container?.securityContext).toEqual({ ...restricted, capabilities: { drop: ['ALL'] } });

    expect(spec?.template.metadata?.labels).toEqual(spec?.selector.matchLabels);
    const ports = container?.ports?.map(({ name }) => name);
    for (const probe of [container?.livenessProbe, container?.readinessProbe]) {
      expect(ports).toContain(probe?.httpGet?.port ?? probe?.tcpSocket?.port);
    }
    const component = (labels: Record<string, string> = {}) => labels['app.kubernetes.io/component'];
    for (const service of objects.filter(({ kind }) => kind === 'Service') as unknown as Service[]) {
      if (component(service.spec?.selector) !== component(spec?.selector.matchLabels)) continue;
      expect(ports).toContain(service.spec?.ports?.[0]?.targetPort);
    }

    const claims = (spec as StatefulSet['spec'])?.volumeClaimTemplates?.map(({ metadata }) => metadata?.name) ?? [];
    const volumes = pod?.volumes?.map(({ name }) => name) ?? [];
    expect(container?.volumeMounts?.map(({ name }) => name).sort()).toEqual([...volumes, ...claims].sort());
    expect(inFile).toEqual(expect.arrayContaining((container?.env ?? []).map(({ name }) => name)));
  },
);

it('deploy/kubernetes has settings that are variables with allowed values', () => {
  const { data = {} } = find('ConfigMap', 'payouts-settings') as ConfigMap;
  expect(() => readConfig(Object.keys(data) as VariableName[], data)).not.toThrow();
});

it('deploy/kubernetes gives a stop of the worker 15 s more than WITHDRAW_TIMEOUT_MS, as compose and systemd do', () => {
  const grace = (environment?: Record<string, string>) => serviceOf('worker', environment).stop_grace_period;
  expect([grace(), grace({ WITHDRAW_TIMEOUT_MS: '90000' })]).toEqual(['60000ms15s', '90000ms15s']);
  const unit = unitOf('worker');
  const [, systemd] = /^TimeoutStopSec=(\d+)$/m.exec(unit) ?? [];
  for (const seconds of [worker.spec?.template.spec?.terminationGracePeriodSeconds, Number(systemd)])
    expect(seconds).toBeGreaterThanOrEqual(WITHDRAW_TIMEOUT_MS / 1_000 + 15);
  expect(unit).toMatch(/^ExecReload=\/bin\/kill -HUP \$MAINPID$/m);
});

it('deploy/kubernetes has the HTTP door, and notifications, off by default, as compose and systemd do; it has no key of the gateway', () => {
  const { resources } = parse(read(`${KUBERNETES}/kustomization.yaml`)) as { resources: string[] };
  expect([...resources, 'notify.yaml', 'serve.yaml'].sort()).toEqual(manifests.sort());
  expect(serviceOf('serve')).toMatchObject({ profiles: ['http'], ports: ['127.0.0.1:3100:3100'] });
  const unit = unitOf('serve');
  expect(unit).toMatch(/^User=payouts-serve$/m);
  expect(read(`${SYSTEMD}/payouts.sysusers`)).toMatch(/^u payouts-serve /m);
  expect(unit).not.toMatch(/DynamicUser|gateway-secret-key|GATEWAY_/);
  expect(read('docs/deploy.md')).not.toMatch(/^ *systemctl enable .*payouts-serve/m);
});

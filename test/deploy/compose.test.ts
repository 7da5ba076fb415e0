import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { readConfig, readSettings, type VariableName } from '../../src/base/config.js';
import type { Setting } from '../../src/base/setting.js';
import { ACCOUNT_IDENTITY, ACCOUNT_SETTINGS, DASHBOARD_SETTINGS, SETTINGS } from '../../src/base/settings.js';
import { WORKER_COMMAND_SETTINGS, WORKER_SETTINGS } from '../../src/base/settings.js';
import { checkDurability } from '../../src/ledger/redis-durability.js';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { until } from '../support/until.js';
import { afterTest, folderOfTest } from '../worker/support/close-after-test.js';
import { readCompose, ROOT, type ComposeService } from './read-compose.js';

const rows: readonly Setting[] = Object.values(SETTINGS);
const LIVE = ['worker', 'dashboard', 'notify', 'serve'];

/** Paths, hosts and ports inside a container, which compose itself decides. */
const SET_BY_COMPOSE = [
  ...['ALLOW_READABLE_SECRETS', 'SEND_JOURNAL_DIR', 'HEALTH_HOST', 'HEALTH_PORT'],
  ...['DASHBOARD_HOST', 'DASHBOARD_PORT', 'NOTIFY_HEALTH_PORT'],
  ...['SERVE_HOST', 'SERVE_PORT', 'SERVE_HEALTH_PORT', 'SERVE_TOKENS_FILE'],
];

function serviceOf(name: string, environment: Record<string, string> = {}): ComposeService {
  const service = readCompose(environment).services[name];
  if (service === undefined) throw new Error(`there is no service ${name}`);
  return service;
}

/** A value that is allowed, and not the default. */
function otherValue(row: Setting): string {
  const fallback = 'default' in row ? row.default : '';
  const candidates = [
    ...[true, false, Number(fallback) + 1, 7, 'debug', 'slack', 'paid,failed', 'https://other.example'],
    ...['2030-01-31T09:00:00Z', '10.0.0.0/8', '6=https://x.example/{txhash}'],
  ];
  return String(candidates.find((each) => each !== fallback && row.rule.safeParse(each).success));
}

it('passes dclint without a warning', () => {
  const args = ['--max-warnings', '0', 'docker-compose.yml'];
  const { status, stdout } = spawnSync('node_modules/.bin/dclint', args, { cwd: ROOT, encoding: 'utf8' });
  expect({ status, stdout: stdout.trim() }).toEqual({ status: 0, stdout: '' });
}, 30_000);

it.each(LIVE)('%s is given each setting that exists, with the defaults of the code', (name) => {
  const settable = rows.filter(({ secret, variable }) => secret !== true && !SET_BY_COMPOSE.includes(variable));
  const others = Object.fromEntries(settable.map((row) => [row.variable, otherValue(row)]));
  expect(serviceOf(name, others).environment).toMatchObject(others);

  const { environment = {} } = serviceOf(name);
  const names = settable.map(({ variable }) => variable as VariableName);
  const required = { GATEWAY_PLATFORM_ID: '1', GATEWAY_BASE_URL: 'https://gateway.example' };
  expect(readConfig(names, { ...environment, ...required })).toEqual(readConfig(names, required));
  const known = rows.map(({ variable, secret }) => (secret === true ? `${variable}_FILE` : variable));
  expect(known).toEqual(expect.arrayContaining(Object.keys(environment)));
});

it('the services have a file for each secret, and the gateway’s key is for the worker alone', () => {
  const given = LIVE.flatMap((name) => {
    const { environment = {}, secrets = [] } = serviceOf(name);
    const mounted = secrets.map((each) => (typeof each === 'string' ? `/run/secrets/${each}` : each.target));
    expect(mounted.some((path) => path.includes('gateway_secret_key'))).toBe(name === 'worker');
    // A setting of its own (PAYOUT_ACCOUNTS_FILE) is a path, not the file of a secret.
    const files = Object.entries(environment).filter(
      ([variable]) => variable.endsWith('_FILE') && !rows.some((row) => row.variable === variable),
    );
    for (const [, path] of files) expect(mounted).toContain(path);
    return files.map(([variable]) => variable.replace(/_FILE$/, ''));
  });
  const secrets = rows.filter(({ secret }) => secret === true).map(({ variable }) => variable);
  expect([...new Set(given)].sort()).toEqual(secrets.sort());
});

it('the HTTP door is off by default, and on loopback of the host', () => {
  expect(serviceOf('serve')).toMatchObject({ profiles: ['http'], ports: ['127.0.0.1:3100:3100'] });
});

describe('the sandbox profile', () => {
  it('shares no volume and no secret with a real account, whose files are not in the repository', () => {
    const { services, secrets } = readCompose({});
    const used = (inSandbox: boolean, key: 'secrets' | 'volumes'): string[] =>
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

  it('has settings with which worker and dashboard start', () => {
    const files = { REDIS_URL_FILE: '', GATEWAY_SECRET_KEY_FILE: '', DASHBOARD_PASSWORD_FILE: '' };
    const own = { ...serviceOf('sandbox-worker').environment, ...files, GATEWAY_SECRET_KEY: 'k-sandbox-only' };
    const tables = [ACCOUNT_IDENTITY, ACCOUNT_SETTINGS, WORKER_SETTINGS, WORKER_COMMAND_SETTINGS, DASHBOARD_SETTINGS];
    for (const table of tables) expect(() => readSettings(table, own)).not.toThrow();
  });
});

it('a stop of the worker takes 15 s more than WITHDRAW_TIMEOUT_MS', () => {
  expect(serviceOf('worker').stop_grace_period).toBe('60000ms15s');
  for (const name of ['worker', 'sandbox-worker']) {
    expect(serviceOf(name, { WITHDRAW_TIMEOUT_MS: '90000' }).stop_grace_period).toBe('90000ms15s');
  }
});

it('no service can write but to volumes and memory, or has a capability, and each is pinned', () => {
  const hardened = { read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'], tmpfs: ['/tmp'] };
  for (const service of Object.values(readCompose({}).services)) {
    expect(service).toMatchObject(hardened);
    expect(service.image).toMatch(/^(payout-queue:local|redis:\d+\.\d+\.\d+-\w+(@sha256:\w+)?)$/);
  }
});

/** What compose starts as Redis with this secret, with the paths of the container in a folder of the test. */
async function startRedis(redisUrl: string): Promise<{ server: ChildProcess; port: number; health: () => unknown }> {
  const dir = await folderOfTest('compose');
  const port = await findFreePort();
  await writeFile(join(dir, 'redis_url'), redisUrl);
  const { command: [shell = '', option = '', script = ''] = [], healthcheck } = serviceOf('redis');
  const inFolder = (text = ''): string => text.replace(/\/run\/secrets\/|\/tmp\//g, `${dir}/`);
  const own = ` --port ${port} --dir ${dir}`;
  const server = spawn(shell, [option, inFolder(script) + own], { stdio: ['ignore', 'ignore', 'pipe'] });
  afterTest(async () => {
    if (server.exitCode === null && server.kill('SIGKILL')) await once(server, 'exit');
  });
  const check = inFolder(healthcheck?.test[1]).replace('redis-cli', `redis-cli -p ${port}`);
  return { server, port, health: () => spawnSync('sh', ['-c', check]).status };
}

it('Redis asks for the password of the URL, forgets nothing, is healthy, and ends in good order', async () => {
  const { server, port, health } = await startRedis(`redis://:s3cret_pass-word@redis:6379\n`);
  await until('it is healthy', () => health() === 0);
  const stranger = new Redis(port, { lazyConnect: true, retryStrategy: null }).on('error', () => undefined);
  await expect(stranger.get('key')).rejects.toThrow('NOAUTH');
  stranger.disconnect();
  const redis = new Redis(port, { password: 's3cret_pass-word' });
  expect((await checkDurability(redis)).problems).toEqual([]);
  redis.disconnect();
  server.kill('SIGTERM');
  expect(await once(server, 'exit')).toEqual([0, null]);
  expect(health()).not.toBe(0);
});

it.each(['redis://redis:6379', 'redis://:p$(id)@redis:6379'])('Redis does not start with %j', async (url) => {
  const { server } = await startRedis(url);
  let errors = '';
  server.stderr?.on('data', (text: Buffer) => (errors += text.toString()));
  expect(await once(server, 'close')).toEqual([1, null]);
  expect(errors).toContain('redis_url must be redis://:PASSWORD@HOST:6379');
});

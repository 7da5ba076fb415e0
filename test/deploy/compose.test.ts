import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { readConfig, readSettings, type VariableName } from '../../src/base/config.js';
import type { Setting } from '../../src/base/setting.js';
import {
  ACCOUNT_IDENTITY,
  ACCOUNT_SETTINGS,
  DASHBOARD_SETTINGS,
  SETTINGS,
  WORKER_COMMAND_SETTINGS,
  WORKER_SETTINGS,
} from '../../src/base/settings.js';
import { readCompose, ROOT, type ComposeService } from './support/read-compose.js';

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
  const value = candidates.find((each) => each !== fallback && row.rule.safeParse(each).success);
  if (value === undefined) throw new Error(`no other value of ${row.variable} is known to this test`);
  return String(value);
}

it('passes dclint without a warning', () => {
  const result = spawnSync('node_modules/.bin/dclint', ['--max-warnings', '0', 'docker-compose.yml'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  expect({ status: result.status, stdout: result.stdout.trim() }).toEqual({ status: 0, stdout: '' });
}, 30_000);

describe.each(LIVE)('%s', (name) => {
  const settable = rows.filter(({ secret }) => secret !== true);

  it('is given every setting, except those that compose decides', () => {
    const isDecided = ({ variable }: Setting): boolean => SET_BY_COMPOSE.includes(variable);
    const others = settable.map((row) => [row.variable, otherValue(row)] as const);
    const { environment = {} } = serviceOf(name, Object.fromEntries(others));
    for (const row of settable.filter(isDecided)) {
      const value = toValue(environment[row.variable] ?? '');
      expect([row.variable, row.rule.safeParse(value).success]).toEqual([row.variable, true]);
    }
    const given = others.filter(([variable]) => !SET_BY_COMPOSE.includes(variable));
    expect(environment).toMatchObject(Object.fromEntries(given));
  });

  it('has the defaults of the code where nothing is set, and sets no variable that does not exist', () => {
    const { environment = {} } = serviceOf(name);
    const names = settable
      .map(({ variable }) => variable as VariableName)
      .filter((variable) => !SET_BY_COMPOSE.includes(variable));
    const required = { GATEWAY_PLATFORM_ID: '1', GATEWAY_BASE_URL: 'https://gateway.example' };
    expect(readConfig(names, { ...environment, ...required })).toEqual(readConfig(names, required));
    const known = rows.flatMap(({ variable, secret }) => (secret === true ? [`${variable}_FILE`] : [variable]));
    expect(Object.keys(environment).filter((each) => !known.includes(each))).toEqual([]);
  });
});

it('together the services have a file for each secret that is documented, and mount it', () => {
  const given = LIVE.flatMap((name) => {
    const { environment = {}, secrets = [] } = serviceOf(name);
    return Object.entries(environment).filter(([variable, path]) => {
      // A setting of its own (PAYOUT_ACCOUNTS_FILE) is a path, not the file of a secret.
      if (!variable.endsWith('_FILE') || rows.some((row) => row.variable === variable)) return false;
      expect(secrets.map((each) => (typeof each === 'string' ? `/run/secrets/${each}` : each.target))).toContain(path);
      return true;
    });
  }).map(([variable]) => variable.replace(/_FILE$/, ''));
  const secrets = rows.filter(({ secret }) => secret === true).map(({ variable }) => variable);
  expect([...new Set(given)].sort()).toEqual(secrets.sort());
});

it('the HTTP door is off by default, and on loopback of the host', () => {
  expect(serviceOf('serve').profiles).toEqual(['http']);
  expect(serviceOf('serve').ports).toEqual(['127.0.0.1:3100:3100']);
});

it('gives the gateway’s key to the worker alone', () => {
  expect(LIVE.filter((name) => serviceOf(name).secrets?.includes('gateway_secret_key'))).toEqual(['worker']);
});

describe('the sandbox profile', () => {
  const { services, secrets } = readCompose({});
  const sandbox = Object.entries(services).filter(([, { profiles }]) => profiles?.includes('sandbox'));

  it('shares no service, no volume and no secret with a real account', () => {
    const all = Object.entries(services);
    expect(all.every(([, { profiles = [] }]) => profiles.length === 1)).toBe(true);
    const used = (inSandbox: boolean, key: 'secrets' | 'volumes'): string[] =>
      all
        .filter(([name]) => sandbox.some(([other]) => other === name) === inSandbox)
        .flatMap(([, service]) => (service[key] ?? []).map((each) => (typeof each === 'string' ? each : each.source)))
        .map((each) => each.split(':')[0] ?? '');
    for (const key of ['secrets', 'volumes'] as const) {
      expect(used(true, key).filter((each) => used(false, key).includes(each))).toEqual([]);
      expect(used(true, key).length).toBeGreaterThan(1);
    }
  });

  it('needs no file that is not in the repository, and a real account needs files that are not', () => {
    for (const [name, { file }] of Object.entries(secrets)) {
      expect({ name, exists: existsSync(join(ROOT, file)) }).toEqual({ name, exists: name.startsWith('sandbox_') });
    }
  });

  it('has settings with which worker and dashboard start', () => {
    const url = { REDIS_URL_FILE: '', GATEWAY_SECRET_KEY_FILE: '', DASHBOARD_PASSWORD_FILE: '' };
    const own = { ...serviceOf('sandbox-worker').environment, ...url, GATEWAY_SECRET_KEY: 'k-sandbox-only' };
    const tables = [ACCOUNT_IDENTITY, ACCOUNT_SETTINGS, WORKER_SETTINGS, WORKER_COMMAND_SETTINGS, DASHBOARD_SETTINGS];
    for (const table of tables) expect(() => readSettings(table, own)).not.toThrow();
  });
});

it('a stop of the worker takes 15 s more than WITHDRAW_TIMEOUT_MS', () => {
  expect(serviceOf('worker').stop_grace_period).toBe('60000ms15s');
  expect(serviceOf('worker', { WITHDRAW_TIMEOUT_MS: '90000' }).stop_grace_period).toBe('90000ms15s');
  expect(serviceOf('sandbox-worker', { WITHDRAW_TIMEOUT_MS: '90000' }).stop_grace_period).toBe('90000ms15s');
});

describe.each(Object.entries(readCompose({}).services))('%s', (_name, service) => {
  it('cannot write but to volumes and memory, has no capability, and is pinned', () => {
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      tmpfs: ['/tmp'],
    });
    expect(service.image).toMatch(/^(payout-queue:local|redis:\d+\.\d+\.\d+-\w+(@sha256:\w+)?)$/);
  });
});

function toValue(text: string): unknown {
  if (/^\d+$/.test(text)) return Number(text);
  return text === 'true' ? true : text;
}

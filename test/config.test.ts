import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { findMisspelt, readConfig, readSettings, type Environment, type VariableName } from '../src/base/config.js';
import { InvalidConfigError } from '../src/base/errors.js';
import { ACCOUNT_SETTINGS, explorersField, proxiesField, WORKER_SETTINGS } from '../src/base/settings.js';

const folder = mkdtempSync(join(tmpdir(), 'payouts-config-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

function secretFile(content: string, mode = 0o600) {
  const path = join(folder, String(Math.random()));
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}

function problemsOf(names: readonly VariableName[], environment: Environment): Record<string, string> {
  try {
    readConfig(names, environment);
    return {};
  } catch (error) {
    const { problems } = error as InvalidConfigError;
    return Object.fromEntries(problems.map(({ field, message }) => [field, message]));
  }
}

it('readConfig fills in the defaults, reads numbers, flags and addresses, and freezes the result', () => {
  const names = ['GATEWAY_PLATFORM_ID', 'GATEWAY_BASE_URL', 'REDIS_URL', 'WITHDRAW_INTERVAL_MS'] as const;
  const base = { GATEWAY_PLATFORM_ID: '42', GATEWAY_BASE_URL: 'https://g.example/api/', DASHBOARD_PASSWORD: '' };
  // An empty variable is not set, and one that is not named is not read.
  const environment = { ...base, LOG_LEVEL: '', ALLOW_VOLATILE_REDIS: 'true', STATUS_POLL_RATE: 'x' };
  const more = ['LOG_LEVEL', 'ALLOW_VOLATILE_REDIS', 'DASHBOARD_USER', 'DASHBOARD_PASSWORD'] as const;
  const config = readConfig([...names, ...more], environment);
  expect(config).toEqual({
    ...{ GATEWAY_PLATFORM_ID: 42, GATEWAY_BASE_URL: 'https://g.example/api', REDIS_URL: 'redis://127.0.0.1:6379' },
    ...{ WITHDRAW_INTERVAL_MS: 1_010, LOG_LEVEL: 'info', ALLOW_VOLATILE_REDIS: true },
  });
  expect(Object.isFrozen(config)).toBe(true);
});

it('readConfig reports every problem at once, each with its variable, rule and value', () => {
  const problems = problemsOf(
    [
      ...(['GATEWAY_PLATFORM_ID', 'GATEWAY_BASE_URL', 'GATEWAY_SECRET_KEY', 'WITHDRAW_INTERVAL_MS'] as const),
      ...(['HEALTH_PORT', 'LOG_LEVEL'] as const),
    ],
    { GATEWAY_BASE_URL: 'http://g.example', WITHDRAW_INTERVAL_MS: '999', HEALTH_PORT: '65536', LOG_LEVEL: 'loud' },
  );
  expect(problems).toEqual({
    GATEWAY_PLATFORM_ID: 'is required',
    GATEWAY_BASE_URL: 'must begin with https:// (http:// is allowed for 127.0.0.1, ::1 and localhost only)',
    GATEWAY_SECRET_KEY: 'is required (or GATEWAY_SECRET_KEY_FILE, a file that holds it)',
    WITHDRAW_INTERVAL_MS: 'must be a whole number from 1000 to 2147483647 (got "999")',
    HEALTH_PORT: 'must be a whole number from 0 to 65535 (got "65536")',
    LOG_LEVEL: 'must be one of trace, debug, info, warn, error, fatal, silent (got "loud")',
  });
});

it('readConfig takes an interval of a second, and none that is shorter or no whole number', () => {
  for (const value of ['999', '1010.5', '1e4', ' 1010', '1000']) {
    const problems = problemsOf(['WITHDRAW_INTERVAL_MS'], { WITHDRAW_INTERVAL_MS: value });
    expect([value, ...Object.keys(problems)]).toEqual(value === '1000' ? [value] : [value, 'WITHDRAW_INTERVAL_MS']);
  }
});

it('readSettings names settings as the options do, and a problem by its variable', () => {
  const environment = { REDIS_REPLICAS: '2', ALLOW_VOLATILE_REDIS: 'true', SEND_JOURNAL_DIR: '/data' };
  expect(readSettings(WORKER_SETTINGS, environment)).toEqual({
    ...{ redisUrl: 'redis://127.0.0.1:6379', allowVolatileRedis: true, redisReplicas: 2 },
    ...{ journalDir: '/data', journalDays: 30 },
  });
  const read = () => readSettings(ACCOUNT_SETTINGS, { LEASE_MS: '1', STATUS_POLL_RATE: '0' });
  expect(read).toThrow(/LEASE_MS: must be .*\(got "1"\).*STATUS_POLL_RATE: must be .*\(got "0"\)/s);
});

describe('secrets', () => {
  it.each([
    ['GATEWAY_SECRET_KEY', 's3cret\r\n', 's3cret'],
    ['GATEWAY_SECRET_KEY', ' s3cret \n\n', ' s3cret \n'],
    ['REDIS_URL', 'redis://u:p@h:1', 'redis://u:p@h:1'],
    // No secret.
    ['LOG_LEVEL', 'debug', 'info'],
  ] as const)('can be in a file: %s of %j', (name, content, value) => {
    expect(readConfig([name], { [`${name}_FILE`]: secretFile(content) })[name]).toBe(value);
  });

  const KEY = ['GATEWAY_SECRET_KEY'] as const;
  const REQUIRED = 'is required (or GATEWAY_SECRET_KEY_FILE, a file that holds it)';

  it.each<[string, () => Environment, Record<string, unknown>]>([
    [
      'also in the variable',
      () => ({ GATEWAY_SECRET_KEY: 'hunter2', GATEWAY_SECRET_KEY_FILE: secretFile('hunter3') }),
      { GATEWAY_SECRET_KEY_FILE: 'is set, but so is GATEWAY_SECRET_KEY: use one of them' },
    ],
    [
      'not there',
      () => ({ GATEWAY_SECRET_KEY_FILE: join(folder, 'missing') }),
      { GATEWAY_SECRET_KEY_FILE: expect.stringMatching(/^cannot be read: ENOENT/) },
    ],
    ['empty', () => ({ GATEWAY_SECRET_KEY_FILE: secretFile('\n') }), { GATEWAY_SECRET_KEY: 'must not be empty' }],
    ['not set', () => ({ GATEWAY_SECRET_KEY: '', GATEWAY_SECRET_KEY_FILE: '' }), { GATEWAY_SECRET_KEY: REQUIRED }],
  ])('are refused where the file is %s', (_, environment, problems) => {
    expect(problemsOf(KEY, environment())).toEqual(problems);
  });

  it.each([0o604, 0o602])('are refused when every user can read or write their file: mode %o', (mode) => {
    const environment = { GATEWAY_SECRET_KEY_FILE: secretFile('hunter2', mode) };
    expect(problemsOf(KEY, environment)).toEqual({
      GATEWAY_SECRET_KEY_FILE: expect.stringContaining(`(mode 0${mode.toString(8)}): run \`chmod o-rw `),
    });
    expect(problemsOf(KEY, { GATEWAY_SECRET_KEY_FILE: secretFile('hunter2', mode & 0o640) })).toEqual({});
    const inContainer = { ...environment, ALLOW_READABLE_SECRETS: 'true' };
    expect(readConfig(KEY, inContainer).GATEWAY_SECRET_KEY).toBe('hunter2');
  });

  it('are refused as a pipe that others may have put there', () => {
    const open = mkdtempSync(join(folder, 'open-'));
    const pipe = join(open, 'key');
    execFileSync('mkfifo', ['-m', '600', pipe]);
    const problemOnceWritten = (): string | undefined => {
      const writer = spawn('sh', ['-c', 'printf hunter2 > "$0"', pipe], { stdio: 'ignore' });
      try {
        return problemsOf(KEY, { GATEWAY_SECRET_KEY_FILE: pipe })['GATEWAY_SECRET_KEY_FILE'];
      } finally {
        writer.kill('SIGKILL');
      }
    };
    expect(problemOnceWritten()).toBeUndefined();
    chmodSync(open, 0o777);
    expect(problemOnceWritten()).toContain(`others than its owner can write ${open}`);
  });

  it.each<[VariableName, string]>([
    ['REDIS_URL', 'redis://u:hunter2'],
    ['REDIS_URL', 'hunter2'],
    ['GATEWAY_BASE_URL', 'https://u:hunter2@g.example'],
  ])('never show in an error: %s=%s', (name, value) => {
    for (const environment of [{ [name]: value }, { [`${name}_FILE`]: secretFile(value) }]) {
      const read = () => readConfig([name], environment);
      expect(read).toThrow(InvalidConfigError);
      expect(read).not.toThrow(/hunter2/);
    }
  });
});

it('findMisspelt finds a variable that is nearly known, and no other', () => {
  const names = [
    ...['PATH', 'REDIS_SERVICE_HOST', 'REDIS_URL_FILE', 'WITHDRAW_INTERVALL_MS', 'GATEWAY_SECRET_KEY_FIEL'],
  ];
  const environment = Object.fromEntries(names.map((name) => [name, 'x']));
  expect(findMisspelt({ ...environment, LEASE_MSS: '' })).toEqual([
    { variable: 'WITHDRAW_INTERVALL_MS', meant: 'WITHDRAW_INTERVAL_MS' },
    { variable: 'GATEWAY_SECRET_KEY_FIEL', meant: 'GATEWAY_SECRET_KEY_FILE' },
  ]);
  expect(problemsOf(['GATEWAY_PLATFORM_ID'], { GATEWAY_PLATFROM_ID: '7' })).toEqual({
    GATEWAY_PLATFORM_ID: 'is required: is GATEWAY_PLATFROM_ID misspelt?',
  });
});

it('PAYOUT_EXPLORERS is a template of each currency', () => {
  const [six, one] = ['https://tronscan.org/#/transaction/{txhash}', 'https://x.example/tx?id={txhash}&chain=btc'];
  expect([...explorersField.parse(`6=${six}, 1=${one}`)]).toEqual([
    [6, six],
    [1, one],
  ]);
});

it.each([
  ['6=http://explorer.example/{txhash}', 'must be a URL of https://'],
  ['6=https://a.example/{txhash},6=https://b.example/{txhash}', 'names a payment_id twice'],
])('PAYOUT_EXPLORERS refuses %s', (text, message) => {
  expect(problemsOf(['PAYOUT_EXPLORERS'], { PAYOUT_EXPLORERS: text })['PAYOUT_EXPLORERS']).toContain(message);
});

it('DASHBOARD_TRUSTED_PROXIES is addresses and networks', () => {
  const text = 'loopback, 10.0.0.0/8,192.0.2.1,2001:db8::/32';
  expect(proxiesField.parse(text)).toEqual(['loopback', '10.0.0.0/8', '192.0.2.1', '2001:db8::/32']);
  for (const wrong of ['10.0.0.0/33', '2001:db8::/129', 'proxy.example'])
    expect(problemsOf(['DASHBOARD_TRUSTED_PROXIES'], { DASHBOARD_TRUSTED_PROXIES: wrong })).toMatchObject({
      DASHBOARD_TRUSTED_PROXIES: expect.stringMatching(/^must be addresses, networks such as 10\.0\.0\.0\/8, or loop/),
    });
});

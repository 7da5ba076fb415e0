import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { readConfig } from '../../src/base/config.js';
import { SETTINGS } from '../../src/base/settings.js';
import { ROOT } from './support/read-compose.js';

const FOLDER = join(ROOT, 'deploy/systemd');
const units = readdirSync(FOLDER).filter((name) => name.endsWith('.service'));
const isInstalled = spawnSync('systemd-analyze', ['--version']).status === 0;
const HIGHEST_EXPOSURE = 2;

function read(name: string): string {
  return readFileSync(join(FOLDER, name), 'utf8');
}

const known = Object.values(SETTINGS).flatMap((row) =>
  'secret' in row ? [row.variable, `${row.variable}_FILE`] : [row.variable],
);

it('has a unit for each service', () => {
  expect(units.sort()).toEqual([
    'payouts-dashboard.service',
    'payouts-notify.service',
    'payouts-serve.service',
    'payouts-worker.service',
  ]);
});

describe.each(units)('%s', (name) => {
  const unit = read(name);

  (isInstalled ? it : it.skip)('passes systemd-analyze verify', () => {
    const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', join(FOLDER, name)], {
      encoding: 'utf8',
    });
    expect({ status, output: stdout + stderr }).toEqual({ status: 0, output: '' });
  });

  (isInstalled ? it : it.skip)('is hardened', () => {
    const { stdout } = spawnSync('systemd-analyze', ['security', '--offline=true', join(FOLDER, name)], {
      encoding: 'utf8',
    });
    const exposure = Number(/exposure level for \S+: ([\d.]+)/.exec(stdout)?.[1]);
    expect(exposure).toBeLessThan(HIGHEST_EXPOSURE);
  });

  it('is installed, restarts, and reads the settings', () => {
    expect(unit).toContain('WantedBy=multi-user.target');
    expect(unit).toContain('Restart=always');
    expect(unit).toContain('EnvironmentFile=/etc/payouts/payouts.env');
    expect(unit).toMatch(new RegExp(`^ExecStart=/usr/bin/env .*payouts ${name.slice(8, -8)}$`, 'm'));
  });

  it('sets variables that exist, to credentials that it loads', () => {
    const set = [...unit.matchAll(/([A-Z_]+)=%d\/([\w-]+)/g)];
    for (const [, variable, credential = ''] of set) {
      expect(known).toContain(variable);
      expect(unit).toContain(`LoadCredential=${credential}:/etc/payouts/secrets/${credential}`);
    }
    expect([...unit.matchAll(/^LoadCredential=/gm)].length).toBe(set.length);
  });
});

it('the worker may take longer to stop than WITHDRAW_TIMEOUT_MS', () => {
  const seconds = Number(/^TimeoutStopSec=(\d+)$/m.exec(read('payouts-worker.service'))?.[1]);
  expect(seconds * 1_000).toBeGreaterThanOrEqual(readConfig(['WITHDRAW_TIMEOUT_MS'], {}).WITHDRAW_TIMEOUT_MS + 15_000);
});

it('the HTTP door is off until it is enabled, as another user, with a file of tokens that can change', () => {
  const unit = read('payouts-serve.service');
  expect(unit).not.toContain('DynamicUser');
  expect(unit).toMatch(/^User=payouts-serve$/m);
  expect(read('payouts.sysusers')).toMatch(/^u payouts-serve /m);
  expect(unit).not.toMatch(/gateway-secret-key|GATEWAY_/);
  expect(unit).toMatch(/^ExecReload=\/bin\/kill -HUP \$MAINPID$/m);
  const guide = readFileSync(join(ROOT, 'docs/deploy.md'), 'utf8');
  expect(guide).not.toMatch(/^ *systemctl enable .*payouts-serve/m);
});

it('a reload sends the worker SIGHUP, which never ends it', () => {
  expect(read('payouts-worker.service')).toMatch(/^ExecReload=\/bin\/kill -HUP \$MAINPID$/m);
});

it('payouts.env sets variables that exist, and reads alike for systemd and a shell', () => {
  const lines = read('payouts.env')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  for (const line of lines) {
    expect(line).toMatch(/^[A-Z_]+=[\w./:-]+$/);
    expect(known).toContain(line.split('=')[0]);
  }
});

const isRoot = process.getuid?.() === 0;

(isRoot ? it : it.skip)('payouts-admin runs `payouts` as the worker’s user, with its settings', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'payouts-admin-'));
  try {
    await chmod(dir, 0o755);
    await writeFile(join(dir, 'payouts'), '#!/bin/sh\necho "$(id -un) $GATEWAY_PLATFORM_ID $#:$2"\n', { mode: 0o755 });
    await writeFile(join(dir, 'payouts.env'), '# settings\nGATEWAY_PLATFORM_ID=4243\n');
    const { status, stdout, stderr } = spawnSync(join(FOLDER, 'payouts-admin'), ['pause', '--reason=two words'], {
      env: {
        PATH: `${dir}:${process.env['PATH'] ?? ''}`,
        PAYOUTS_ENV: join(dir, 'payouts.env'),
        PAYOUTS_USER: 'nobody',
      },
      encoding: 'utf8',
    });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'nobody 4243 2:--reason=two words\n', stderr: '' });
  } finally {
    await rm(dir, { recursive: true });
  }
});

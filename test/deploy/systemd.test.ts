import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { readConfig } from '../../src/base/config.js';
import { SETTINGS } from '../../src/base/settings.js';
import { folderOfTest } from '../worker/support/close-after-test.js';
import { ROOT } from './read-compose.js';

const FOLDER = join(ROOT, 'deploy/systemd');
const isInstalled = spawnSync('systemd-analyze', ['--version']).status === 0;
const HIGHEST_EXPOSURE = 2;

const read = (name: string): string => readFileSync(join(FOLDER, name), 'utf8');
const known = Object.values(SETTINGS).flatMap((row) =>
  'secret' in row ? [row.variable, `${row.variable}_FILE`] : [row.variable],
);

describe.each(['dashboard', 'notify', 'serve', 'worker'])('payouts-%s.service', (name) => {
  const file = join(FOLDER, `payouts-${name}.service`);

  (isInstalled ? it : it.skip)('passes systemd-analyze verify, and is hardened', () => {
    const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' });
    expect({ status, output: stdout + stderr }).toEqual({ status: 0, output: '' });
    const judged = spawnSync('systemd-analyze', ['security', '--offline=true', file], { encoding: 'utf8' });
    const exposure = Number(/exposure level for \S+: ([\d.]+)/.exec(judged.stdout)?.[1]);
    expect(exposure).toBeLessThan(HIGHEST_EXPOSURE);
  });

  it('restarts, reads the settings, and sets variables that exist to credentials that it loads', () => {
    const unit = read(`payouts-${name}.service`);
    for (const line of ['WantedBy=multi-user.target', 'Restart=always', 'EnvironmentFile=/etc/payouts/payouts.env']) {
      expect(unit).toContain(line);
    }
    expect(unit).toMatch(new RegExp(`^ExecStart=/usr/bin/env .*payouts ${name}$`, 'm'));
    const set = [...unit.matchAll(/([A-Z_]+)=%d\/([\w-]+)/g)];
    for (const [, variable, credential = ''] of set) {
      expect(known).toContain(variable);
      expect(unit).toContain(`LoadCredential=${credential}:/etc/payouts/secrets/${credential}`);
    }
    expect([...unit.matchAll(/^LoadCredential=/gm)].length).toBe(set.length);
  });
});

it('the worker may take longer to stop than WITHDRAW_TIMEOUT_MS, and a reload never ends it', () => {
  const unit = read('payouts-worker.service');
  const seconds = Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]);
  expect(seconds * 1_000).toBeGreaterThanOrEqual(readConfig(['WITHDRAW_TIMEOUT_MS'], {}).WITHDRAW_TIMEOUT_MS + 15_000);
  expect(unit).toMatch(/^ExecReload=\/bin\/kill -HUP \$MAINPID$/m);
});

it('the HTTP door is off until it is enabled, and runs as another user without the gateway’s key', () => {
  const unit = read('payouts-serve.service');
  expect(unit).toMatch(/^User=payouts-serve$/m);
  expect(read('payouts.sysusers')).toMatch(/^u payouts-serve /m);
  expect(unit).not.toMatch(/DynamicUser|gateway-secret-key|GATEWAY_/);
  const guide = readFileSync(join(ROOT, 'docs/deploy.md'), 'utf8');
  expect(guide).not.toMatch(/^ *systemctl enable .*payouts-serve/m);
});

it('payouts.env sets variables that exist, and reads alike for systemd and a shell', () => {
  for (const line of read('payouts.env').split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    expect(line).toMatch(/^[A-Z_]+=[\w./:-]+$/);
    expect(known).toContain(line.split('=')[0]);
  }
});

const isRoot = process.getuid?.() === 0;

(isRoot ? it : it.skip)('payouts-admin runs `payouts` as the worker’s user, with its settings', async () => {
  const dir = await folderOfTest('admin');
  await chmod(dir, 0o755);
  await writeFile(join(dir, 'payouts'), '#!/bin/sh\necho "$(id -un) $GATEWAY_PLATFORM_ID $#:$2"\n', { mode: 0o755 });
  await writeFile(join(dir, 'payouts.env'), '# settings\nGATEWAY_PLATFORM_ID=4243\n');
  const PATH = `${dir}:${process.env['PATH'] ?? ''}`;
  const { status, stdout } = spawnSync(join(FOLDER, 'payouts-admin'), ['pause', '--reason=two words'], {
    env: { PATH, PAYOUTS_ENV: join(dir, 'payouts.env'), PAYOUTS_USER: 'nobody' },
    encoding: 'utf8',
  });
  expect({ status, stdout }).toEqual({ status: 0, stdout: 'nobody 4243 2:--reason=two words\n' });
});

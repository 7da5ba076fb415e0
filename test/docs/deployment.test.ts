import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { validate } from 'dockerfile-utils';
import { readConfig } from '../../src/config.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const compose = readFileSync(`${root}docker-compose.yml`, 'utf8');

it('docker-compose.yml passes dclint without a warning', () => {
  const result = spawnSync('node_modules/.bin/dclint', ['--max-warnings', '0', 'docker-compose.yml'], {
    cwd: root,
    encoding: 'utf8',
  });
  expect({ status: result.status, stdout: result.stdout.trim() }).toEqual({ status: 0, stdout: '' });
}, 30_000);

it('the Dockerfile has no mistake', () => {
  expect(validate(readFileSync(`${root}Dockerfile`, 'utf8')).map(({ message }) => message)).toEqual([]);
});

it('the Dockerfile copies every script that the build runs', () => {
  const dockerfile = readFileSync(`${root}Dockerfile`, 'utf8');
  const manifest = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { scripts: { build: string } };
  const scripts = [...manifest.scripts.build.matchAll(/scripts\/[\w.-]+/g)].map(([path]) => path);
  expect(scripts.length).toBeGreaterThan(0);
  expect(scripts.filter((path) => !dockerfile.includes(path))).toEqual([]);
});

it('the stop grace period is longer than the withdraw time limit', () => {
  const graceMs = Number(/stop_grace_period: (\d+)s/.exec(compose)?.[1]) * 1_000;
  expect(graceMs).toBeGreaterThan(readConfig(['WITHDRAW_TIMEOUT_MS'], {}).WITHDRAW_TIMEOUT_MS);
});

it.each(['appendonly yes', 'appendfsync always', 'aof-load-truncated no', 'maxmemory-policy noeviction'])(
  'the Redis of docker-compose.yml is started with %s',
  (setting) => {
    expect(compose).toContain(`--${setting}`);
  },
);

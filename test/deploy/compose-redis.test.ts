import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { checkDurability } from '../../src/ledger/redis-durability.js';
import { until } from '../support/until.js';
import { readCompose } from './support/read-compose.js';

/** What docker-compose.yml starts as Redis, with the paths of the container in a folder of the test. */

const { command = [], healthcheck } = readCompose({}).services['redis'] ?? {};
let dir: string;
let port: number;
let server: ChildProcess | undefined;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-compose-'));
  port = await findFreePort();
});

afterEach(async () => {
  if (server?.exitCode === null) {
    server.kill('SIGKILL');
    await once(server, 'exit');
  }
  await rm(dir, { recursive: true });
});

function inFolder(text = ''): string {
  return text.replace(/\/run\/secrets\/|\/tmp\//g, `${dir}/`);
}

function start(): ChildProcess {
  const [shell = '', option = '', script = ''] = command;
  const own = ` --port ${port} --dir ${dir}`;
  return (server = spawn(shell, [option, inFolder(script) + own], { stdio: ['ignore', 'ignore', 'pipe'] }));
}

function health(): number | null {
  const [, script = ''] = healthcheck?.test ?? [];
  return spawnSync('sh', ['-c', inFolder(script).replace('redis-cli', `redis-cli -p ${port}`)]).status;
}

it('asks for the password of the URL, forgets nothing, and is healthy', async () => {
  await writeFile(join(dir, 'redis_url'), `redis://:s3cret_pass-word@redis:6379\n`);
  start();
  await until('it is healthy', () => health() === 0);
  const stranger = new Redis(port, { lazyConnect: true, retryStrategy: null });
  stranger.on('error', () => undefined);
  await expect(stranger.get('key')).rejects.toThrow('NOAUTH');
  stranger.disconnect();
  const redis = new Redis(port, { password: 's3cret_pass-word' });
  expect((await checkDurability(redis)).problems).toEqual([]);
  redis.disconnect();
  // Nothing between docker and Redis keeps the signal: it ends in good order.
  server?.kill('SIGTERM');
  expect(await once(server as ChildProcess, 'exit')).toEqual([0, null]);
  expect(health()).not.toBe(0);
});

it.each(['redis://redis:6379', 'redis://:p$(id)@redis:6379', ''])('does not start with %j', async (url) => {
  await writeFile(join(dir, 'redis_url'), url);
  const child = start();
  let errors = '';
  child.stderr?.on('data', (text: Buffer) => (errors += text.toString()));
  expect(await once(child, 'close')).toEqual([1, null]);
  expect(errors).toContain('redis_url must be redis://:PASSWORD@HOST:6379');
});

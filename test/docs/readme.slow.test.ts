import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';
import { findBuiltProgram } from '../support/built-program.js';
import { runCli } from '../support/cli.js';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

/** The README's code blocks in one language. */
function blocks(language: string): string[] {
  return [...readme.matchAll(/```(\w+)\n(.*?)```/gs)].flatMap(([, name, block = '']) =>
    name === language ? [block] : [],
  );
}

let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-readme-'));
});

afterAll(async () => {
  await rm(dir, { recursive: true, force: true });
});

it('its TypeScript runs as it is printed', async () => {
  const platformId = newPlatformId();
  const [program = ''] = blocks('ts');
  const path = join(dir, 'readme.mts');
  const index = fileURLToPath(new URL('../../src/index.ts', import.meta.url));
  const own = [
    ["'payout-queue'", JSON.stringify(index)],
    ["'redis://127.0.0.1:6379'", JSON.stringify(testRedisUrl())],
    ['4242', String(platformId)],
  ] as const;
  for (const [printed] of own) expect(program).toContain(printed);
  await writeFile(
    path,
    own.reduce((text, [printed, used]) => text.replace(printed, used), program),
  );
  const child = spawn(process.execPath, ['--import', 'tsx', path]);
  const ended = once(child, 'close');
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
  const producer = new PayoutProducer({ redisUrl: testRedisUrl(), platformId });
  const untilEnqueued = setInterval(() => void producer.cancel('invoice-77').catch(() => undefined), 100);
  expect({ ended: await ended, output }).toEqual({ ended: [0, null], output: 'cancelled, final: see its history\n' });
  clearInterval(untilEnqueued);
  await producer.close();
});

it('its output of the demo is what the demo prints, apart from the figures', async () => {
  const { code, stdout, stderr } = await runCli(['demo', '--payouts', '4'], { env: { SEND_JOURNAL_DIR: dir } });
  expect(code).toBe(0);
  const withoutFigures = (text: string): string[] =>
    text.split('\n').map((line) => line.replace(/ *\d+(\.\d+)?/g, '#'));
  const printed = withoutFigures(stderr + stdout);
  const [block = ''] = blocks('text');
  for (const line of withoutFigures(block)) expect(printed).toContain(line);
});

it('its two blocks lead from an empty folder to a signed and verified payout', async () => {
  const port = await findFreePort();
  const platformId = newPlatformId();
  const own = join(dir, 'new');
  const bin = join(own, 'bin');
  await mkdir(bin, { recursive: true });
  await writeFile(join(bin, 'payouts'), `#!/bin/sh\nexec "${process.execPath}" "${findBuiltProgram()}" "$@"\n`);
  // The Redis of the tests is in place of the one that the block starts.
  await writeFile(join(bin, 'redis-server'), '#!/bin/sh\n');
  for (const name of ['payouts', 'redis-server']) await chmod(join(bin, name), 0o755);
  const [, prepare = '', five = ''] = blocks('sh');
  const script = [prepare.replace(/^npm install .*$/m, ''), five, 'payouts audit verify; kill $(jobs -p); wait']
    .join('\n')
    .replace('PLATFORM_ID=4242', `PLATFORM_ID=${platformId}`)
    .replaceAll('8080', String(port))
    .replace('sleep 60;', 'until payouts get first-1 | grep -q completed; do sleep 1; done;');
  const { PATH = '', HOME = '' } = process.env;
  const quick = { HEALTH_PORT: '0', LEASE_MS: '1500', TAKEOVER_QUARANTINE_MS: '1000', STATUS_POLL_MIN_MS: '200' };
  const shell = spawn('bash', ['-c', script], {
    cwd: own,
    env: { PATH: `${bin}:${PATH}`, HOME, REDIS_URL: testRedisUrl(), ...quick },
    timeout: 150_000,
  });
  let output = '';
  for (const stream of [shell.stdout, shell.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  await once(shell, 'close');
  expect(output).toContain('No problems found');
  expect(output).toMatch(/^first-1 +completed: [^]*receipt +verified by worker worker-1\n[^]*signed by +shop\n/m);
  expect(output).toMatch(/^signatures +1 signed send: 1 verified$/m);
}, 180_000);

it('names every command', async () => {
  const { stdout } = await runCli(['--help']);
  const commands = [...stdout.matchAll(/^ {2}([a-z-]+) /gm)].map(([, name]) => name);
  const [, section = ''] = readme.split('## Commands');
  const [table = ''] = section.split('\n## ');
  expect(commands.length).toBeGreaterThan(15);
  for (const name of commands.filter((each = '') => !['help', 'payouts'].includes(each)))
    expect(table).toMatch(new RegExp(`[ \`]${name}\``));
});

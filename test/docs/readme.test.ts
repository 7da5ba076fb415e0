import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';
import { runCli, startCli, type RunningCli } from '../support/cli.js';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  scripts: Record<string, string>;
};

/** The README's code blocks in one language. */
function blocks(language: string): string[] {
  return [...readme.matchAll(/```(\w+)\n(.*?)```/gs)].flatMap(([, name, block = '']) =>
    name === language ? [block] : [],
  );
}

/** Every line of the README's shell blocks, without comments. */
const lines = blocks('sh')
  .flatMap((block) => block.split('\n'))
  .map((line) => line.replace(/\s+#.*$/, '').trim())
  .filter((line) => line !== '');

let dir: string;
let sandbox: RunningCli;
let env: Record<string, string>;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-readme-'));
  const port = await findFreePort();
  env = {
    GATEWAY_PLATFORM_ID: String(newPlatformId()),
    GATEWAY_SECRET_KEY: 'k-sandbox-only',
    GATEWAY_BASE_URL: `http://127.0.0.1:${port}`,
    SEND_JOURNAL_DIR: dir,
  };
  sandbox = startCli(['sandbox', '--port', String(port)], { env });
  await sandbox.waitForOutput(/Statistics: /);
});

afterAll(async () => {
  sandbox.kill('SIGTERM');
  await sandbox.result;
  await rm(dir, { recursive: true, force: true });
});

/** Splits a line as a shell does, as far as the README needs it. */
function toArguments(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
}

it('names only npm scripts that exist', () => {
  const scripts = lines.flatMap((line) => [...line.matchAll(/npm (?:run )?([a-z-]+)/g)].map(([, name = '']) => name));
  expect(scripts).toEqual(expect.arrayContaining(['demo', 'setup', 'build']));
  expect(scripts.filter((name) => name !== 'install' && manifest.scripts[name] === undefined)).toEqual([]);
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

it('its payouts commands do what they say, one after the other', async () => {
  const decisions = [...readme.matchAll(/^- `(payouts resolve .*?)`/gm)].map(([, command = '']) => command);
  expect(decisions).toHaveLength(3);
  const inBlocks = lines.filter((line) => line.startsWith('payouts ') && !line.startsWith('payouts sandbox'));
  const commands = [...inBlocks, ...decisions];
  expect(commands.length).toBeGreaterThanOrEqual(7);
  for (const command of commands) {
    const result = await runCli(toArguments(command).slice(1), { env });
    // The payout of the example is queued here, not unknown: `resolve` says so, which is its documented error.
    expect({ command, code: result.code, stderr: result.stderr }).toMatchObject({
      code: command.startsWith('payouts resolve') ? 4 : 0,
    });
  }
});

it('names every command', async () => {
  const { stdout } = await runCli(['--help']);
  const commands = [...stdout.matchAll(/^ {2}([a-z-]+) /gm)].map(([, name]) => name);
  const [, section = ''] = readme.split('## Commands');
  const [table = ''] = section.split('\n## ');
  expect(commands.length).toBeGreaterThan(15);
  for (const name of commands.filter((each = '') => !['help', 'payouts'].includes(each)))
    expect(table).toMatch(new RegExp(`[ \`]${name}\``));
});

it('is at most 150 lines and 1,200 words', () => {
  expect(readme.trim().split(/\s+/).length).toBeLessThanOrEqual(1_200);
  expect(readme.split('\n').length).toBeLessThanOrEqual(150);
});

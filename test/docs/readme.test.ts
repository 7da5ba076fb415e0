import { mkdtemp, rm } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { findFreePort } from '../../src/local-redis.js';
import { newPlatformId } from '../support/account.js';
import { runCli, startCli, type RunningCli } from '../support/cli.js';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  scripts: Record<string, string>;
};

/** Every line of the README's shell blocks, without comments. */
const lines = [...readme.matchAll(/```sh\n(.*?)```/gs)]
  .flatMap(([, block = '']) => block.split('\n'))
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

it('names only npm scripts that there are', () => {
  const scripts = lines.flatMap((line) => [...line.matchAll(/npm (?:run )?([a-z-]+)/g)].map(([, name = '']) => name));
  expect(scripts.length).toBeGreaterThan(3);
  expect(scripts.filter((name) => manifest.scripts[name] === undefined)).toEqual([]);
});

it('its payouts commands do what they say, one after the other', async () => {
  const commands = lines.filter((line) => line.startsWith('payouts ') && !line.startsWith('payouts sandbox'));
  expect(commands.length).toBeGreaterThanOrEqual(8);
  for (const command of commands) {
    const result = await runCli(toArguments(command).slice(1), { env });
    // The payout of the example is queued here, not unknown: `resolve` says so, which is its documented refusal.
    expect({ command, code: result.code, stderr: result.stderr }).toMatchObject({
      code: command.startsWith('payouts resolve') ? 4 : 0,
    });
  }
}, 60_000);

it('names every command, and no other', async () => {
  const { stdout } = await runCli(['--help']);
  const there = [...stdout.matchAll(/^ {2}([a-z-]+) /gm)].map(([, name]) => name).filter((name) => name !== 'payouts');
  const [, section = ''] = readme.split('## Commands');
  for (const name of there.filter((each) => each !== 'help')) expect(section).toContain(name);
});

it('is at most 200 lines, and its links lead somewhere', () => {
  expect(readme.split('\n').length).toBeLessThanOrEqual(200);
  const links = [...readme.matchAll(/\]\(([^)#]+)\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !link.includes('://'));
  for (const link of links) expect(() => readFileSync(new URL(`../../${link}`, import.meta.url))).not.toThrow(/ENOENT/);
});

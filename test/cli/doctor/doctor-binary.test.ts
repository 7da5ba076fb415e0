import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { startSandbox, type Sandbox } from '../../../src/sandbox/index.js';
import { newPlatformId } from '../../support/account.js';
import { runCli } from '../../support/cli.js';

let dir: string;
let sandbox: Sandbox;
let env: Record<string, string>;

beforeEach(async () => {
  const platformId = newPlatformId();
  dir = await mkdtemp(join(tmpdir(), 'payouts-doctor-'));
  sandbox = await startSandbox({ accounts: [{ platformId, secretKey: 'k-doctor' }] });
  env = {
    GATEWAY_PLATFORM_ID: String(platformId),
    GATEWAY_BASE_URL: sandbox.url,
    GATEWAY_SECRET_KEY: 'k-doctor',
    SEND_JOURNAL_DIR: dir,
  };
});

afterEach(async () => {
  await sandbox.close();
  await rm(dir, { recursive: true, force: true });
});

describe('payouts doctor as a process', () => {
  it.each([
    ['full', /^Free space on this disk\. /],
    ['slow 1200', /^A send must begin within 1000 ms: take load off this disk\. /],
    ['slow 150', /^Every send waits that long: take load off this disk\. /],
  ])('advises never to begin an empty journal where its disk is %s', async (ailment, advice) => {
    const control = join(dir, 'disk');
    await writeFile(control, ailment);
    const preload = new URL('../../told/support/ailing-disk.mjs', import.meta.url).href;
    const ailing = { ...env, NODE_OPTIONS: `--import=${preload}`, AILING_DISK: control };
    const { stdout } = await runCli(['doctor', '--json'], { env: ailing });
    const { checks } = JSON.parse(stdout) as { checks: { name: string; fix?: string }[] };
    const fix = checks.find(({ name }) => name === 'journal folder')?.fix;
    expect(fix).toMatch(advice);
    expect(fix).toMatch(/To move the journal: stop the worker, copy the whole folder, then set SEND_JOURNAL_DIR/);
  });

  it('exits 0 where nothing stops payouts, with a line for each check', async () => {
    const { code, stdout } = await runCli(['doctor'], { env });
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('✓') });
    expect(stdout).not.toContain('✗');
  });

  it('exits 1 with a wrong key, says so as JSON too, and never shows the key', async () => {
    const { code, stdout, stderr } = await runCli(['doctor', '--json'], {
      env: { ...env, GATEWAY_SECRET_KEY: 'k-wrong' },
    });
    expect({ code, report: JSON.parse(stdout) as unknown }).toMatchObject({ code: 1, report: { ok: false } });
    expect(stdout + stderr).not.toContain('k-wrong');
  });

  it('exits 2 where a variable is missing', async () => {
    const { code, stderr } = await runCli(['doctor'], { env: { GATEWAY_PLATFORM_ID: '1' } });
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('GATEWAY_BASE_URL') });
  });
});

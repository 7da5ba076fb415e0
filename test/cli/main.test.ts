import { describe, expect, it } from '@jest/globals';
import { newPlatformId } from '../support/account.js';
import { runCli } from '../support/cli.js';

const COMMANDS = ['enqueue', 'get', 'list', 'cancel', 'retry', 'stats', 'events', 'pause', 'resume', 'sandbox'];

describe('payouts', () => {
  it('prints its help with every command, and each command has examples', async () => {
    const { code, stdout } = await runCli(['--help']);
    expect(code).toBe(0);
    for (const command of COMMANDS) {
      expect(stdout).toMatch(new RegExp(`^ {2}${command} `, 'm'));
      const help = await runCli([command, '--help']);
      expect(help).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('Examples:') });
    }
  });

  it('prints its version', async () => {
    expect(await runCli(['--version'])).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
  });

  it('ends with 2 for wrong usage, and guesses what was meant', async () => {
    expect(await runCli([])).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('Usage: payouts') });
    const unknown = await runCli(['cancle', 'p-1']);
    expect(unknown).toMatchObject({ code: 2, stdout: '' });
    expect(unknown.stderr).toMatch(/^payouts: unknown command 'cancle'\n\(Did you mean cancel\?\)/);
    expect(await runCli(['get', '--frob'])).toMatchObject({ code: 2 });
  });

  it('ends with 2 for a wrong environment, naming every problem', async () => {
    const result = await runCli(['stats'], { env: { REDIS_URL: 'http://x', GATEWAY_PLATFORM_ID: '' } });
    expect(result.code).toBe(2);
    expect(result.stderr).toMatch(
      /^payouts: REDIS_URL: must begin with .*\npayouts: GATEWAY_PLATFORM_ID: is required\n$/,
    );
  });

  it('ends with 1 within seconds when Redis is away, saying what to do', async () => {
    const startedAt = performance.now();
    const env = { REDIS_URL: 'redis://127.0.0.1:1', GATEWAY_PLATFORM_ID: String(newPlatformId()) };
    const result = await runCli(['get', 'p-1'], { env });
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toMatch(/Redis is not available .*: check that it runs/);
    expect(result.stderr).not.toMatch(/^ +at /m);
  });
});

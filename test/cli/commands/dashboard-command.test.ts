import { describe, expect, it } from '@jest/globals';
import { newPlatformId } from '../../support/account.js';
import { runCli, startCli } from '../../support/cli.js';

const env = { GATEWAY_PLATFORM_ID: String(newPlatformId()), DASHBOARD_PORT: '0' };

describe('payouts dashboard', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)('prints its URL, serves, and exits cleanly on %s', async (signal) => {
    const dashboard = startCli(['dashboard'], { env: { ...env, DASHBOARD_PASSWORD: 'sesame' } });
    const line = /Dashboard on (http:\/\/127\.0\.0\.1:\d+\/)\n/;
    await dashboard.waitForOutput(line);
    dashboard.kill(signal);
    const result = await dashboard.result;
    expect(result).toMatchObject({ code: 0, stdout: '', stderr: expect.stringMatching(line) });
    expect(result.stderr).not.toContain('sesame');
  });

  it('refuses to listen beyond loopback without a password, naming the variable', async () => {
    const result = await runCli(['dashboard'], { env: { ...env, DASHBOARD_HOST: '0.0.0.0' } });
    expect(result).toMatchObject({ code: 2, stdout: '' });
    expect(result.stderr).toMatch(/^payouts: DASHBOARD_PASSWORD: is required to listen on 0\.0\.0\.0/);
  });
});

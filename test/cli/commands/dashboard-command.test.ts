import { once } from 'node:events';
import { chmod, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openTestKeys, type TestKeys } from '../../control/support/key-files.js';
import { newPlatformId } from '../../support/account.js';
import { runCli, startCli } from '../../support/cli.js';

const env = { GATEWAY_PLATFORM_ID: String(newPlatformId()), DASHBOARD_PORT: '0' };

let keys: TestKeys;
beforeAll(async () => {
  keys = await openTestKeys();
});
afterAll(async () => keys.close());

async function writeFiles(): Promise<Record<'PAYOUT_KEYS_FILE' | 'PAYOUT_POLICY_FILE', string>> {
  const { public: publicKey } = await keys.makeKey('shop');
  const keyring = await keys.writeKeyring({ name: 'shop', role: 'producer', person: 'Sam', public: publicKey });
  const policy = join(keys.dir, 'policy.yaml');
  const rule = '{ name: most, when: { paymentId: ["7"] }, cap: { amount: "5" }, over: refuse }';
  const head = `version: 1\nplatformId: "${env.GATEWAY_PLATFORM_ID}"\ndefault: send\n`;
  await writeFile(policy, `${head}rules:\n  - ${rule}\n`, { mode: 0o600 });
  return { PAYOUT_KEYS_FILE: keyring, PAYOUT_POLICY_FILE: policy };
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

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

  it('takes approvals, and says what rules say, with the files of the environment', async () => {
    const port = String(await findFreePort());
    const dashboard = startCli(['dashboard'], { env: { ...env, ...(await writeFiles()), DASHBOARD_PORT: port } });
    await dashboard.waitForOutput(/Dashboard on/);
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' };
    const response = await fetch(`http://127.0.0.1:${port}/approvals`, init);
    expect([response.status, await response.json()]).toEqual([400, expect.objectContaining({ code: 'INVALID_INPUT' })]);
    dashboard.kill('SIGTERM');
    expect(await dashboard.result).toMatchObject({ code: 0 });
  });

  it('does not start with a keyring, or a policy, that cannot be used, and names the variable', async () => {
    const files = await writeFiles();
    await writeFile(files.PAYOUT_POLICY_FILE, 'version: 2', { mode: 0o600 });
    const policy = await runCli(['dashboard'], { env: { ...env, ...files } });
    expect(policy).toMatchObject({ code: 2, stderr: expect.stringMatching(/^payouts: PAYOUT_POLICY_FILE: /) });
    await chmod(files.PAYOUT_KEYS_FILE, 0o666);
    const keyring = await runCli(['dashboard'], { env: { ...env, ...files } });
    expect(keyring).toMatchObject({ code: 2, stderr: expect.stringMatching(/^payouts: PAYOUT_KEYS_FILE: /) });
  });
});

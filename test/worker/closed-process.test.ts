import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { readPolicyFile } from '../../src/control/policy/policy-file.js';
import { startCli } from '../support/cli.js';
import { until } from '../support/until.js';
import { openWorld, SECRET_KEY, untilSettled, type PayoutWorld } from './support/payout-world.js';

/** What a process shows of itself to others on its machine, and in its log. */

let world: PayoutWorld;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(async () => {
  await world.close();
});

/** Node's inspector listens there. */
const INSPECTOR_PORT = 9_229;

async function isInspectorOpen(): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(INSPECTOR_PORT, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => {
      resolve(false);
    });
  });
}

it('SIGUSR1 opens no inspector in a worker, which works on', async () => {
  expect(await isInspectorOpen()).toBe(false);
  const worker = world.startWorker();
  await until('it serves', () => worker.log().includes('serving /healthz'));
  worker.kill('SIGUSR1');
  await world.enqueue(1);
  await untilSettled(world, 1);
  expect(await isInspectorOpen()).toBe(false);
  expect(worker.log()).not.toMatch(/debugger/i);
  worker.kill('SIGTERM');
  expect(await worker.ended).toBe(0);
});

it('SIGUSR1 opens no inspector in a worker process that others started', async () => {
  const accounts = [1, 2].map((number) => ({
    ...{ platformId: world.platformId + number, baseUrl: world.sandbox.url, secretKeyFile: 'key' },
  }));
  await writeFile(join(world.dir, 'key'), SECRET_KEY, { mode: 0o600 });
  await writeFile(join(world.dir, 'accounts.json'), JSON.stringify(accounts));
  const environment = { PAYOUT_ACCOUNTS_FILE: join(world.dir, 'accounts.json') };
  const worker = world.startWorker({ args: ['--processes', '2'], environment });
  await until('both serve', () => worker.log().split('serving /healthz').length > 2);
  const pids = [...worker.log().matchAll(/"pid":(\d+)/g)].map(([, pid]) => Number(pid));
  expect(new Set(pids).size).toBe(3);
  for (const pid of new Set(pids)) process.kill(pid, 'SIGUSR1');
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(await isInspectorOpen()).toBe(false);
  expect(worker.log()).not.toMatch(/debugger/i);
  worker.kill('SIGTERM');
  expect(await worker.ended).toBe(0);
});

it.each([
  ['dashboard', { DASHBOARD_PORT: '0' }, /Dashboard on/],
  ['notify', { NOTIFY_URL: 'http://127.0.0.1:1', NOTIFY_SECRET: 'x'.repeat(32), NOTIFY_HEALTH_PORT: '0' }, /serving/],
] as const)('SIGUSR1 opens no inspector in `payouts %s`', async (command, settings, ready) => {
  const { platformId } = world;
  const running = startCli([command], { env: { GATEWAY_PLATFORM_ID: String(platformId), ...settings } });
  await running.waitForOutput(ready);
  running.kill('SIGUSR1');
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(await isInspectorOpen()).toBe(false);
  running.kill('SIGTERM');
  expect((await running.result).stderr).not.toMatch(/debugger/i);
});

it("the log has the policy's hash, which is no secret", async () => {
  const file = join(world.dir, 'policy.yaml');
  const { platformId } = world;
  await writeFile(file, `version: 1\nplatformId: "${platformId}"\ndefault: send\nrules: []\n`, { mode: 0o600 });
  const { hash } = readPolicyFile(file, { platformId, keyring: undefined });
  const worker = world.startWorker({ environment: { PAYOUT_POLICY_FILE: file } });
  await until('it has read the policy', () => worker.log().includes('"policyFile"'));
  expect(worker.log()).toContain(`"policyHash":"${hash}"`);
});

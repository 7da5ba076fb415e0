import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { startNotify } from '../../notifications/support/notify-process.js';
import { newPlatformId, testRedisUrl } from '../../support/account.js';
import { runCli } from '../../support/cli.js';

const ENV = {
  GATEWAY_PLATFORM_ID: '7',
  NOTIFY_URL: 'https://hooks.example/T0/hunter2',
  NOTIFY_SECRET: 'hunter2-0123456789',
  NOTIFY_HEALTH_PORT: '0',
};

it.each<[string, Record<string, string>, string]>([
  ['no URL', { NOTIFY_URL: '' }, 'NOTIFY_URL: is required (or NOTIFY_URL_FILE, a file that holds it)'],
  ['http elsewhere', { NOTIFY_URL: 'http://hooks.example/hunter2' }, 'NOTIFY_URL: must begin with https://'],
  ['a password', { NOTIFY_URL: 'https://u:hunter2@hooks.example' }, 'must not contain a user name or password'],
  ['a short secret', { NOTIFY_SECRET: 'hunter2' }, 'NOTIFY_SECRET: must have at least 16 characters'],
  ['no secret', { NOTIFY_SECRET: '' }, 'NOTIFY_SECRET: is required for NOTIFY_FORMAT json'],
  ['an unknown event', { NOTIFY_EVENTS: 'paid' }, 'NOTIFY_EVENTS: must name events'],
  ['no chat', { NOTIFY_FORMAT: 'telegram' }, 'NOTIFY_URL: must end with ?chat_id='],
])('refuses %s, without showing a secret', async (_what, env, message) => {
  const { code, stderr } = await runCli(['notify'], { env: { ...ENV, ...env } });
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) });
  expect(stderr).not.toContain('hunter2');
});

it('serves every account of an accounts file, whichever the environment names, or the one of --account', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'payouts-notify-'));
  const ids = [newPlatformId(), newPlatformId()] as const;
  const file = join(dir, 'accounts.json');
  const entry = { baseUrl: 'https://gateway.example', secretKeyFile: 'key' };
  await writeFile(file, JSON.stringify(ids.map((platformId) => ({ platformId, ...entry }))));
  const served = async (...args: string[]): Promise<number[]> => {
    const url = 'https://hooks.example';
    const notify = await startNotify(testRedisUrl(), ids[0], url, { PAYOUT_ACCOUNTS_FILE: file }, args);
    const { body } = await notify.read('/metrics');
    notify.kill('SIGTERM');
    await notify.result;
    return ids.filter((id) => body.includes(`payouts_notifications_failing{platform_id="${id}"}`));
  };
  expect(await served()).toEqual(ids);
  expect(await served('--account', String(ids[1]))).toEqual([ids[1]]);
  await rm(dir, { recursive: true });
});

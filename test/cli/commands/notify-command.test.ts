import { expect, it } from '@jest/globals';
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

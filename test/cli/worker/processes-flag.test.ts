import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { runInProcess } from '../support/in-process.js';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-processes-'));
  await writeFile(join(dir, 'key'), 'k-processes', { mode: 0o600 });
  const accounts = [1, 2].map((platformId) => ({ platformId, baseUrl: 'http://127.0.0.1:1', secretKeyFile: 'key' }));
  await writeFile(join(dir, 'two.json'), JSON.stringify(accounts));
  await writeFile(join(dir, 'one.json'), JSON.stringify(accounts.slice(0, 1)));
});
afterAll(async () => rm(dir, { recursive: true, force: true }));

it.each([
  ['0', 'two', {}, '--processes: must be a whole number from 1 to 64'],
  ['65', 'two', {}, '--processes: must be a whole number from 1 to 64'],
  ['2.5', 'two', {}, '--processes: must be a whole number from 1 to 64'],
  ['many', 'two', {}, '--processes: must be a whole number from 1 to 64'],
  ['', 'two', {}, '--processes: must be a whole number from 1 to 64'],
  ['2', 'one', {}, '--processes: shares accounts out, and there is only one: leave it out, or name several'],
  ['3', 'two', {}, '--processes: must be at most the number of accounts, 2'],
  ['2', 'two', { HEALTH_PORT: '65535' }, 'HEALTH_PORT: must leave a port for each of 2 processes'],
] as const)('--processes %s with an accounts file of %s is refused', async (number, file, environment, words) => {
  const env = { PAYOUT_ACCOUNTS_FILE: join(dir, `${file}.json`), ...environment };
  const { code, stderr } = await runInProcess(['worker', '--processes', number], env);
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(words) as unknown });
});

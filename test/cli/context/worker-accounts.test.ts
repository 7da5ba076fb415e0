import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readPlatformIds, readWorkerAccounts } from '../../../src/cli/context/accounts.js';

let dir: string;
let file: string;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-accounts-'));
  file = join(dir, 'accounts.json');
  await writeFile(join(dir, 'one.key'), 'k-one-0123456789\n', { mode: 0o600 });
  await writeFile(join(dir, 'two.key'), 'k-two-0123456789', { mode: 0o600 });
  await writeFile(join(dir, 'empty.key'), '\n', { mode: 0o600 });
  await writeFile(join(dir, 'open.key'), 'k-open-0123456789', { mode: 0o644 });
});

afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

const BASE_URL = 'https://gateway.example';

async function read(accounts: unknown, environment: Record<string, string> = {}): Promise<unknown> {
  await writeFile(file, typeof accounts === 'string' ? accounts : JSON.stringify(accounts));
  return readWorkerAccounts({ PAYOUT_ACCOUNTS_FILE: file, ...environment });
}

describe('the accounts file', () => {
  it('gives each account its own settings, and the environment’s for the rest', async () => {
    const accounts = await read(
      [
        { platformId: 1, baseUrl: BASE_URL, secretKeyFile: 'one.key', intervalMs: 2_000 },
        { platformId: 2, baseUrl: `${BASE_URL}/`, secretKeyFile: join(dir, 'two.key'), retentionDays: 30 },
      ],
      { WITHDRAW_INTERVAL_MS: '1500', LEASE_MS: '5000' },
    );
    expect(accounts).toMatchObject([
      { platformId: 1, baseUrl: BASE_URL, secretKey: 'k-one-0123456789', intervalMs: 2_000, leaseMs: 5_000 },
      { platformId: 2, baseUrl: BASE_URL, secretKey: 'k-two-0123456789', intervalMs: 1_500, retentionDays: 30 },
    ]);
  });

  it('gives each account its policy, beside the file, in place of the environment’s', async () => {
    const accounts = await read(
      [
        { platformId: 1, baseUrl: BASE_URL, secretKeyFile: 'one.key', policyFile: 'one/policy.yaml' },
        { platformId: 2, baseUrl: BASE_URL, secretKeyFile: 'two.key' },
      ],
      { PAYOUT_POLICY_FILE: 'all.yaml' },
    );
    expect(accounts).toMatchObject([{ policyFile: join(dir, 'one/policy.yaml') }, { policyFile: 'all.yaml' }]);
  });

  it('names the accounts without their secrets', async () => {
    const accounts = [1, 2].map((platformId) => ({ platformId, baseUrl: BASE_URL, secretKeyFile: 'none.key' }));
    await writeFile(file, JSON.stringify(accounts));
    expect(readPlatformIds({ PAYOUT_ACCOUNTS_FILE: file })).toEqual([1, 2]);
    expect(readPlatformIds({ GATEWAY_PLATFORM_ID: '7' })).toEqual([7]);
    expect(() => readPlatformIds({})).toThrow('GATEWAY_PLATFORM_ID: is required');
  });

  it.each<[string, unknown, string]>([
    ['no account', [], 'PAYOUT_ACCOUNTS_FILE input: must name at least one account'],
    [
      'an account twice',
      [1, 1].map((platformId) => ({ platformId, baseUrl: BASE_URL, secretKeyFile: 'one.key' })),
      'must name each platformId once',
    ],
    [
      'an interval under a second',
      [{ platformId: 1, baseUrl: BASE_URL, secretKeyFile: 'one.key', intervalMs: 999 }],
      'PAYOUT_ACCOUNTS_FILE 0.intervalMs: must be a whole number from 1000',
    ],
    [
      'a setting with a typing mistake',
      [{ platformId: 1, baseUrl: BASE_URL, secretKeyFile: 'one.key', intervalMS: 2_000 }],
      'intervalMS: is not a known field',
    ],
    [
      'a key that is not there',
      [{ platformId: 1, baseUrl: BASE_URL, secretKeyFile: 'gone.key' }],
      'secretKeyFile of account 1: cannot be read: ENOENT',
    ],
    [
      'an empty key',
      [{ platformId: 1, baseUrl: BASE_URL, secretKeyFile: 'empty.key' }],
      'secretKeyFile of account 1: is empty',
    ],
    [
      'a secret that every user can read',
      [{ platformId: 1, baseUrl: BASE_URL, secretKeyFile: 'open.key' }],
      'secretKeyFile of account 1: is open to every user of this machine (mode 0644)',
    ],
    ['something else than JSON', '[{', 'PAYOUT_ACCOUNTS_FILE: cannot be read'],
  ])('with %s is refused', async (_what, accounts, message) => {
    await expect(read(accounts)).rejects.toThrow(message);
  });

  it('keeps a key that was written into the file by mistake out of the error', async () => {
    const secretKey = 'k-by-mistake-0123456789';
    const error = await read([{ platformId: 1, baseUrl: BASE_URL, secretKey }]).catch((caught: unknown) => caught);
    expect(String(error)).toContain('secretKey: is not a known field');
    expect(String(error)).not.toContain(secretKey);
  });

  it('is not needed for one account', () => {
    const environment = { GATEWAY_PLATFORM_ID: '5', GATEWAY_BASE_URL: BASE_URL, GATEWAY_SECRET_KEY: 'k-five' };
    expect(readWorkerAccounts(environment)).toMatchObject([{ platformId: 5, secretKey: 'k-five', intervalMs: 1_010 }]);
  });
});

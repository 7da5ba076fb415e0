import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { startSandbox } from '../../../src/sandbox/index.js';
import { newPlatformId, testRedisUrl } from '../../support/account.js';
import { runCli, type CliResult } from '../../support/cli.js';

let dir: string;
let file: string;
const [ONE, TWO] = [newPlatformId(), newPlatformId()];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'accounts-'));
  file = join(dir, 'accounts.json');
});
afterEach(async () => rm(dir, { recursive: true }));

async function writeAccounts(platformIds: readonly number[], baseUrl = 'https://gateway.example'): Promise<void> {
  const accounts = platformIds.map((platformId) => ({ platformId, baseUrl, secretKeyFile: `${platformId}.txt` }));
  for (const id of platformIds) await writeFile(join(dir, `${id}.txt`), `secret-${id}\n`, { mode: 0o600 });
  await writeFile(file, JSON.stringify(accounts));
}

const run = async (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<CliResult> =>
  runCli(args, { env: { REDIS_URL: testRedisUrl(), PAYOUT_ACCOUNTS_FILE: file, ...env } });

const enqueue = (payoutId: string): string[] =>
  `enqueue --payout-id ${payoutId} --payment-id 6 --amount 1 --address-to TXYZ9`.split(' ');

describe('a command with an accounts file only', () => {
  it('takes the one account that there is, and asks its gateway with its secret', async () => {
    const sandbox = await startSandbox({ accounts: [{ platformId: ONE, secretKey: `secret-${ONE}` }] });
    try {
      await writeAccounts([ONE], sandbox.url);
      const stats = await run(['stats', '--json']);
      expect(JSON.parse(stats.stdout)).toMatchObject({ platformId: ONE });
      expect(await run(['gateway', 'balance'])).toMatchObject({ code: 0, stderr: '' });
      expect(await run(['gateway', 'balance', '--account', String(ONE)])).toMatchObject({ code: 0 });
    } finally {
      await sandbox.close();
    }
  });

  it('asks which of several, with their ids, and changes nothing', async () => {
    await writeAccounts([ONE, TWO]);
    for (const args of [['stats'], enqueue('p'), ['list', '--state', 'queued'], ['pause', '--reason', 'holiday']]) {
      expect(await run(args)).toMatchObject({
        ...{ code: 2, stdout: '' },
        stderr: `payouts: --account: is required: PAYOUT_ACCOUNTS_FILE has the accounts ${ONE}, ${TWO}\n`,
      });
    }
  });

  it('keeps to the one that is chosen', async () => {
    await writeAccounts([ONE, TWO]);
    expect(await run([...enqueue('only-two'), '--account', String(TWO)])).toMatchObject({ code: 0 });
    expect(await run(['get', 'only-two', '--account', String(TWO)])).toMatchObject({ code: 0 });
    expect(await run(['get', 'only-two', '--account', String(ONE)])).toMatchObject({ code: 3 });
    expect(await run(['get', 'only-two'], { GATEWAY_PLATFORM_ID: String(TWO) })).toMatchObject({ code: 0 });
  });

  it('refuses one that is not there', async () => {
    await writeAccounts([ONE, TWO]);
    const refused = await run(['stats', '--account', '5']);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toBe(
      `payouts: --account: is not in PAYOUT_ACCOUNTS_FILE, which has ${ONE}, ${TWO} (got "5")\n`,
    );
    expect((await run(['stats', '--account', 'five'])).stderr).toMatch(/--account: must be a whole number/);
  });

  it('checks a file without an account', async () => {
    await writeAccounts([ONE, TWO]);
    const rows = join(dir, 'rows.csv');
    await writeFile(rows, 'payout_id,payment_id,amount,address_to\np-1,6,1,T\n');
    expect(await run(['import', rows, '--dry-run'])).toMatchObject({ code: 0 });
  });
});

describe('--account without an accounts file', () => {
  const env = { PAYOUT_ACCOUNTS_FILE: '' };

  it('names the account, or agrees with the environment', async () => {
    const alone = await run(['stats', '--json', '--account', String(ONE)], env);
    expect(JSON.parse(alone.stdout)).toMatchObject({ platformId: ONE });
    const both = { ...env, GATEWAY_PLATFORM_ID: String(ONE) };
    expect(await run(['stats', '--account', String(ONE)], both)).toMatchObject({ code: 0 });
    expect(await run(['stats', '--account', String(TWO)], both)).toMatchObject({
      code: 2,
      stderr: `payouts: --account: is not the account of GATEWAY_PLATFORM_ID, which is ${ONE} (got "${TWO}")\n`,
    });
  });
});

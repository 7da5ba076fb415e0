import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';

let account: AccountCli;

beforeEach(() => {
  account = openAccountCli();
});

afterEach(async () => {
  await account.close();
});

describe('payouts status', () => {
  it('says first that no worker sends, with the command that starts one, and fails', async () => {
    await account.enqueue('p-1');
    const { code, stdout } = await account.run('status');
    expect(code).toBe(1);
    const [headline, detail, command] = stdout.split('\n');
    expect(headline).toMatch(/^Account \d+: No worker$/);
    expect(detail).toContain('nothing is sent');
    expect(command).toBe('  payouts worker');
    expect(stdout).toMatch(/waiting +1 due now, 0 being sent, 0 held/);
  });

  it('says who paused the account, and the command that ends it', async () => {
    await account.run('pause', '--reason', 'maintenance');
    const { code, stdout } = await account.run('status');
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^Account \d+: Paused\npaused: maintenance\. .*\n {2}payouts resume --account \d+ --reason WHY\n/,
    );
  });

  it('prints one JSON object for programs', async () => {
    const { stdout } = await account.runProcess('status', '--json');
    expect(JSON.parse(stdout)).toMatchObject({
      ...{ tone: 'bad', headline: 'No worker', advice: [], command: 'payouts worker' },
      ledger: { sender: null, lastSendAgoMs: null, due: 0, sending: 0, held: 0 },
    });
  });

  it('says that a ledger of a newer version is not read', async () => {
    const { redis, keys } = account.ledger.connection;
    await redis.hset(keys.ledger, 'format', '99');
    const { code, stdout } = await account.run('status');
    expect(code).toBe(1);
    expect(stdout).toMatch(/^Account \d+: Ledger of another version\n.*99/);
  });
});

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openAccountCli, type AccountCli } from './support/account-cli.js';

let account: AccountCli;

beforeEach(() => {
  account = openAccountCli();
});

afterEach(async () => {
  await account.close();
});

describe('payouts pause and resume', () => {
  it('pause and resume the account, and say when it stood so before', async () => {
    const first = await account.run('pause', '--reason', 'maintenance', '--by', 'ann', '--json');
    expect(JSON.parse(first.stdout)).toMatchObject({
      changed: true,
      paused: true,
      pausedReason: 'maintenance',
      pausedBy: 'ann',
    });
    const again = await account.run('pause', '--reason', 'another');
    expect(again).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/was already paused: maintenance \(by ann\)/),
    });
    expect((await account.run('resume')).stdout).toMatch(/sends again\.\n$/);
    expect((await account.run('resume')).stdout).toMatch(/was not paused\.\n$/);
    expect(await account.run('pause', '--reason', 'two\nlines')).toMatchObject({ code: 2 });
  });
});

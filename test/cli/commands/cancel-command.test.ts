import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { userInfo } from 'node:os';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';

let account: AccountCli;

beforeEach(() => {
  account = openAccountCli();
});

afterEach(async () => {
  await account.close();
});

describe('payouts cancel', () => {
  it('cancels what is queued, as the system user, and refuses the rest with the state found', async () => {
    await account.enqueue('p-1');
    expect(await account.runProcess('cancel', 'p-1')).toMatchObject({
      code: 0,
      stdout: 'Payout p-1 is cancelled; it will not be sent.\n',
    });
    expect((await account.ledger.get('p-1'))?.history.at(-1)).toMatchObject({ by: userInfo().username });
    const again = await account.run('cancel', 'p-1', '--json');
    expect(again).toMatchObject({ code: 4, stdout: '' });
    expect(again.stderr).toMatch(
      /^payouts: Cannot move payout p-1 from cancelled to cancelled: that needs queued, held or rejected\. .* it is final/,
    );
    await account.enqueue('p-2');
    await account.force('p-2', 'rejected');
    expect(await account.run('cancel', 'p-2', '--reason', 'wrong address')).toMatchObject({ code: 0, stderr: '' });
    expect((await account.ledger.get('p-2'))?.state).toBe('cancelled');
    expect(await account.run('cancel', 'p-9')).toMatchObject({ code: 3 });
    expect(await account.run('cancel', 'p-1', '--reason', '')).toMatchObject({ code: 2 });
    expect(await account.run('cancel')).toMatchObject({ code: 2 });
  });
});

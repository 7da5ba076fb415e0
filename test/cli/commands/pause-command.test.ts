import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { runCli } from '../../support/cli.js';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';

let account: AccountCli;

beforeEach(() => {
  account = openAccountCli();
});

afterEach(async () => {
  await account.close();
});

describe('payouts pause and resume', () => {
  it('pause and resume the account, and say when it stood so before', async () => {
    const first = await account.runProcess('pause', '--reason', 'maintenance', '--by', 'ann', '--json');
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
    expect((await account.runProcess('resume')).stdout).toMatch(/sends again\.\n$/);
    expect((await account.run('resume')).stdout).toMatch(/was not paused\.\n$/);
    expect(await account.run('pause', '--reason', 'two\nlines')).toMatchObject({ code: 2 });
  });

  it('end with 1 where the replicas that REDIS_REPLICAS asks for do not have it, and can be asked for again', async () => {
    const env = { ...account.env, REDIS_REPLICAS: '1' };
    const unconfirmed = await runCli(['pause', '--reason', 'maintenance'], { env });
    expect(unconfirmed).toMatchObject({ code: 1, stdout: '' });
    expect(unconfirmed.stderr).toMatch(
      /only 0 of 1 replicas acknowledged it .*may or may not be kept; asking again is safe/,
    );
    expect((await account.run('pause')).stdout).toMatch(/was already paused: maintenance/);
  });

  it.each(['WHY', 'why', '<WHY>', '"WHY"'])('refuses %s, which only stands for a reason', async (reason) => {
    const refused = await account.run('pause', '--reason', reason);
    expect(refused).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/--reason: must be your own/) });
    const txhash = await account.run('resolve', 'p', '--sent', '--txhash', 'TXHASH', '--force', '--reason', 'seen');
    expect(txhash).toMatchObject({ code: 2, stderr: expect.stringMatching(/--txhash: must be a real txhash/) });
  });
});

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';

let account: AccountCli;

beforeEach(() => {
  account = openAccountCli();
});

afterEach(async () => {
  await account.close();
});

describe('payouts get', () => {
  it('shows a payout in full with its history', async () => {
    await account.enqueue('p-1', '--reference', 'invoice 77');
    await account.run('cancel', 'p-1', '--reason', 'paid by hand', '--by', 'ann');
    const { code, stdout } = await account.runProcess('get', 'p-1');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^p-1 {2}cancelled: never sent/);
    expect(stdout).toMatch(/ {3}amount +12\.5 \(payment_id 6\)\n/);
    expect(stdout).toMatch(/ {3}reference +invoice 77\n/);
    expect(stdout).toMatch(/History \(UTC\)\n.* queued\n.* cancelled {2}by ann: paid by hand\n$/);
    expect(stdout).not.toContain('\u001b');
  });

  it('prints the fields that programs rely on', async () => {
    await account.enqueue('p-1');
    await account.force('p-1', 'unknown');
    await account.ledger.change({ payoutId: 'p-1', from: 'unknown', to: 'in_progress', txhash: '0xabc', by: 'ann' });
    const { stdout } = await account.run('get', 'p-1', '--json');
    expect(JSON.parse(stdout)).toMatchObject({
      payoutId: 'p-1',
      state: 'in_progress',
      paymentId: 6,
      amount: '12.5',
      addressTo: 'TXYZ9',
      txhash: '0xabc',
      attempt: 0,
      createdAt: expect.stringMatching(/^\d{4}-/),
      updatedAt: expect.stringMatching(/Z$/),
      history: [{ to: 'unknown' }, { from: 'unknown', to: 'in_progress', by: 'ann' }],
    });
    expect((await account.run('get', '--txhash', '0xabc', '--json')).stdout).toBe(stdout);
  });

  it('ends with 3 for a payout that does not exist, and 2 without one', async () => {
    const missing = await account.run('get', 'p-9');
    expect(missing).toMatchObject({ code: 3, stdout: '', stderr: 'payouts: Payout p-9 not found\n' });
    expect(await account.run('get', '--txhash', '0x1')).toMatchObject({ code: 3 });
    expect(await account.run('get')).toMatchObject({ code: 2, stderr: 'payouts: give a payoutId or --txhash\n' });
  });
});

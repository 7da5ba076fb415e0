import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';

let account: AccountCli;

beforeEach(() => {
  account = openAccountCli();
});

afterEach(async () => {
  await account.close();
});

describe('payouts enqueue', () => {
  it('accepts a payout with every field', async () => {
    const result = await account.runProcess(
      ...['enqueue', '--payout-id', 'p-1', '--payment-id', '4', '--amount', '100.50', '--address-to', 'rPT1Sjq'],
      ...['--destination-tag', '4711', '--symbol', 'USD', '--reference', 'invoice 77', '--priority', '3'],
      ...['--not-before', '2030-01-31T09:00:00+01:00', '--metadata', '{"order":[7]}', '--batch', 'b-1', '--json'],
    );
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(result.stdout)).toEqual({ payoutId: 'p-1', state: 'queued', created: true });
    expect(await account.ledger.get('p-1')).toMatchObject({
      paymentId: 4,
      amount: '100.5',
      addressTo: 'rPT1Sjq:4711',
      symbol: 'USD',
      reference: 'invoice 77',
      priority: 3,
      notBefore: '2030-01-31T08:00:00.000Z',
      metadata: { order: [7] },
      batch: 'b-1',
    });
  });

  it('may be repeated, and refuses other data with exit code 4', async () => {
    expect(await account.enqueue('p-1')).toMatchObject({ code: 0, stdout: 'Payout p-1 is queued.\n', stderr: '' });
    expect((await account.enqueue('p-1')).stdout).toBe(
      'Payout p-1 was there already, with the same data: it is queued.\n',
    );
    const conflict = await account.enqueue('p-1', '--amount', '13');
    expect(conflict).toMatchObject({ code: 4, stdout: '' });
    expect(conflict.stderr).toMatch(
      /^payouts: Payout p-1 already exists \(queued\) with a different amount\. Use a new payoutId, .*\n$/,
    );
  });

  it('names every option that is wrong, one a line, with exit code 2', async () => {
    const { code, stderr } = await account.run('enqueue', '--payment-id', 'USDT', '--amount', '0', '--priority', 'x');
    expect(code).toBe(2);
    expect(stderr.split('\n')).toEqual([
      'payouts: --payout-id: is missing',
      expect.stringMatching(/^payouts: --payment-id: must be a whole number.*\(got "USDT"\)$/),
      'payouts: --amount: must be more than 0 (got "0")',
      'payouts: --address-to: is missing',
      'payouts: --priority: must be a whole number (got "x")',
      '',
    ]);
    expect((await account.enqueue('p-1', '--account', 'x')).stderr).toMatch(
      /^payouts: --account: must be a whole number/,
    );
    expect((await account.enqueue('p-1', '--metadata', '{')).stderr).toMatch(/^payouts: --metadata: is not JSON: /);
    const twice = await account.enqueue('p-1', '--address-to', 'r:1', '--destination-tag', '2');
    expect(twice.stderr).toMatch(/^payouts: --destination-tag: is given twice/);
  });
});

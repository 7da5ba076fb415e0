import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';

let account: AccountCli;

beforeEach(() => {
  account = openAccountCli();
});

afterEach(async () => {
  await account.close();
});

describe('payouts list', () => {
  it('lists a state with short addresses, and says when more follow', async () => {
    const address = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
    for (const payoutId of ['p-1', 'p-2']) await account.enqueue(payoutId, '--address-to', address);
    const all = await account.runProcess('list', '--state', 'queued');
    expect(all).toMatchObject({ code: 0, stderr: '' });
    expect(all.stdout.split('\n')[0]).toMatch(/^PAYOUT +STATE +AMOUNT/);
    expect(all.stdout).toMatch(/\np-1 +queued +12\.5 \(payment_id 6\) {2}TXYZop…VkAeBf .*\np-2 /);
    const named = JSON.stringify({ currencies: [{ paymentId: 6, name: 'USDT (TRC-20)' }] });
    const { connection } = account.ledger;
    await connection.redis.hset(connection.keys.gateway, 'currencies', named);
    expect((await account.run('list', '--state', 'queued')).stdout).toMatch(/\np-1 +queued +12\.5 USDT \(TRC-20\) /);
    const one = await account.run('list', '--state', 'queued', '--limit', '1', '--json');
    expect(
      one.stdout
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { addressTo: string }).addressTo),
    ).toEqual([address]);
    expect(one.stderr).toMatch(/More payouts follow/);
    expect((await account.run('list', '--state', 'queued', '--limit', '2')).stderr).toBe('');
  });

  it('goes through all pages of a batch', async () => {
    const payout = { paymentId: 6, amount: '1', addressTo: 'T', batch: 'many' };
    await account.ledger.enqueue(Array.from({ length: 1_203 }, (_, n) => ({ ...payout, payoutId: `p-${n}` })));
    const { stdout } = await account.run('list', '--batch', 'many', '--all', '--json');
    const payoutIds = stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { payoutId: string }).payoutId);
    expect(payoutIds).toEqual(Array.from({ length: 1_203 }, (_, n) => `p-${n}`));
    const { stdout: stats } = await account.run('stats', '--batch', 'many', '--json');
    expect(JSON.parse(stats)).toMatchObject({ batch: 'many', total: 1_203, queued: 1_203, completed: 0 });
  });

  it('finds by address, reference, amount and time, the newest first', async () => {
    await account.enqueue('p-1', '--reference', 'Invoice 77');
    await account.enqueue('p-2', '--amount', '3500.50', '--batch', 'May');
    await account.enqueue('p-3', '--address-to', 'TOTHER', '--batch', 'May');
    const find = async (...args: string[]): Promise<string[]> => {
      const { stdout } = await account.run('list', ...args, '--json');
      return stdout
        .split('\n')
        .flatMap((line) => (line === '' ? [] : [(JSON.parse(line) as { payoutId: string }).payoutId]));
    };
    expect(await find('--address', 'TXYZ9')).toEqual(['p-2', 'p-1']);
    expect(await find('--reference', 'invoice')).toEqual(['p-1']);
    expect(await find('--amount', '3500.5')).toEqual(['p-2']);
    expect(await find('--amount', '3,500.5')).toEqual(['p-2']);
    expect(await find('--since', '2020-01-01')).toEqual(['p-3', 'p-2', 'p-1']);
    expect(await find('--until', '2020-01-01T00:00:00Z')).toEqual([]);
    expect(await find('--state', 'queued', '--batch', 'May')).toEqual(['p-3', 'p-2']);
    expect(await find('--address', 'TXYZ9', '--limit', '1')).toEqual(['p-2']);
    const none = await account.run('list', '--address', 'nobody');
    expect(none).toMatchObject({ code: 0, stdout: '', stderr: '' });
    for (const args of [
      ['--amount', 'x'],
      ['--since', 'yesterday'],
      ['--address', ' '],
    ]) {
      expect(await account.run('list', ...args)).toMatchObject({ code: 2, stdout: '' });
    }
  });

  it('ends with 2 for wrong usage', async () => {
    expect(await account.run('list')).toMatchObject({
      code: 2,
      stderr: 'payouts: give --state, --batch, --address, --reference, --amount, --since, --until or --archived\n',
    });
    expect((await account.run('list', '--state', 'gone')).stderr).toMatch(/Allowed choices are queued, held, sending/);
    expect((await account.run('list', '--state', 'queued', '--limit', '0')).stderr).toMatch(
      /--limit: must be at least 1/,
    );
  });
});

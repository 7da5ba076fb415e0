import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { begin, takeLease } from '../../ledger/contract/ledger-rig.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';

let account: AccountCli;

beforeEach(() => {
  account = openAccountCli();
});

afterEach(async () => {
  await account.close();
});

const BREAKER = { maxRejectionsInARow: 5, maxUnknownsInARow: 2 };
const WHY = ['--reason', 'topped up', '--by', 'ann'];
const IDS = ['p-1', 'p-2', 'p-3', 'p-4', 'p-5'];

/** The gateway rejects five payouts, which pauses the account. */
async function rejectFive(): Promise<void> {
  const sender = new RedisSenderLedger(account.ledger.connection, 'reply');
  const lease = await takeLease(sender, 'one');
  for (const payoutId of IDS) {
    await account.enqueue(payoutId, '--batch', 'May');
    const attempt = await begin(sender, lease, payoutId);
    const message = payoutId === 'p-5' ? 'Wrong address' : 'Insufficient balance';
    await sender.finishSend(attempt, { kind: 'rejected', message }, BREAKER, 0);
  }
}

const states = async () => Promise.all(IDS.map(async (payoutId) => (await account.ledger.get(payoutId))?.state));

describe('payouts retry of many', () => {
  it("puts a breaker's five rejected payouts back in one command, each with a job of its own", async () => {
    await rejectFive();
    expect(JSON.parse((await account.run('stats', '--json')).stdout)).toMatchObject({ paused: true, rejected: 5 });
    const { redis, keys } = account.ledger.connection;
    const currencies = { currencies: [{ paymentId: 6, name: 'USDT (TRC-20)' }], currenciesAt: Date.now() };
    await redis.hset(keys.gateway, { currencies: JSON.stringify(currencies) });
    const result = await account.runProcess('retry', '--state', 'rejected', '--yes', ...WHY);
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(result.stdout).toMatch(/^5 payouts rejected\n.* +6 +5 +62\.5 USDT \(TRC-20\)\n5 payouts queued again\.\n$/s);
    expect(await states()).toEqual(['queued', 'queued', 'queued', 'queued', 'queued']);
    expect(await redis.lrange(`${keys.prefix}:withdraw:wait`, 0, -1)).toEqual(
      expect.arrayContaining(IDS.map((payoutId) => `${payoutId}~1`)),
    );
    expect(await redis.zcard(keys.outbox)).toBe(0);
  });

  it('--message takes those whose message has the text in it, in capitals or not', async () => {
    await rejectFive();
    const result = await account.run('retry', '--message', 'insufficient', '--yes', '--json', ...WHY);
    expect(JSON.parse(result.stdout)).toMatchObject({ payouts: 4, changed: 4, others: {} });
    expect(await states()).toEqual(['queued', 'queued', 'queued', 'queued', 'rejected']);
    const none = await account.run('retry', '--message', 'no such text', '--yes', ...WHY);
    expect(none).toMatchObject({ code: 0, stdout: '0 payouts rejected\n0 payouts queued again.\n' });
  });

  it('leaves one that was retried for the same reason and rejected again', async () => {
    await rejectFive();
    await account.run('retry', '--batch', 'May', '--yes', ...WHY);
    await account.force('p-2', 'rejected');
    const { redis, keys } = account.ledger.connection;
    await redis.hset(keys.payout('p-2'), { h0: `${Date.now()}\tqueued` });
    const again = await account.run('retry', '--batch', 'May', '--yes', ...WHY);
    expect(again.stdout).toMatch(
      /^0 payouts rejected, 4 queued left as they are\n1 payout left as they are: decided so/,
    );
    const other = await account.run('retry', '--batch', 'May', '--yes', '--reason', 'topped up more');
    expect(other.stdout).toMatch(/1 payout queued again/);
  });
});

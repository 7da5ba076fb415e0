import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Payout } from '../../../src/ledger/payout.js';
import { systemClock } from '../../../src/base/clock.js';
import { createGatewayClient } from '../../../src/gateway/gateway-client.js';
import { silentLogger } from '../../../src/base/logger.js';
import { openGatewayCli, SECRET_KEY, type GatewayCli } from '../support/gateway-cli.js';

let account: GatewayCli;

beforeEach(async () => {
  account = await openGatewayCli();
});

afterEach(async () => {
  await account.close();
});

const PAYMENT = { paymentId: 6, amount: '12.5', addressTo: 'TXYZ9' };
const WHY = ['--reason', 'ticket 812', '--by', 'ann'];

/** Pays at the sandbox what a worker would have paid. @returns the txhash */
async function pay(payment: typeof PAYMENT): Promise<string> {
  const { platformId } = account.ledger.connection;
  const client = createGatewayClient({
    baseUrl: account.sandbox.url,
    platformId,
    secretKey: SECRET_KEY,
    clock: systemClock,
    logger: silentLogger,
  });
  const outcome = await client.withdraw(payment);
  client.close();
  if (outcome.kind !== 'accepted') throw new Error(`The sandbox did not pay: ${JSON.stringify(outcome)}`);
  return outcome.txhash;
}

async function makeUnknown(payoutId: string): Promise<void> {
  await account.enqueue(payoutId);
  await account.force(payoutId, 'unknown');
  const { redis, keys } = account.ledger.connection;
  await redis.del(keys.outbox);
}

async function statusJobs(): Promise<string[]> {
  const { redis, keys } = account.ledger.connection;
  return redis.lrange(`${keys.prefix}:transactionstatus:wait`, 0, -1);
}

describe('payouts resolve --sent', () => {
  it('follows a transaction that the gateway confirms, and records who and why', async () => {
    await makeUnknown('p-1');
    const txhash = await pay({ ...PAYMENT, amount: '12.50' });
    const result = await account.runProcess('resolve', 'p-1', '--sent', '--txhash', txhash, ...WHY, '--json');
    expect(result).toMatchObject({ code: 0, stderr: '' });
    const payout = JSON.parse(result.stdout) as Payout;
    expect(payout).toMatchObject({ state: 'in_progress', txhash });
    expect(payout.history.at(-1)).toMatchObject({ from: 'unknown', by: 'ann', reason: 'ticket 812' });
    expect(await statusJobs()).toEqual(['p-1~0']);
    const { redis, keys } = account.ledger.connection;
    expect(await redis.zcard(keys.outbox)).toBe(0);
  });

  it.each([
    ['currency', { ...PAYMENT, paymentId: 7 }, /paymentId is 7 at the gateway, 6 in the payout/],
    ['address', { ...PAYMENT, addressTo: 'TXYZ8' }, /addressTo is TXYZ8 at the gateway, TXYZ9 in the payout/],
    [
      'amount',
      { ...PAYMENT, amount: '12.500000000000000001' },
      /amount is 12\.500000000000000001 at the gateway, 12\.5 in/,
    ],
  ])('refuses a transaction with another %s, unless --force', async (_, payment, message) => {
    await makeUnknown('p-1');
    const txhash = await pay(payment);
    const refused = await account.run('resolve', 'p-1', '--sent', '--txhash', txhash, ...WHY);
    expect(refused).toMatchObject({ code: 4, stdout: '', stderr: expect.stringMatching(message) });
    expect((await account.ledger.get('p-1'))?.state).toBe('unknown');
    const forced = await account.run('resolve', 'p-1', '--sent', '--txhash', txhash, '--force', ...WHY);
    expect(forced).toMatchObject({ code: 0, stderr: '' });
    const payout = await account.ledger.get('p-1');
    expect(payout).toMatchObject({ state: 'in_progress', txhash });
    expect(payout?.history.at(-1)?.reason).toBe('ticket 812 (txhash not checked with the gateway)');
  });

  it('refuses a transaction that the gateway does not know, or that cannot be asked about', async () => {
    await makeUnknown('p-1');
    const args = ['resolve', 'p-1', '--sent', '--txhash', 'abc', ...WHY];
    const refused = await account.run(...args);
    expect(refused).toMatchObject({ code: 4, stderr: expect.stringMatching(/no status for transaction abc: unknown/) });
    const unreachable = await account.runWith({ GATEWAY_BASE_URL: 'http://127.0.0.1:1' }, ...args);
    expect(unreachable).toMatchObject({ code: 1, stdout: '' });
    expect((await account.ledger.get('p-1'))?.state).toBe('unknown');
  });

  it.each(['null', '0', `0x${'0'.repeat(64)}`])(
    'refuses the txhash %s, which is none, also with --force',
    async (txhash) => {
      await makeUnknown('p-1');
      const args = ['resolve', 'p-1', '--sent', '--txhash', txhash, ...WHY];
      for (const refused of [await account.run(...args), await account.run(...args, '--force')]) {
        expect(refused).toMatchObject({ code: 2, stdout: '' });
        expect(refused.stderr).toMatch(/^payouts: --txhash: must be a real txhash, .*\(got ".*"\)\n$/);
      }
      expect((await account.ledger.get('p-1'))?.state).toBe('unknown');
    },
  );

  it('refuses the transaction of another payout', async () => {
    for (const payoutId of ['p-1', 'p-2']) await makeUnknown(payoutId);
    const txhash = await pay(PAYMENT);
    expect(await account.run('resolve', 'p-1', '--sent', '--txhash', txhash, ...WHY)).toMatchObject({ code: 0 });
    for (const spelling of [txhash, txhash.toUpperCase(), `0x${txhash}`]) {
      const refused = await account.run('resolve', 'p-2', '--sent', '--txhash', spelling, ...WHY);
      expect(refused).toMatchObject({ code: 4, stderr: expect.stringMatching(/already belongs to payout p-1/) });
      const found = await account.run('get', '--txhash', spelling, '--json');
      expect(JSON.parse(found.stdout)).toMatchObject({ payoutId: 'p-1', txhash });
    }
  });
});

describe('payouts resolve', () => {
  it('--not-sent queues it again, with a job of its own', async () => {
    await makeUnknown('p-1');
    const result = await account.runProcess('resolve', 'p-1', '--not-sent', ...WHY);
    expect(result).toMatchObject({ code: 0, stdout: expect.stringMatching(/p-1 is queued: it is sent again/) });
    const { redis, keys } = account.ledger.connection;
    expect(await redis.lrange(`${keys.prefix}:withdraw:wait`, 0, -1)).toEqual(['p-1~1', 'p-1~0']);
    expect((await account.ledger.get('p-1'))?.history.at(-1)).toMatchObject({ by: 'ann', reason: 'ticket 812' });
  });

  it('--write-off cancels it', async () => {
    await makeUnknown('p-1');
    const result = await account.run('resolve', 'p-1', '--write-off', '--reason', 'paid by hand', '--json');
    expect(JSON.parse(result.stdout)).toMatchObject({ payoutId: 'p-1', state: 'cancelled' });
    expect((await account.ledger.get('p-1'))?.history.at(-1)).toMatchObject({ by: expect.stringMatching(/./) });
  });

  it.each(['--sent', '--not-sent', '--write-off'])('%s refuses what is not unknown', async (decision) => {
    await account.enqueue('p-1');
    const txhash = decision === '--sent' ? ['--txhash', 'abc'] : [];
    const refused = await account.run('resolve', 'p-1', decision, ...txhash, ...WHY);
    expect(refused).toMatchObject({ code: 4, stdout: '' });
    expect(refused.stderr).toMatch(
      /Cannot move payout p-1 from queued to \w+: that needs unknown\. Allowed from queued: sending, cancelled/,
    );
    expect(await account.run('resolve', 'p-2', decision, ...txhash, ...WHY)).toMatchObject({ code: 3 });
    expect((await account.ledger.get('p-1'))?.state).toBe('queued');
  });

  it('wants one decision, a reason, and a txhash where it belongs', async () => {
    const wrong = [
      ['p-1', '--not-sent'],
      ['p-1', ...WHY],
      ['p-1', '--not-sent', '--write-off', ...WHY],
      ['p-1', '--sent', ...WHY],
      ['p-1', '--sent', '--txhash', 'a b', ...WHY],
      ['p-1', '--not-sent', '--txhash', 'abc', ...WHY],
      ['p-1', '--write-off', '--force', ...WHY],
    ];
    for (const args of wrong) expect(await account.run('resolve', ...args)).toMatchObject({ code: 2, stdout: '' });
  });
});

import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { call, post, signForm, withdrawFields, type Merchant, type Reply } from './support/independent-client.js';
import { runSandbox, SECRET_KEY } from './support/running-sandbox.js';

describe('the five endpoints, called by a client that shares no code with this project', () => {
  it('pays, reports the status, gives a wallet, lists currencies and the balance', async () => {
    const { merchant, clock } = await runSandbox({ settleAfterMs: 3000 });
    const paid = await call(merchant, 'withdraw', withdrawFields(merchant, { amount: '12.50', symbol: 'USD' }));
    expect(paid).toEqual({
      result: 1,
      address_to: 'TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE',
      payment_id: 6,
      amount: '12.5',
      txhash: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown,
    });

    const txhash = String(paid['txhash']);
    const status = { platform_id: '1001', txhash };
    expect(await call(merchant, 'transactionstatus', status)).toEqual({ ...paid, approve: 0, fee: '1' });
    clock.advance(2999);
    expect(await call(merchant, 'transactionstatus', status)).toMatchObject({ approve: 0 });
    clock.advance(1);
    expect(await call(merchant, 'transactionstatus', status)).toMatchObject({ approve: 1 });

    const list = (await call(merchant, 'currencies', { platform_id: '1001' }))['list'] as Record<string, unknown>[];
    expect(list.map((item) => item['currency'])).toEqual(expect.arrayContaining(['BTC', 'ETH', 'XRP', 'TON', 'USDT']));
    const bitcoin = { currency: 'BTC', name: 'Bitcoin', network: 'Bitcoin', rate_usd: '64250.5' };
    expect(list[0]).toEqual({ payment_id: 1, ...bitcoin });
    expect(await call(merchant, 'balance', { platform_id: '1001' })).toEqual({ result: 1, balance: '999999999987.5' });
  });

  it('gives a stable wallet per currency and order, with a destination tag for XRP and TON only', async () => {
    const { merchant } = await runSandbox();
    const wallet = (paymentId: number, orderId: string): Promise<Readonly<Record<string, unknown>>> =>
      call(merchant, 'getpaymentwallet', { payment_id: String(paymentId), platform_id: '1001', order_id: orderId });

    const first = await wallet(4, 'order-1:+/=.,');
    expect(first).toMatchObject({ result: 1, destinationTag: expect.stringMatching(/^\d+$/) as unknown });
    expect(await wallet(4, 'order-1:+/=.,')).toEqual(first);
    expect((await wallet(4, 'order-2'))['address']).not.toBe(first['address']);
    expect((await wallet(5, 'order-1'))['destinationTag']).toMatch(/^\d+$/);
    expect((await wallet(1, 'order-1'))['destinationTag']).toBe('');
    expect(await wallet(1, 'order_1')).toMatchObject({
      result: 0,
      message: expect.stringContaining('order_id') as unknown,
    });
    expect(await wallet(999, 'order-1')).toEqual({ result: 0, message: 'unknown payment_id 999' });
  });

  it('lets chosen recipients and a share of the payments end in error', async () => {
    const fails = { settleAfterMs: 0, failAddresses: ['bad'], failShare: 0.5, seed: 7 };
    const { merchant, clock, sandbox } = await runSandbox(fails);
    for (let index = 0; index < 40; index += 1) {
      clock.advance(1000);
      const addressTo = index % 4 === 0 ? 'bad' : `good${index}`;
      await call(merchant, 'withdraw', withdrawFields(merchant, { addressTo }));
    }
    const payments = sandbox.payments();
    const failed = payments.filter(({ settlesAs }) => settlesAs === 2);
    expect(payments.filter(({ addressTo, settlesAs }) => addressTo === 'bad' && settlesAs !== 2)).toEqual([]);
    expect(failed.length).toBeGreaterThan(15);
    expect(failed.length).toBeLessThan(35);
    const status = { platform_id: '1001', txhash: failed[0]?.txhash ?? '' };
    expect(await call(merchant, 'transactionstatus', status)).toMatchObject({ result: 1, approve: 2 });
  });

  it('keeps the balance to the last decimal place and refuses what it cannot pay', async () => {
    const account = { platformId: 1001, secretKey: SECRET_KEY, balance: '6425.050000000000000001' };
    const { merchant, clock, sandbox } = await runSandbox({ accounts: [account] });
    const btc = withdrawFields(merchant, { paymentId: 1, amount: '0.1' });
    expect(await call(merchant, 'withdraw', btc)).toMatchObject({ result: 1 });
    expect(sandbox.stats().balance).toBe('0.000000000000000001');
    clock.advance(1000);
    const tooMuch = withdrawFields(merchant, { amount: '0.000000000000000002' });
    expect(await call(merchant, 'withdraw', tooMuch)).toEqual({ result: 0, message: 'insufficient balance' });
    clock.advance(1000);
    const rest = withdrawFields(merchant, { amount: '0.000000000000000001' });
    expect(await call(merchant, 'withdraw', rest)).toMatchObject({ result: 1 });
    expect(sandbox.stats()).toMatchObject({ balance: '0', payments: 2 });
  });
});

describe('a strict gateway refuses', () => {
  it('a body whose bytes are not those that were signed', async () => {
    const { merchant, sandbox } = await runSandbox();
    const body = signForm(merchant, withdrawFields(merchant));
    const wrong = { result: 0, message: 'wrong signature' };
    const reply = async (changed: string): Promise<unknown> => (await post(`${merchant.url}/withdraw`, changed)).json();

    expect(await reply(body.replace('amount=10', 'amount=11'))).toEqual(wrong);
    expect(await reply(body.replace('amount=10', 'amount=1%30'))).toEqual(wrong);
    expect(await reply(body.replace(/&hash=.*/, ''))).toEqual(wrong);
    expect(await reply(body.replace(/hash=.{6}/, 'hash=zzzzzz'))).toEqual(wrong);
    expect(await reply(`${body}&hash=${'0'.repeat(64)}`)).toEqual(wrong);
    expect(await reply(signForm({ ...merchant, secretKey: 'other' }, withdrawFields(merchant)))).toEqual(wrong);
    expect(await reply(body.replace('platform_id=1001', 'platform_id=7'))).toEqual({
      result: 0,
      message: 'unknown platform_id',
    });
    expect(await reply('%zz=1')).toEqual({ result: 0, message: 'the body is no valid form' });
    // Only the account itself can use up its limit.
    expect(sandbox.stats()).toMatchObject({ arrivals: 0, payments: 0, blocked: false });
  });

  it('fields in another order, missing, unknown or sent twice', async () => {
    const { merchant, clock } = await runSandbox();
    const { payment_id, ...others } = withdrawFields(merchant);
    const message = async (fields: Record<string, string>): Promise<unknown> => {
      clock.advance(1000);
      return (await call(merchant, 'withdraw', fields))['message'];
    };
    expect(await message({ ...others, payment_id: payment_id ?? '' })).toBe(
      'wrong field order: expected payment_id, platform_id, amount, address_to',
    );
    expect(await message(others)).toBe('payment_id is missing');
    expect(await message({ ...withdrawFields(merchant), colour: 'red' })).toBe('unknown field colour');
  });

  it.each<[endpoint: string, field: string, sent: readonly string[]]>([
    ['withdraw', 'amount', ['1.0E-5', '1e3', '0', '0.000', '', ' 1', '12,50', '-1', '0.0000000000000000001']],
    ['withdraw', 'payment_id', ['0', '000', 'six', '1e3', '1.5']],
    ['withdraw', 'address_to', ['', 'with space', 'r:']],
    ['withdraw', 'symbol', ['usd', 'undefined']],
    ['transactionstatus', 'txhash', ['a b', 'null']],
    ['getpaymentwallet', 'payment_id', ['-1', '0']],
    ['getpaymentwallet', 'order_id', ['a_b']],
  ])('in %s a bad %s, showing the value that was sent: %j', async (endpoint, field, values) => {
    const { merchant, sandbox, clock } = await runSandbox();
    const good = {
      withdraw: withdrawFields(merchant, { symbol: 'USD' }),
      transactionstatus: { platform_id: '1001', txhash: 'abc' },
      getpaymentwallet: { payment_id: '6', platform_id: '1001', order_id: 'a' },
    }[endpoint];
    for (const sent of values) {
      clock.advance(1000);
      const { message } = await call(merchant, endpoint, { ...good, [field]: sent });
      expect(message).toMatch(new RegExp(`^${field}: (must|ends|has) `));
      expect(String(message).endsWith(`(got ${JSON.stringify(sent)})`)).toBe(true);
    }
    expect(sandbox.stats()).toMatchObject({ arrivals: endpoint === 'withdraw' ? values.length : 0, payments: 0 });
  });

  it.each([
    [{ paymentId: 4, addressTo: 'rNoTag' }, /address_to must be address:destinationTag/],
    [{ paymentId: 77 }, /unknown payment_id/],
    [{ addressTo: 'x'.repeat(300) }, /^address_to: must have at most 256 characters \(got "x{79}…\)$/],
  ])('a withdraw with %j', async (change, message) => {
    const { merchant, sandbox } = await runSandbox();
    const reply = await call(merchant, 'withdraw', withdrawFields(merchant, change));
    expect(reply).toEqual({ result: 0, message: expect.stringMatching(message) as unknown });
    expect(sandbox.stats()).toMatchObject({ arrivals: 1, payments: 0 });
  });

  it('an unknown txhash, another method, another content type, another path', async () => {
    const { merchant } = await runSandbox();
    const unknown = { platform_id: '1001', txhash: 'abc' };
    expect(await call(merchant, 'transactionstatus', unknown)).toEqual({ result: 0, message: 'unknown txhash' });
    const get = await fetch(`${merchant.url}/balance`);
    expect([get.status, get.headers.get('allow'), await get.json()]).toMatchObject([405, 'POST', { result: 0 }]);
    const json = await fetch(`${merchant.url}/balance`, {
      method: 'POST',
      body: '{}',
      headers: { 'content-type': 'application/json' },
    });
    expect([json.status, await json.json()]).toMatchObject([415, { result: 0 }]);
    const lost = await post(`${merchant.url}/payout`, '');
    expect([lost.status, await lost.json()]).toMatchObject([404, { result: 0 }]);
  });

  it('a body beyond the limit, with a response', async () => {
    const { merchant } = await runSandbox();
    const reply = await post(`${merchant.url}/balance`, `platform_id=1001&x=${'a'.repeat(2_000_000)}`);
    expect([reply.status, await reply.json()]).toEqual([413, { result: 0, message: 'the body is too large' }]);
  });
});

describe('compression', () => {
  it.each([
    ['gzip', 'gzip'],
    ['br, gzip;q=0.5', 'gzip'],
    ['gzip;q=0', null],
    ['identity', null],
  ])('accept-encoding %s gives content-encoding %s', async (accepted, expected) => {
    const { merchant } = await runSandbox();
    const response = await fetch(`${merchant.url}/balance`, {
      method: 'POST',
      body: signForm(merchant, { platform_id: '1001' }),
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'accept-encoding': accepted },
    });
    expect(response.headers.get('content-encoding')).toBe(expected);
    expect(await response.json()).toMatchObject({ result: 1 });
  });
});

const BLOCKED = { result: 0, message: 'account blocked' };

function withdraw(merchant: Merchant, change: Parameters<typeof withdrawFields>[1] = {}): Promise<Reply> {
  return call(merchant, 'withdraw', withdrawFields(merchant, change));
}

describe('one withdrawal per second', () => {
  it('accepts withdrawals exactly 1000 ms apart', async () => {
    const { merchant, clock, sandbox } = await runSandbox();
    for (let index = 0; index < 5; index += 1) {
      clock.advance(1000);
      expect(await withdraw(merchant, { addressTo: `wallet${index}` })).toMatchObject({ result: 1 });
    }
    expect(sandbox.stats()).toMatchObject({ blocked: false, arrivals: 5, smallestGapMs: 1000, meanGapMs: 1000 });
  });

  it.each([990, 999, 999.999])('blocks the account at %d ms: that call and every later one fails', async (gapMs) => {
    const { merchant, clock, sandbox } = await runSandbox();
    await withdraw(merchant, { addressTo: 'first' });
    clock.advance(gapMs);
    expect(await withdraw(merchant, { addressTo: 'second' })).toEqual(BLOCKED);
    clock.advance(60_000);
    expect(await withdraw(merchant, { addressTo: 'third' })).toEqual(BLOCKED);
    expect(await call(merchant, 'balance', { platform_id: '1001' })).toEqual(BLOCKED);
    expect(sandbox.stats()).toMatchObject({ blocked: true, payments: 1, arrivals: 3 });
    expect(sandbox.stats().smallestGapMs).toBeCloseTo(gapMs, 6);
    expect(sandbox.arrivals()[1]).toMatchObject({ addressTo: 'second', amount: '10' });

    sandbox.unblock();
    clock.advance(1000);
    expect(await withdraw(merchant)).toMatchObject({ result: 1 });
  });

  it('counts a withdrawal that is refused for another reason', async () => {
    const { merchant, clock } = await runSandbox();
    expect(await withdraw(merchant, { amount: 'much' })).toMatchObject({ result: 0 });
    clock.advance(500);
    expect(await withdraw(merchant)).toEqual(BLOCKED);
  });

  it('applies to each account on its own, and not to other calls', async () => {
    const accounts = [1001, 1002].map((platformId) => ({ platformId, secretKey: SECRET_KEY }));
    const { merchant, sandbox } = await runSandbox({ accounts });
    const other = { ...merchant, platformId: 1002 };
    await withdraw(merchant);
    expect(await withdraw(other)).toMatchObject({ result: 1 });
    for (let index = 0; index < 3; index += 1) await call(merchant, 'balance', { platform_id: '1001' });
    await withdraw(other);
    expect(sandbox.stats(1001)).toMatchObject({ blocked: false, arrivals: 1, calls: { withdraw: 1, balance: 3 } });
    expect(sandbox.stats(1002)).toMatchObject({ blocked: true, arrivals: 2, smallestGapMs: 0 });
    expect(() => sandbox.stats()).toThrow('platformId: must be one of 1001, 1002');
  });

  it('enforces another gap if configured', async () => {
    const { merchant, clock, sandbox } = await runSandbox({ minGapMs: 50 });
    await withdraw(merchant);
    clock.advance(50);
    expect(await withdraw(merchant)).toMatchObject({ result: 1 });
    clock.advance(49);
    expect(await withdraw(merchant)).toEqual(BLOCKED);
    expect(sandbox.stats().blockedReason).toBe('two withdrawals arrived 49 ms apart, the minimum is 50 ms');
  });

  it('measures in real time when the request was received completely, not when it began', async () => {
    const { merchant, sandbox } = await runSandbox({ clock: systemClock, latencyAfterMs: 1 });
    await withdraw(merchant, { addressTo: 'first' });
    // Sent well after the previous one, but with less latency: network jitter does this to a sender that paces by sends.
    await delay(1010);
    sandbox.setFaults([{ kind: 'latency-before', delayMs: 600, addresses: ['slow'] }]);
    const slow = withdraw(merchant, { addressTo: 'slow' });
    await delay(1010);
    expect(sandbox.stats().blocked).toBe(false);
    expect(await withdraw(merchant, { addressTo: 'fast' })).toEqual(BLOCKED);
    expect(await slow).toMatchObject({ result: 1 });
    expect(sandbox.stats().smallestGapMs).toBeLessThan(1000);
  });
});

describe('payments made twice', () => {
  it('are reported per recipient and amount, in whatever notation', async () => {
    const { merchant, clock, sandbox } = await runSandbox();
    for (const payment of ['a 5', 'a 5.0', 'a 6', 'b 5']) {
      const [addressTo = '', amount = ''] = payment.split(' ');
      clock.advance(1000);
      await withdraw(merchant, { addressTo, amount });
    }
    const stats = sandbox.stats();
    expect(stats.paymentsPerAddress).toEqual({ a: 3, b: 1 });
    expect(stats.paymentsPerAddressAndAmount).toEqual([
      { addressTo: 'a', amount: '5', count: 2 },
      { addressTo: 'a', amount: '6', count: 1 },
      { addressTo: 'b', amount: '5', count: 1 },
    ]);
    const [first, second] = sandbox.payments();
    const txhashes = [first?.txhash, second?.txhash];
    expect(stats.duplicatePayments).toEqual([{ addressTo: 'a', amount: '5', txhashes }]);
  });
});

import { describe, expect, it } from '@jest/globals';
import { call, post, signForm, withdrawFields } from './support/independent-client.js';
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
    expect(list[0]).toEqual({
      payment_id: 1,
      currency: 'BTC',
      name: 'Bitcoin',
      network: 'Bitcoin',
      rate_usd: '64250.5',
    });
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
    const { merchant, clock, sandbox } = await runSandbox({
      settleAfterMs: 0,
      failAddresses: ['bad'],
      failShare: 0.5,
      seed: 7,
    });
    for (let index = 0; index < 40; index += 1) {
      clock.advance(1000);
      await call(
        merchant,
        'withdraw',
        withdrawFields(merchant, { addressTo: index % 4 === 0 ? 'bad' : `good${index}` }),
      );
    }
    const payments = sandbox.payments();
    const failed = payments.filter(({ settlesAs }) => settlesAs === 2);
    expect(payments.filter(({ addressTo }) => addressTo === 'bad').every(({ settlesAs }) => settlesAs === 2)).toBe(
      true,
    );
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

  it.each([
    ['amount', { amount: '1e3' }],
    ['amount', { amount: '0' }],
    ['amount', { amount: '-1' }],
    ['amount', { amount: '0.0000000000000000001' }],
    ['symbol', { symbol: 'usd' }],
    ['payment_id', { paymentId: 1.5 }],
    ['address_to', { addressTo: 'with space' }],
    ['address_to must be address:destinationTag', { paymentId: 4, addressTo: 'rNoTag' }],
    ['unknown payment_id', { paymentId: 77 }],
  ])('a withdraw with a bad %s', async (expected, change) => {
    const { merchant, sandbox } = await runSandbox();
    const reply = await call(merchant, 'withdraw', withdrawFields(merchant, change));
    expect(reply).toEqual({ result: 0, message: expect.stringContaining(expected) as unknown });
    expect(sandbox.stats()).toMatchObject({ arrivals: 1, payments: 0 });
  });

  it.each<[endpoint: string, field: string, sent: string]>([
    ['withdraw', 'amount', '1.0E-5'],
    ['withdraw', 'amount', '0'],
    ['withdraw', 'amount', '0.000'],
    ['withdraw', 'amount', ''],
    ['withdraw', 'amount', ' 1'],
    ['withdraw', 'amount', '12,50'],
    ['withdraw', 'payment_id', '0'],
    ['withdraw', 'payment_id', '000'],
    ['withdraw', 'payment_id', 'six'],
    ['withdraw', 'payment_id', '1e3'],
    ['withdraw', 'address_to', ''],
    ['withdraw', 'address_to', 'with space'],
    ['withdraw', 'address_to', 'r:'],
    ['withdraw', 'symbol', 'usd'],
    ['withdraw', 'symbol', 'undefined'],
    ['transactionstatus', 'txhash', 'a b'],
    ['transactionstatus', 'txhash', 'null'],
    ['getpaymentwallet', 'payment_id', '-1'],
    ['getpaymentwallet', 'payment_id', '0'],
    ['getpaymentwallet', 'order_id', 'a_b'],
  ])('in %s a bad %s, showing the value that was sent: %j', async (endpoint, field, sent) => {
    const { merchant } = await runSandbox();
    const good = {
      withdraw: withdrawFields(merchant, { symbol: 'USD' }),
      transactionstatus: { platform_id: '1001', txhash: 'abc' },
      getpaymentwallet: { payment_id: '6', platform_id: '1001', order_id: 'a' },
    }[endpoint];
    const { message } = await call(merchant, endpoint, { ...good, [field]: sent });
    expect(message).toMatch(new RegExp(`^${field}: (must|ends|has) `));
    expect(String(message).endsWith(`(got ${JSON.stringify(sent)})`)).toBe(true);
  });

  it('a long bad value, showing its beginning', async () => {
    const { merchant } = await runSandbox();
    const { message } = await call(merchant, 'withdraw', withdrawFields(merchant, { addressTo: 'x'.repeat(300) }));
    expect(message).toMatch(/^address_to: must have at most 256 characters \(got "x{79}…\)$/);
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

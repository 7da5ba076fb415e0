import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openGatewayCli, SECRET_KEY, type GatewayCli } from '../support/gateway-cli.js';

let account: GatewayCli;
let openEnded: Server;

/** A balance and currencies of another structure than the sandbox's: docs/gateway-api.md#open-points. */
const RESPONSES: Readonly<Record<string, string>> = {
  '/balance': '{"result":1,"balance":{"USD":12345678901234567890.5,"note":"a\\u001b[31mb"}}',
  '/currencies': '{"result":1,"list":[{"id":1,"x":{"y":2}},{"id":2,"more":null}]}',
};

beforeAll(async () => {
  account = await openGatewayCli();
  openEnded = createServer((request, response) => response.end(RESPONSES[request.url ?? ''] ?? '{}'));
  await new Promise<void>((resolve) => openEnded.listen(0, '127.0.0.1', resolve));
});

afterAll(async () => {
  await account.close();
  await new Promise((resolve) => openEnded.close(resolve));
});

function lines(text: string): unknown[] {
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
}

describe('payouts gateway', () => {
  it('shows the balance', async () => {
    expect(await account.runProcess('gateway', 'balance')).toMatchObject({ code: 0, stdout: '1000.5\n', stderr: '' });
    const { stdout } = await account.run('gateway', 'balance', '--json');
    expect(JSON.parse(stdout)).toEqual({ balance: '1000.5' });
  });

  it('lists the currencies as a table, or each as a line of JSON', async () => {
    const { stdout } = await account.runProcess('gateway', 'currencies');
    expect(stdout).toMatch(/^PAYMENT_ID +CURRENCY +NAME +NETWORK +RATE_USD\n1 +BTC +Bitcoin +Bitcoin +64250\.5\n/);
    const json = lines((await account.run('gateway', 'currencies', '--json')).stdout);
    expect(json).toHaveLength(13);
    expect(json[5]).toMatchObject({ payment_id: 6, currency: 'USDT' });
  });

  it('shows the address for deposits, with its destination tag', async () => {
    const args = ['gateway', 'wallet', '--payment-id', '4', '--order-id', 'deposit-17'];
    const { stdout } = await account.runProcess(...args, '--json');
    const wallet = JSON.parse(stdout) as Record<string, string>;
    expect(wallet).toEqual({
      paymentId: 4,
      orderId: 'deposit-17',
      address: expect.any(String),
      destinationTag: expect.stringMatching(/^\d+$/),
    });
    const { stdout: table } = await account.run(...args);
    expect(table).toMatch(
      new RegExp(`^address +${wallet['address']}\ndestination tag +${wallet['destinationTag']}\n$`),
    );
  });

  it('shows how far a transaction is, and exits 1 when the gateway does not know it', async () => {
    const unknown = await account.runProcess('gateway', 'status', 'abc123');
    expect(unknown).toMatchObject({ code: 1, stdout: '' });
    expect(unknown.stderr).toBe('payouts: The gateway refused /transactionstatus: unknown txhash\n');
  });

  it('shows any structure that the gateway returns, with every digit and without control characters', async () => {
    const env = { GATEWAY_BASE_URL: `http://127.0.0.1:${(openEnded.address() as AddressInfo).port}` };
    const balance = await account.runWith(env, 'gateway', 'balance');
    expect(balance.stdout).toBe('USD   12345678901234567890.5\nnote  a [31mb\n');
    const currencies = await account.runWith(env, 'gateway', 'currencies');
    expect(currencies.stdout).toBe('ID  X        MORE\n1   {"y":2}\n2\n');
    expect(await account.runWith(env, 'gateway', 'status', 'abc')).toMatchObject({ code: 1 });
  });

  it('exits 2 for invalid input and settings, naming what was typed', async () => {
    const wallet = await account.run('gateway', 'wallet', '--payment-id', 'x', '--order-id', 'a b');
    expect(wallet.code).toBe(2);
    expect(wallet.stderr).toMatch(/--payment-id: must be a whole number.*got "x".*\n.*--order-id: must be 1 to 64/);
    expect(await account.run('gateway', 'wallet', '--payment-id', '6')).toMatchObject({ code: 2 });
    expect((await account.run('gateway', 'status', 'a b')).stderr).toMatch(/txhash: must be 1 to 256/);
    const unset = await account.runWith({ GATEWAY_SECRET_KEY: '' }, 'gateway', 'balance');
    expect(unset).toMatchObject({ code: 2, stderr: expect.stringMatching(/GATEWAY_SECRET_KEY: is required/) });
  });

  it('exits 1 when the gateway refuses or is unavailable, and never shows the key', async () => {
    const wrongKey = await account.runWith({ GATEWAY_SECRET_KEY: `${SECRET_KEY}x` }, 'gateway', 'balance');
    expect(wrongKey).toMatchObject({ code: 1, stdout: '' });
    expect(wrongKey.stderr).toMatch(/refused \/balance: wrong signature/);
    const unavailable = await account.runWith({ GATEWAY_BASE_URL: 'http://127.0.0.1:1' }, 'gateway', 'balance');
    expect(unavailable).toMatchObject({ code: 1, stdout: '' });
    expect(wrongKey.stderr + unavailable.stderr).not.toContain(SECRET_KEY);
  });
});

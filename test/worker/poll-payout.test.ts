import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { adoptSends } from '../../src/ledger/adopt-ledger.js';
import { RedisSenderLedger } from '../../src/ledger/redis-sender-ledger.js';
import type { ValidPayout } from '../../src/ledger/payout.js';
import { silentLogger } from '../../src/base/logger.js';
import { pollPayout, type PollReport } from '../../src/worker/poll-payout.js';
import { ReceiptSigner } from '../../src/control/intents/receipt.js';
import { testKey, TEST_AUDIENCE } from '../control/support/keys.js';
import { clientOf, recordingLogger } from '../gateway/support/test-client.js';
import { httpResponse, startRawGateway, type RawGateway } from '../gateway/support/raw-gateway.js';
import { begin, NO_BREAKER, takeLease } from '../ledger/contract/ledger-rig.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { openTestAccount, type TestAccount } from '../ledger/support/test-account.js';

let account: TestAccount;
let server: RawGateway;
let status: object;
/** In place of {@link status}, as it is written. */
let text: string | undefined;

beforeEach(async () => {
  account = openTestAccount();
  text = undefined;
  server = await startRawGateway('http', {
    onRequest: ({ stream }) => void stream.write(httpResponse(200, text ?? JSON.stringify({ result: 1, ...status }))),
  });
});

afterEach(async () => {
  await server.stop();
  await account.close();
});

/** A payout that the gateway accepted under this txhash. */
async function bring(
  payoutId: string,
  { txhash = 'h-1', ...given }: Partial<ValidPayout> & { txhash?: string } = {},
): Promise<void> {
  await account.ledger.enqueue([aPayout(payoutId, { addressTo: 'wallet-1:7', ...given })]);
  const sender = new RedisSenderLedger(account.connection, 'reply');
  const attempt = await begin(sender, await takeLease(sender, 'one'), payoutId);
  await sender.finishSend(attempt, { kind: 'accepted', txhash }, NO_BREAKER, 0);
}

/** Polls the payout while the gateway returns this for its transaction. */
async function poll(said: object, logger = silentLogger, payoutId = 'p'): Promise<PollReport> {
  const { clock, platformId } = account;
  const key = { name: 'worker-1', privateKey: testKey(1) };
  const receipts = new ReceiptSigner({ key, platformId, audience: TEST_AUDIENCE, keyring: undefined, clock });
  status = said;
  const gateway = clientOf(server);
  try {
    return await pollPayout(payoutId, account.ledger, gateway, logger, receipts);
  } finally {
    gateway.close();
  }
}

/** The payment of {@link bring}, in the gateway's notation. */
const ITS_OWN = { payment_id: '7', amount: '12.500', address_to: 'wallet-1:7' };

it('completes an end whose script Redis ended before index and event followed, once', async () => {
  const { redis, connection, ledger } = account;
  await bring('p');
  const place = await redis.zscore(connection.keys.state('in_progress'), 'p');
  await poll({ approve: 1, ...ITS_OWN });
  const told = async (): Promise<number> =>
    (await redis.xrange(connection.keys.events, '-', '+')).filter(([, fields]) => fields.includes('completed')).length;
  const [last] = (await redis.xrevrange(connection.keys.events, '+', '-', 'COUNT', 1))[0] ?? [];
  await redis.xdel(connection.keys.events, last ?? '');
  await redis.hset(connection.keys.payout('p'), 'pending', 'in_progress');
  await redis.zadd(connection.keys.state('in_progress'), place ?? 1, 'p');
  expect(await told()).toBe(0);
  for (let time = 0; time < 2; time += 1) {
    expect(await poll({})).toEqual({ kind: 'skipped', state: 'completed' });
    expect(await told()).toBe(1);
    expect(await redis.zcard(connection.keys.state('in_progress'))).toBe(0);
  }
  expect((await ledger.get('p'))?.history).toHaveLength(4);
});

describe('a status of the payout’s own payment', () => {
  it.each([
    ['everything', ITS_OWN, true],
    ['all but the recipient', { ...ITS_OWN, address_to: undefined }, false],
    ['nothing but approve', {}, false],
    ['empty fields', { payment_id: null, amount: '', address_to: null }, false],
  ])('is believed, with %s; a worker signs what says whom it paid', async (_name, said, hasReceipt) => {
    await bring('p');
    expect(await poll({ approve: 0, ...said })).toEqual({ kind: 'polled', state: 'in_progress' });
    expect(await poll({ approve: '1', fee: '0.10', ...said })).toMatchObject({ kind: 'polled', state: 'completed' });
    const payout = await account.ledger.get('p');
    expect(payout).toMatchObject({ state: 'completed', fee: '0.1', txhash: 'h-1' });
    expect(payout?.receipt?.key).toBe(hasReceipt ? 'worker-1' : undefined);
  });

  it('may end in an error', async () => {
    await bring('p');
    expect(await poll({ approve: 2, ...ITS_OWN })).toEqual({ kind: 'polled', state: 'failed' });
    expect((await account.ledger.get('p'))?.state).toBe('failed');
    expect(await poll({ approve: 1, ...ITS_OWN })).toEqual({ kind: 'skipped', state: 'failed' });
  });

  it.each([
    ['BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4', 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4'],
    ['bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a', 'qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a'],
    ['EQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPrHF', 'UQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPuwA'],
    ['rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh:00123', 'rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh:123'],
  ])('may spell the address %s as %s', async (addressTo, said) => {
    await bring('p', { addressTo });
    expect(await poll({ approve: 1, ...ITS_OWN, address_to: said })).toEqual({ kind: 'polled', state: 'completed' });
    expect((await account.ledger.get('p'))?.receipt?.key).toBe('worker-1');
  });

  it.each([
    ['12.3', '12.300000000000001'],
    ['0.1', '0.10000000000000001'],
    ['29.95', '29.949999999999999'],
    ['277.2', '277.19999999999999'],
  ])(
    'may write the amount %s as the JSON number %s; the same text in a string is another amount',
    async (amount, said) => {
      await bring('p', { amount });
      // JSON.stringify would shorten it.
      text = `{"result":1,"approve":1,"payment_id":7,"address_to":"wallet-1:7","amount":${said}}`;
      expect(await poll({})).toEqual({ kind: 'polled', state: 'completed' });
      await bring('q', { amount, txhash: 'h-2' });
      text = text.replace(said, `"${said}"`);
      const reason = `the gateway's status is about another payment: amount is ${said} at the gateway, ${amount} in the payout`;
      expect(await poll({}, silentLogger, 'q')).toEqual({ kind: 'polled', state: 'unknown', reason });
    },
  );

  it('may write a hexadecimal address in another case', async () => {
    await bring('p', { addressTo: '0xABCDEF' });
    expect(await poll({ approve: 1, address_to: '0xabcdef' })).toMatchObject({ state: 'completed' });
  });
});

describe.each([0, 1, 2])('a status of another payment, with approve %i,', (approve) => {
  it.each([
    ['currency', { ...ITS_OWN, payment_id: 8 }, 'paymentId is 8 at the gateway, 7 in the payout'],
    ['amount', { ...ITS_OWN, amount: 12.05 }, 'amount is 12.05 at the gateway, 12.5 in the payout'],
    [
      'address',
      { ...ITS_OWN, address_to: 'Wallet-1:7' },
      'addressTo is Wallet-1:7 at the gateway, wallet-1:7 in the payout',
    ],
    [
      'destination tag',
      { address_to: 'wallet-1:8' },
      'addressTo is wallet-1:8 at the gateway, wallet-1:7 in the payout',
    ],
    ['address alone', { address_to: 'wallet-1' }, 'addressTo is wallet-1 at the gateway, wallet-1:7 in the payout'],
  ])('by its %s, makes the payout unknown and says why', async (_name, said, difference) => {
    await bring('p');
    const logger = recordingLogger();
    const reason = `the gateway's status is about another payment: ${difference}`;
    expect(await poll({ approve, fee: '1', ...said }, logger)).toEqual({ kind: 'polled', state: 'unknown', reason });
    const payout = await account.ledger.get('p');
    expect(payout).toMatchObject({ state: 'unknown', message: reason, txhash: 'h-1' });
    expect(payout).not.toHaveProperty('fee');
    // Free for the payout that it belongs to.
    expect(await account.ledger.findByTxhash('h-1')).toBeUndefined();
    expect(payout?.history.at(-1)).toMatchObject({ from: 'in_progress', to: 'unknown', reason });
    expect(logger.lines.map(({ message }) => message)).toEqual([expect.stringMatching(/^payout is unknown: /)]);
    expect(JSON.stringify(logger.lines)).not.toContain('allet-1');
  });
});

it('a status of another payment is believed where an operator gave the txhash in spite of it', async () => {
  await bring('p');
  const other = { ...ITS_OWN, amount: '9' };
  await poll({ approve: 1, ...other });
  const said = { by: 'ann', reason: 'the gateway shows the amount without its fee' };
  await account.ledger.change({ payoutId: 'p', from: 'unknown', to: 'in_progress', txhash: 'h-1', ...said });
  expect(await poll({ approve: 1, ...other })).toEqual({
    kind: 'polled',
    state: 'completed',
    doubt: 'amount is 9 at the gateway, 12.5 in the payout',
  });
  // The operator's word stands in Redis only: the worker cannot sign it.
  expect(await account.ledger.get('p')).not.toHaveProperty('receipt');
});

it('a status of another payment is not believed where a journal gave the txhash, although an operator adopted the send', async () => {
  const { paymentId, amount, addressTo } = aPayout('p');
  const request = { paymentId, amount, addressTo };
  const send = {
    payoutId: 'p',
    attempt: 1,
    token: 'sent',
    request,
    outcome: { kind: 'accepted', txhash: 'h-1' },
  } as const;
  await adoptSends(account.connection, [send], { by: 'ann', reason: 'restored a copy', doubtMs: 0 });
  expect((await account.ledger.get('p'))?.state).toBe('in_progress');
  expect(await poll({ approve: 1, amount: '9' })).toMatchObject({
    state: 'unknown',
    reason: expect.stringMatching(/about another payment: amount is 9 at the gateway/),
  });
});

it('a txhash that names no transaction, as an earlier version accepted it, makes the payout unknown', async () => {
  await bring('p', { txhash: 'null' });
  expect(await poll({ approve: 1 })).toMatchObject({
    state: 'unknown',
    reason: 'its txhash names no transaction: null',
  });
  expect((await account.ledger.get('p'))?.state).toBe('unknown');
  expect(server.receivedBytes).toBe(0);
});

it('of two polls at the same time only one records and logs the result', async () => {
  await bring('p');
  const logger = recordingLogger();
  const said = { approve: 1, ...ITS_OWN };
  expect(await Promise.all([poll(said, logger), poll(said, logger)])).toEqual([
    { kind: 'polled', state: 'completed' },
    { kind: 'polled', state: 'completed' },
  ]);
  expect(logger.lines).toHaveLength(1);
  expect((await account.ledger.get('p'))?.history).toHaveLength(4);
});

describe('a poll that is answered late, when an earlier one made the payout unknown', () => {
  /** Polls, and lets this happen while the answer is on its way. */
  async function pollLate(said: object, meanwhile: () => Promise<void>): Promise<void> {
    status = said;
    const gateway = clientOf(server);
    const late = {
      getStatus: async (txhash: string) => {
        await meanwhile();
        return gateway.getStatus(txhash);
      },
    };
    await pollPayout('p', account.ledger, late, silentLogger);
    gateway.close();
  }

  const ANSWERS = [
    ['that it failed', { approve: 2 }],
    ['that it was paid', { approve: 1 }],
    ['that it is another payment', { approve: 1, amount: '9' }],
  ] as const;
  const ANN = { by: 'ann', reason: 'the first transaction is another payment' };

  beforeEach(async () => bring('p'));

  it.each(ANSWERS.flatMap(([name, said]) => ['h-2', 'h-1'].map((txhash) => [name, txhash, said] as const)))(
    'changes nothing of the attempt after it: %s, and that one has %s',
    async (_, txhash, said) => {
      const sendAgain = async (): Promise<void> => {
        await account.ledger.change({ payoutId: 'p', from: 'in_progress', to: 'unknown', txhash: 'h-1' });
        await account.ledger.change({ payoutId: 'p', from: 'unknown', to: 'queued', ...ANN });
        const sender = new RedisSenderLedger(account.connection, 'reply');
        const attempt = await begin(sender, await takeLease(sender, 'one'), 'p');
        await sender.finishSend(attempt, { kind: 'accepted', txhash }, NO_BREAKER, 0);
      };
      await pollLate(said, sendAgain);
      expect(await account.ledger.get('p')).toMatchObject({ state: 'in_progress', attempt: 2, txhash });
    },
  );

  it.each(ANSWERS)('changes nothing of the txhash that an operator gave since: %s', async (_, said) => {
    await pollLate(said, async () => {
      await account.ledger.change({ payoutId: 'p', from: 'in_progress', to: 'unknown', txhash: 'h-1' });
      await account.ledger.change({ payoutId: 'p', from: 'unknown', to: 'in_progress', txhash: 'h-2', ...ANN });
    });
    expect(await account.ledger.get('p')).toMatchObject({ state: 'in_progress', attempt: 1, txhash: 'h-2' });
    expect(await account.ledger.findByTxhash('h-2')).toBe('p');
    expect(await account.ledger.findByTxhash('h-1')).toBeUndefined();
  });
});

import { beforeEach, expect, it } from '@jest/globals';
import { adoptSends } from '../../src/ledger/adopt-ledger.js';
import { SignerError } from '../../src/base/errors.js';
import { silentLogger } from '../../src/base/logger.js';
import { pollPayout } from '../../src/worker/poll-payout.js';
import { ReceiptSigner } from '../../src/control/intents/receipt.js';
import { testSigner, TEST_AUDIENCE } from '../control/support/keys.js';
import { clientOf, recordingLogger } from '../gateway/support/test-client.js';
import { httpResponse, startRawGateway, type RawGateway } from '../gateway/support/raw-gateway.js';
import { begin, NO_BREAKER, takeLease } from '../ledger/contract/ledger-rig.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { openTestAccount, type TestAccount } from '../ledger/support/test-account.js';
import { afterTest, closeAfterTest } from './support/close-after-test.js';

let account: TestAccount;
let server: RawGateway;
let status: object;

beforeEach(async () => {
  account = closeAfterTest(openTestAccount());
  server = await startRawGateway('http', {
    onRequest: ({ stream }) => void stream.write(httpResponse(200, JSON.stringify({ result: 1, ...status }))),
  });
  afterTest(async () => server.stop());
});

async function bring(gatewayId = 'h-1') {
  await account.ledger.enqueue([aPayout('p', { addressTo: 'wallet-1:7' })]);
  await accept(gatewayId);
}

async function accept(gatewayId: string) {
  const { sender } = account;
  const attempt = await begin(sender, await takeLease(sender, 'one'), 'p');
  await sender.finishSend(attempt, { kind: 'accepted', gatewayId }, NO_BREAKER, 0);
}

async function poll(
  said: object,
  logger = silentLogger,
  meanwhile = async () => Promise.resolve(),
  signer = testSigner('worker-1', 1),
) {
  const { clock, platformId } = account;
  const receipts = new ReceiptSigner({ signer, platformId, audience: TEST_AUDIENCE, keyring: undefined, clock });
  status = said;
  const gateway = clientOf(server);
  const getStatus = async (gatewayId: string) => meanwhile().then(async () => gateway.getStatus(gatewayId));
  const late = { ...gateway, getStatus };
  return pollPayout('p', account.ledger, late, logger, receipts).finally(() => {
    gateway.close();
  });
}

const ITS_OWN = { payment_id: '7', amount: '12.500', address_to: 'wallet-1:7' };

it.each([
  ['refuses', async () => Promise.reject(new SignerError('no session')), 'no session'],
  ['never answers', async () => new Promise<string>(() => undefined), 'The signer did not answer within 10 s'],
])(
  'a final state whose signer %s is recorded without a receipt, and told as an error',
  async (_, sign, message) => {
    const signer = { name: 'worker-1', sign };
    await bring();
    const logger = recordingLogger();
    const report = await poll({ approve: 1, ...ITS_OWN }, logger, undefined, signer);
    expect(report).toMatchObject({ kind: 'polled', state: 'completed', receiptFailure: message });
    expect(await account.ledger.get('p')).toMatchObject({ state: 'completed' });
    expect((await account.ledger.get('p'))?.receipt).toBeUndefined();
    expect(logger.lines.map(({ message }) => message)).toContain('payout ended without a receipt');
    // A second poll finds it ended.
    expect(await poll({ approve: 1, ...ITS_OWN }, logger, undefined, signer)).toMatchObject({ kind: 'skipped' });
  },
  30_000,
);

const OTHER = "the gateway's status is about another payment";
const ANN = { by: 'ann', reason: 'the first transaction is another payment' };

it.each([
  ['everything', ITS_OWN, true],
  ['all but the recipient', { ...ITS_OWN, address_to: undefined }, false],
  ['empty fields', { payment_id: null, amount: '', address_to: null }, false],
])('its own status is believed, with %s; a worker signs what says whom it paid', async (_name, said, hasReceipt) => {
  await bring();
  expect(await poll({ approve: 0, ...said })).toEqual({ kind: 'polled', state: 'in_progress' });
  expect(await poll({ approve: '1', fee: '0.10', ...said })).toMatchObject({ kind: 'polled', state: 'completed' });
  const payout = await account.ledger.get('p');
  expect(payout).toMatchObject({ state: 'completed', fee: '0.1', gatewayId: 'h-1' });
  expect(payout?.receipt?.key).toBe(hasReceipt ? 'worker-1' : undefined);
  expect(await poll({ approve: 2, ...said })).toEqual({ kind: 'skipped', state: 'completed' });
});

it('a worker signs the transaction that the status names, not the one that Redis had', async () => {
  await bring();
  await account.redis.hset(account.connection.keys.payout('p'), { txhash: '0xforged' });
  const texts: string[] = [];
  const signer = testSigner('worker-1', 1);
  const sign = async (text: string) => {
    texts.push(text);
    return signer.sign(text);
  };
  await poll({ approve: 1, ...ITS_OWN }, silentLogger, undefined, { ...signer, sign });
  expect(await account.ledger.get('p')).toMatchObject({ state: 'completed', gatewayId: 'h-1', txhash: 'h-1' });
  expect(texts).toEqual([expect.stringMatching(/gatewayId.*h-1\n.*txhash.*h-1\n/)]);
});

it('its own status may say that it failed', async () => {
  await bring();
  expect(await poll({ approve: 2, ...ITS_OWN })).toEqual({ kind: 'polled', state: 'failed', txhash: 'h-1' });
});

it.each([
  [0, 'currency', { ...ITS_OWN, payment_id: 8 }, 'paymentId is 8 at the gateway, 7 in the payout'],
  [2, 'lack of a tag', { address_to: 'wallet-1' }, 'addressTo is wallet-1 at the gateway, wallet-1:7 in the payout'],
])('a status with approve %i, of another payment by its %s, makes the payout unknown', async (...row) => {
  const [approve, , said, difference] = row;
  await bring();
  const logger = recordingLogger();
  const reason = `${OTHER}: ${difference}`;
  expect(await poll({ approve, fee: '1', ...said }, logger)).toEqual({ kind: 'polled', state: 'unknown', reason });
  const payout = await account.ledger.get('p');
  expect(payout).toMatchObject({ state: 'unknown', message: reason, gatewayId: 'h-1' });
  expect(payout).not.toHaveProperty('fee');
  // Free for the payout that it belongs to.
  expect(await account.ledger.findByGatewayId('h-1')).toBeUndefined();
  expect(payout?.history.at(-1)).toMatchObject({ from: 'in_progress', to: 'unknown', reason });
  expect(logger.lines.map(({ message }) => message)).toEqual([expect.stringMatching(/^payout is unknown: /)]);
  expect(JSON.stringify(logger.lines)).not.toMatch(/allet-1/);
});

it('another amount is believed where the payout has a symbol, and another wallet is not', async () => {
  await account.ledger.enqueue([aPayout('p', { addressTo: 'wallet-1:7', symbol: 'USD' })]);
  await accept('h-1');
  const inCoin = { ...ITS_OWN, amount: '0.00019' };
  expect(await poll({ approve: 0, ...inCoin })).toEqual({ kind: 'polled', state: 'in_progress' });
  expect(await poll({ approve: 1, ...inCoin })).toEqual({ kind: 'polled', state: 'completed', txhash: 'h-1' });
  expect((await account.ledger.get('p'))?.receipt?.key).toBe('worker-1');
});

it('a status of another wallet is not believed, also where the payout has a symbol', async () => {
  await account.ledger.enqueue([aPayout('p', { addressTo: 'wallet-1:7', symbol: 'USD' })]);
  await accept('h-1');
  const said = { ...ITS_OWN, amount: '0.00019', address_to: 'wallet-2:7' };
  expect(await poll({ approve: 1, ...said })).toMatchObject({ state: 'unknown' });
});

it('a status of another payment is believed where an operator gave the gatewayId', async () => {
  await bring();
  const other = { ...ITS_OWN, amount: '9' };
  await poll({ approve: 1, ...other });
  await account.ledger.change({ payoutId: 'p', from: 'unknown', to: 'in_progress', gatewayId: 'h-1', ...ANN });
  expect(await poll({ approve: 1, ...other })).toEqual({
    kind: 'polled',
    state: 'completed',
    txhash: 'h-1',
    differs: 'amount is 9 at the gateway, 12.5 in the payout',
  });
  // The operator's word stands in Redis only: the worker cannot sign it.
  expect(await account.ledger.get('p')).not.toHaveProperty('receipt');
});

it('the gatewayId that an operator gave vouches for no later one', async () => {
  await bring();
  await account.ledger.change({ payoutId: 'p', from: 'in_progress', to: 'unknown' });
  await account.ledger.change({ payoutId: 'p', from: 'unknown', to: 'in_progress', gatewayId: 'h-1', ...ANN });
  await account.ledger.change({ payoutId: 'p', from: 'in_progress', to: 'unknown' });
  await account.ledger.change({ payoutId: 'p', from: 'unknown', to: 'queued', ...ANN });
  await accept('h-2');
  expect(await account.ledger.get('p')).toMatchObject({ gatewayId: 'h-2', vouchedGatewayId: 'h-1' });
  const reason = `${OTHER}: amount is 9 at the gateway, 12.5 in the payout`;
  expect(await poll({ approve: 1, ...ITS_OWN, amount: '9' })).toMatchObject({ state: 'unknown', reason });
});

it('a status of another payment is not believed where a journal gave the gatewayId', async () => {
  const { paymentId, amount, addressTo } = aPayout('p');
  const outcome = { kind: 'accepted', gatewayId: 'h-1' } as const;
  const send = {
    payoutId: 'p',
    attempt: 1,
    token: 'sent',
    request: { paymentId, amount, addressTo },
    inFlightMs: 0,
    outcome,
  };
  await adoptSends(account.connection, [send], ANN);
  expect((await account.ledger.get('p'))?.state).toBe('in_progress');
  const reason = `${OTHER}: amount is 9 at the gateway, 12.5 in the payout`;
  expect(await poll({ approve: 1, amount: '9' })).toMatchObject({ state: 'unknown', reason });
});

it('a gatewayId that names no payment makes the payout unknown', async () => {
  await bring('null');
  const reason = 'its gatewayId names no payment: null';
  expect(await poll({ approve: 1 })).toMatchObject({ state: 'unknown', reason });
  expect((await account.ledger.get('p'))?.state).toBe('unknown');
  expect(server.receivedBytes).toBe(0);
});

it.each([
  ['that it failed', { approve: 2 }],
  ['that it was paid', { approve: 1 }],
  ['that it is another payment', { approve: 1, amount: '9' }],
])('a late answer changes no later attempt, nor the gatewayId of an operator: %s', async (_, said) => {
  await bring();
  await poll(said, silentLogger, async () => {
    await account.ledger.change({ payoutId: 'p', from: 'in_progress', to: 'unknown', gatewayId: 'h-1' });
    await account.ledger.change({ payoutId: 'p', from: 'unknown', to: 'in_progress', gatewayId: 'h-2', ...ANN });
  });
  expect(await account.ledger.get('p')).toMatchObject({ state: 'in_progress', attempt: 1, gatewayId: 'h-2' });
  // The next attempt gets the same gatewayId.
  await poll(said, silentLogger, async () => {
    await account.ledger.change({ payoutId: 'p', from: 'in_progress', to: 'unknown', gatewayId: 'h-2' });
    await account.ledger.change({ payoutId: 'p', from: 'unknown', to: 'queued', ...ANN });
    await accept('h-2');
  });
  expect(await account.ledger.get('p')).toMatchObject({ state: 'in_progress', attempt: 2, gatewayId: 'h-2' });
});

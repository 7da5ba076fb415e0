import { expect, it } from '@jest/globals';
import type { SentOutcome } from '../../src/gateway/gateway.js';
import { account, ANN, begun, beginOne, change, finish, keys, read, redis, useAccount } from './support/use-account.js';

const HASH = `0x${'9f'.repeat(32)}`;

useAccount();

const accept = async (payoutId: string, gatewayId: string, txhash?: string) => {
  const outcome: SentOutcome = { kind: 'accepted', gatewayId, ...(txhash !== undefined && { txhash }) };
  return finish(await begun(payoutId), outcome);
};

it.each([
  ['one name for both', HASH, HASH, { gatewayId: HASH, txhash: HASH }],
  ['a name of its own', '4711', HASH, { gatewayId: '4711', txhash: HASH }],
  ['no transaction yet', '4711', undefined, { gatewayId: '4711' }],
])('an acceptance with %s is read as it was recorded', async (_, gatewayId, txhash, names) => {
  await accept('p', gatewayId, txhash);
  const { gatewayId: id, txhash: hash } = (await read()) ?? {};
  expect({ gatewayId: id, txhash: hash }).toEqual({ txhash: undefined, ...names });
  expect(await redis.object('ENCODING', keys.payout('p'))).toBe('listpack');
});

it('payouts may share a transaction, and no payment', async () => {
  await accept('p', '1', HASH);
  await accept('q', '2', HASH);
  expect([(await read('p'))?.state, (await read('q'))?.state]).toEqual(['in_progress', 'in_progress']);
  await accept('r', '2', '0xother');
  expect([(await read('q'))?.state, (await read('r'))?.state]).toEqual(['unknown', 'unknown']);
  expect(await account.ledger.findByGatewayId('1')).toBe('p');
  expect(await account.ledger.findByGatewayId(HASH)).toBeUndefined();
});

it('the transaction of an earlier attempt does not stay with the payment of a later one', async () => {
  await accept('p', '1', HASH);
  await change('p', 'in_progress', 'unknown');
  await change('p', 'unknown', 'queued', ANN);
  await finish(await beginOne('p'), { kind: 'accepted', gatewayId: '2' });
  expect(await read()).toMatchObject({ state: 'in_progress', gatewayId: '2' });
  expect(await read()).not.toHaveProperty('txhash');
});

it('the transaction that the status names counts at the end, also if it names none', async () => {
  for (const [payoutId, txhash] of [
    ['p', '0xlater'],
    ['q', undefined],
  ] as const) {
    await accept(payoutId, `id-${payoutId}`, HASH);
    await change(payoutId, 'in_progress', 'completed', { gatewayId: `id-${payoutId}`, txhash });
    expect((await read(payoutId))?.txhash).toBe(txhash);
  }
});

it('an operator names the payment, and the gateway its transaction', async () => {
  await finish(await begun(), { kind: 'unknown', reason: 'silence' });
  await change('p', 'unknown', 'in_progress', { gatewayId: '7', txhash: HASH, ...ANN });
  expect(await read()).toMatchObject({ gatewayId: '7', vouchedGatewayId: '7', txhash: HASH });
});

it('a payment proved too late is named as the gateway named it', async () => {
  const first = await begun();
  await finish(first, { kind: 'unknown', reason: 'silence' });
  await change('p', 'unknown', 'written_off', ANN);
  await finish(first, { kind: 'accepted', gatewayId: '7', txhash: HASH });
  expect(await read()).toMatchObject({ state: 'written_off', lateGatewayId: '7', lateTxhash: HASH });
  expect(await read()).not.toHaveProperty('gatewayId');
});

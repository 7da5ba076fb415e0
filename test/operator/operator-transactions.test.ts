import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import {
  ConflictError,
  InvalidConfigError,
  InvalidInputError,
  TransactionMismatchError,
} from '../../src/base/errors.js';
import { GatewayUnavailableError } from '../../src/gateway/gateway.js';
import { createGatewayClient, type GatewayClient } from '../../src/gateway/gateway-client.js';
import { silentLogger } from '../../src/base/logger.js';
import { PayoutOperator } from '../../src/control/payout-operator.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { testRedisUrl } from '../support/account.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { ANN, openOperatorRig, type OperatorRig } from './support/operator-rig.js';

const SECRET_KEY = 'k-operator-0123456789';

let rig: OperatorRig;
let sandbox: Sandbox;
let gateway: GatewayClient;
let operator: PayoutOperator;

beforeEach(async () => {
  rig = await openOperatorRig();
  const { platformId } = rig.account.connection;
  sandbox = await startSandbox({ accounts: [{ platformId, secretKey: SECRET_KEY, balance: '1000' }] });
  gateway = openGateway(sandbox.url);
  operator = new PayoutOperator({ platformId, redisUrl: testRedisUrl(), gateway });
});

afterEach(async () => {
  await operator.close();
  gateway.close();
  await sandbox.close();
  await rig.close();
});

function openGateway(baseUrl: string): GatewayClient {
  const { platformId } = rig.account.connection;
  return createGatewayClient({ baseUrl, platformId, secretKey: SECRET_KEY, clock: systemClock, logger: silentLogger });
}

/** Pays at the gateway what a worker would have paid. @returns the txhash */
async function pay(payoutId: string, change: { readonly amount?: string } = {}): Promise<string> {
  const { paymentId, amount, addressTo } = aPayout(payoutId);
  const outcome = await gateway.withdraw({ paymentId, amount, addressTo, ...change });
  if (outcome.kind !== 'accepted') throw new Error(`The sandbox did not pay: ${JSON.stringify(outcome)}`);
  return outcome.txhash;
}

describe('resolve as sent', () => {
  it('follows a transaction that the gateway confirms', async () => {
    await rig.bring('p', 'unknown');
    const txhash = await pay('p');
    expect(await operator.resolve('p', { kind: 'sent', txhash }, ANN)).toMatchObject({ state: 'in_progress', txhash });
    expect((await rig.account.ledger.get('p'))?.history.at(-1)).toMatchObject(ANN);
    expect(await rig.statusJobs()).toEqual(['p~0']);
    expect(await rig.outbox()).toEqual([]);
  });

  it('refuses a transaction that is another payment, unless it is unchecked', async () => {
    await rig.bring('p', 'unknown');
    const txhash = await pay('p', { amount: '3' });
    const refused = operator.resolve('p', { kind: 'sent', txhash }, ANN);
    await expect(refused).rejects.toThrow(TransactionMismatchError);
    await expect(refused).rejects.toThrow(/amount is 3 at the gateway, .* Nothing was changed$/);
    expect((await rig.account.ledger.get('p'))?.state).toBe('unknown');
    expect(await operator.resolve('p', { kind: 'sent', txhash, unchecked: true }, ANN)).toMatchObject({ txhash });
    const reason = `${ANN.reason} (txhash not checked with the gateway)`;
    expect((await rig.account.ledger.get('p'))?.history.at(-1)).toMatchObject({ by: 'ann', reason });
  });

  it('refuses a transaction that the gateway does not know', async () => {
    await rig.bring('p', 'unknown');
    const refused = operator.resolve('p', { kind: 'sent', txhash: 'abc' }, ANN);
    await expect(refused).rejects.toThrow(TransactionMismatchError);
    await expect(refused).rejects.toThrow(/^The gateway has no status for transaction abc/);
  });

  it('refuses the transaction of another payout', async () => {
    for (const payoutId of ['p', 'q']) await rig.bring(payoutId, 'unknown');
    const sent = { kind: 'sent', txhash: await pay('p') } as const;
    await operator.resolve('p', sent, ANN);
    await expect(operator.resolve('q', sent, ANN)).rejects.toThrow(/already belongs to payout p$/);
  });

  it('refuses a payout that is not unknown, before the gateway is asked', async () => {
    await rig.bring('p', 'rejected');
    await expect(operator.resolve('p', { kind: 'sent', txhash: 'abc' }, ANN)).rejects.toThrow(ConflictError);
    expect(sandbox.stats().calls.transactionstatus).toBe(0);
  });

  it.each(['null', '0', 'a b'])('refuses the txhash %s, which names no transaction, also unchecked', async (txhash) => {
    await rig.bring('p', 'unknown');
    for (const unchecked of [true, false]) {
      const refused = operator.resolve('p', { kind: 'sent', txhash, unchecked }, ANN);
      await expect(refused).rejects.toThrow(InvalidInputError);
      await expect(refused).rejects.toMatchObject({ problems: [{ field: 'txhash' }] });
    }
  });

  it('checks no txhash without a gateway', async () => {
    await rig.bring('p', 'unknown');
    const refused = rig.operator.resolve('p', { kind: 'sent', txhash: 'abc' }, ANN);
    await expect(refused).rejects.toThrow(InvalidConfigError);
    expect((await rig.account.ledger.get('p'))?.state).toBe('unknown');
  });

  it('changes nothing where the gateway cannot be asked', async () => {
    await rig.bring('p', 'unknown');
    const unreachable = openGateway('http://127.0.0.1:1');
    const { platformId } = rig.account.connection;
    const cutOff = new PayoutOperator({ platformId, redisUrl: testRedisUrl(), gateway: unreachable });
    const refused = cutOff.resolve('p', { kind: 'sent', txhash: 'abc' }, ANN);
    await expect(refused).rejects.toThrow(GatewayUnavailableError);
    expect((await rig.account.ledger.get('p'))?.state).toBe('unknown');
    await cutOff.close();
    unreachable.close();
  });
});

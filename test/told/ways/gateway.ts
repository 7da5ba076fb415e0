import { until } from '../../support/until.js';
import type { Rig } from '../support/rig.js';
import { told, type Way } from '../way.js';

/** Someone who has the account's secret key pays himself, once the worker compares the balance. */
async function steal(rig: Rig): Promise<void> {
  const { client, prefix } = rig;
  await until('the balance is judged', async () => {
    const stored = await client.hget(`${prefix}:gateway`, 'reconciliation');
    return stored?.includes('"unexplained":"0"') === true;
  });
  const thief = rig.openGateway();
  await thief.withdraw({ paymentId: 1, amount: '100000', addressTo: 'wallet-thiefxxxxxxxxxxxxxxxxxxxxxx' });
  thief.close();
}

/** The gateway does not do its part. */
export const GATEWAY_WAYS: readonly Way[] = [
  {
    name: 'The gateway is down',
    happens: async ({ world }) => {
      await world.sandbox.close();
      await world.enqueue(1);
    },
    repeats: true,
    told: told(
      'gatewayDown',
      ['PayoutsGatewayDown', 'PayoutsStandStill'],
      [200, 'ended before anything was written: No connection to the gateway'],
      [1, 'gateway connection', 'ECONNREFUSED'],
      'gateway',
    ),
  },
  {
    name: 'The gateway responds to status polls with 500',
    sandbox: { faults: [{ kind: 'json-500', endpoint: 'transactionstatus' }] },
    happens: async ({ world }) => {
      await world.enqueue(1);
    },
    told: told(
      'pollsFail',
      ['PayoutsPollErrors'],
      [200, 'status polls failed'],
      [0, 'worker', 'status polls failed'],
      'gateway',
    ),
  },
  {
    name: 'The gateway answers slowly',
    sandbox: { faults: [{ kind: 'latency-after', endpoint: 'transactionstatus', delayMs: 6_000 }] },
    happens: async ({ world }) => {
      await world.enqueue(3);
    },
    repeats: true,
    told: told(
      'idle',
      ['PayoutsGatewaySlow'],
      [200, 'The gateway is slow'],
      [0, 'worker', 'The gateway is slow'],
      'gateway',
    ),
  },
  {
    name: 'The gateway never settles a payment',
    environment: { STUCK_AFTER_MS: '1000' },
    sandbox: { settleAfterMs: 3_600_000 },
    happens: async ({ world }) => {
      await world.enqueue(1);
    },
    told: told(
      'idle',
      ['PayoutsStuckInProgress'],
      [200, '1 payout in progress for longer than STUCK_AFTER_MS'],
      [0, 'worker', '1 payout in progress for longer than STUCK_AFTER_MS'],
      'stuck',
    ),
  },
  {
    name: 'The gateway does not respond to a withdrawal',
    sandbox: { faults: [{ kind: 'drop-after', times: 1 }] },
    happens: async ({ world }) => {
      await world.enqueue(1);
    },
    told: told(
      'noResponse',
      ['PayoutsUnknown'],
      [200, '1 payout may or may not have been sent'],
      [0, 'unknown payouts', '1 may or may not have been sent'],
      'unknown',
    ),
  },
  {
    name: 'The balance is below what is queued',
    environment: { BALANCE_EVERY_MS: '1000' },
    happens: async ({ world }) => {
      await world.producer.enqueue({
        ...{
          payoutId: 'too-much',
          paymentId: 1,
          amount: '100000000',
          addressTo: 'wallet-toomuchxxxxxxxxxxxxxxxxxxxxxxxxxx',
        },
        notBefore: '2099-01-01T00:00:00Z',
      });
    },
    told: told(
      'idle',
      ['PayoutsBalanceLow'],
      [200, 'The balance is below what is queued'],
      [0, 'balance', 'queued'],
      'balance-low',
    ),
  },
  {
    name: "Someone else uses the gateway's secret key",
    environment: { BALANCE_EVERY_MS: '1000' },
    happens: steal,
    told: told(
      'idle',
      ['PayoutsBalanceDropped'],
      [200, 'more than the payouts explain'],
      [0, 'reconciliation', 'more than the payouts explain'],
      'balance-fell',
    ),
  },
  {
    name: 'The gateway blocks the account',
    sandbox: { faults: [{ kind: 'block' }] },
    happens: async ({ world }) => {
      await world.enqueue(1);
    },
    told: told(
      'paused',
      ['PayoutsPaused', 'PayoutsRejected'],
      [200, 'looks like a block'],
      [1, 'pause', 'looks like a block'],
      'paused',
    ),
  },
];

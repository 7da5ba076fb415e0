import { until } from '../../support/until.js';
import type { Rig } from '../support/rig.js';
import type { Way } from '../way.js';

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
    told: {
      headline: 'gatewayDown',
      alerts: ['PayoutsGatewayDown', 'PayoutsStandStill'],
      readyz: { status: 200, words: 'ended before anything was written: No connection to the gateway' },
      doctor: { exit: 1, check: 'gateway connection', words: 'ECONNREFUSED' },
      runbook: 'gateway',
    },
  },
  {
    name: 'The gateway responds to status polls with 500',
    sandbox: { faults: [{ kind: 'json-500', endpoint: 'transactionstatus' }] },
    happens: async ({ world }) => {
      await world.enqueue(1);
    },
    told: {
      headline: 'pollsFail',
      alerts: ['PayoutsPollErrors'],
      readyz: { status: 200, words: 'status polls failed' },
      doctor: { exit: 0, check: 'worker', words: 'status polls failed' },
      runbook: 'gateway',
    },
  },
  {
    name: 'The gateway answers slowly',
    sandbox: { faults: [{ kind: 'latency-after', endpoint: 'transactionstatus', delayMs: 6_000 }] },
    happens: async ({ world }) => {
      await world.enqueue(3);
    },
    repeats: true,
    told: {
      headline: 'idle',
      alerts: ['PayoutsGatewaySlow'],
      readyz: { status: 200, words: 'The gateway is slow' },
      doctor: { exit: 0, check: 'worker', words: 'The gateway is slow' },
      runbook: 'gateway',
    },
  },
  {
    name: 'The gateway never settles a payment',
    environment: { STUCK_AFTER_MS: '1000' },
    sandbox: { settleAfterMs: 3_600_000 },
    happens: async ({ world }) => {
      await world.enqueue(1);
    },
    told: {
      headline: 'idle',
      alerts: ['PayoutsStuckInProgress'],
      readyz: { status: 200, words: '1 payout in progress for longer than STUCK_AFTER_MS' },
      doctor: { exit: 0, check: 'worker', words: '1 payout in progress for longer than STUCK_AFTER_MS' },
      runbook: 'stuck',
    },
  },
  {
    name: 'The gateway does not respond to a withdrawal',
    sandbox: { faults: [{ kind: 'drop-after', times: 1 }] },
    happens: async ({ world }) => {
      await world.enqueue(1);
    },
    told: {
      headline: 'noResponse',
      alerts: ['PayoutsUnknown'],
      readyz: { status: 200, words: '1 payout may or may not have been sent' },
      doctor: { exit: 0, check: 'unknown payouts', words: '1 may or may not have been sent' },
      runbook: 'unknown',
    },
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
    told: {
      headline: 'idle',
      alerts: ['PayoutsBalanceLow'],
      readyz: { status: 200, words: 'The balance is below what is queued' },
      doctor: { exit: 0, check: 'balance', words: 'queued' },
      runbook: 'balance-low',
    },
  },
  {
    name: "Someone else uses the gateway's secret key",
    environment: { BALANCE_EVERY_MS: '1000' },
    happens: steal,
    told: {
      headline: 'idle',
      alerts: ['PayoutsBalanceDropped'],
      readyz: { status: 200, words: 'more than the payouts explain' },
      doctor: { exit: 0, check: 'reconciliation', words: 'more than the payouts explain' },
      runbook: 'balance-fell',
    },
  },
  {
    name: 'The gateway blocks the account',
    sandbox: { faults: [{ kind: 'block' }] },
    happens: async ({ world }) => {
      await world.enqueue(1);
    },
    told: {
      headline: 'paused',
      alerts: ['PayoutsPaused', 'PayoutsRejected'],
      readyz: { status: 200, words: 'looks like a block' },
      doctor: { exit: 1, check: 'pause', words: 'looks like a block' },
      runbook: 'paused',
    },
  },
];

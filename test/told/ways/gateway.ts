import { open } from 'node:fs/promises';
import { createFakeClock, type FakeClock } from '../../doubles/fake-clock.js';
import { until } from '../../support/until.js';
import type { Rig } from '../rig.js';
import { told, warned, type Way } from './way.js';
import { cents } from '../../support/account.js';

const enqueueOne = async ({ world }: Rig): Promise<unknown> => world.enqueue(1);

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
      'GatewayDown StandStill',
      [200, 'ended before anything was written: No connection to the gateway'],
      [1, 'gateway connection', 'ECONNREFUSED'],
    ),
  },
  {
    name: 'The gateway responds to status polls with 500',
    sandbox: { faults: [{ kind: 'json-500', endpoint: 'transactionstatus' }] },
    happens: enqueueOne,
    told: warned('pollsFail', 'PollErrors', 'status polls failed'),
  },
  {
    name: 'The gateway answers slowly',
    sandbox: { faults: [{ kind: 'latency-after', endpoint: 'transactionstatus', delayMs: 6_000 }] },
    happens: async ({ world }) => world.enqueue(3),
    repeats: true,
    told: warned('idle', 'GatewaySlow', 'The gateway is slow'),
  },
  {
    name: 'The gateway never settles a payment',
    environment: { STUCK_AFTER_MS: '1000' },
    sandbox: { settleAfterMs: 3_600_000 },
    happens: enqueueOne,
    told: warned('idle', 'StuckInProgress', '1 payout in progress for longer than STUCK_AFTER_MS'),
  },
  {
    name: 'The gateway does not respond to a withdrawal',
    sandbox: { faults: [{ kind: 'drop-after', times: 1 }] },
    happens: enqueueOne,
    told: told(
      'noResponse',
      'Unknown',
      [200, '1 payout may or may not have been sent'],
      [0, 'unknown payouts', '1 may or may not have been sent'],
    ),
  },
  {
    name: 'The balance is below what is queued',
    environment: { BALANCE_EVERY_MS: '1000' },
    happens: async ({ world }) =>
      world.producer.enqueueMany(
        cents(['too-1']).map((each) => ({ ...each, amount: '100000000', notBefore: '2099-01-01T00:00:00Z' })),
      ),
    told: told('idle', 'BalanceLow', [200, 'The balance is below what is queued'], [0, 'balance', 'queued']),
  },
  {
    name: "Someone else uses the gateway's secret key",
    environment: { BALANCE_EVERY_MS: '1000' },
    happens: async (rig) => {
      await until('the balance is judged', async () => {
        const stored = await rig.client.hget(`${rig.prefix}:gateway`, 'reconciliation');
        return stored?.includes('"unexplained":"0"') === true;
      });
      await rig.payBeside('100000');
    },
    told: told(
      'idle',
      'BalanceDropped',
      [200, 'more than the payouts explain'],
      [0, 'reconciliation', 'more than the payouts explain'],
    ),
  },
  {
    name: 'The gateway blocks the account',
    sandbox: { faults: [{ kind: 'block' }] },
    happens: enqueueOne,
    told: told('paused', 'Paused Rejected', [200, 'looks like a block'], [1, 'pause', 'looks like a block']),
  },
];

export const ACCOUNT_WAYS: readonly Way[] = [
  {
    name: 'The account is paused',
    happens: async ({ operator }) => operator.pause({ by: 'an operator', reason: 'to check it' }),
    told: told(
      'paused',
      'Paused',
      [200, '"problem":"paused: to check it"'],
      [1, 'pause', 'nothing is sent: paused: to check it'],
    ),
  },
  {
    name: 'The withdraw queue is paused by hand in BullMQ',
    happens: async ({ world, client, prefix }) => {
      await client.hset(`${prefix}:withdraw:meta`, 'paused', '1');
      await world.enqueue(1);
    },
    minutes: 8 * 60,
    told: told(
      'standsStill',
      'StandStill QueuedTooLong',
      [200, 'withdraw queue: paused in BullMQ'],
      [1, 'withdraw queue', 'paused in BullMQ'],
    ),
  },
  {
    name: 'The ledger was written by a newer version',
    happens: async ({ client, prefix }) => client.hset(`${prefix}:ledger`, 'format', '99'),
    told: told(
      'otherVersion',
      'SendingRefused NoSender',
      [503, 'The ledger in Redis has format 99'],
      [1, 'pause', 'The ledger in Redis has format 99'],
    ),
  },
];

export const WORKER_WAYS: readonly Way[] = [
  {
    name: 'The worker was killed, and none stands by',
    happens: async (rig) => {
      await rig.worker.end();
      await rig.world.enqueue(1);
    },
    told: told('silent', 'WorkerMissing', ['none', ''], [1, 'sender', 'sent no heartbeat']),
  },
  {
    name: 'The worker hangs, and none stands by',
    happens: async (rig) => {
      rig.worker.kill('SIGSTOP');
      await rig.world.enqueue(1);
    },
    told: told('silent', 'WorkerMissing', ['none', ''], [1, 'sender', 'and 1 payout queued']),
  },
];

const clocks = new WeakMap<Rig, FakeClock>();

/** The wall clock of the worker's machine, which needs libfaketime, and its log. */
export const MACHINE_WAYS: readonly Way[] = [
  {
    name: 'The wall clock is three days ahead',
    prepare: async (rig) => {
      const clock = await createFakeClock(rig.world.dir, 'clock');
      clocks.set(rig, clock);
      Object.assign(rig.environment, clock.environment);
    },
    happens: async (rig) => clocks.get(rig)?.set(3 * 24 * 60 * 60 * 1_000),
    told: told(
      'idle',
      'ClockOff',
      [200, 'ahead of the clock of Redis'],
      [0, 'system clock', 'ahead of the clock of Redis'],
    ),
  },
  {
    name: "The log's disk is full",
    happens: async (rig) => {
      const full = await open('/dev/full', 'w');
      await rig.replaceWorker(undefined, { stderr: full.fd });
      await full.close();
      await rig.world.enqueue(5);
    },
    repeats: true,
    told: warned('idle', 'LogsLost', 'could not be written: free the disk'),
  },
];

import { cents } from '../support/account.js';
import { until } from '../support/until.js';
import { type Rig, untilAnswer } from '../told/rig.js';
import { WAYS } from '../told/ways/index.js';
import type { DrillRig } from './drill-rig.js';
import { HEARTBEAT_MISSED_MS, type Drill } from './table.js';

/** Faults that a phone shows, with the first command of the runbook. None is repaired: other tests do that. */
export type Sight = Omit<Drill, 'repair'>;

type Shows = Drill['shows'];

const V2 = { environment: { GATEWAY_API: 'v2', IN_FLIGHT_MAX_MS: '1000' }, sandbox: { v2: {} } } as const;
const EVENTS = 'payouts events --account ACCOUNT';
const DOCTOR = 'payouts doctor --account ACCOUNT';
const RESUME = 'payouts resume --account ACCOUNT --reason WHY';
const LIST_HELD = 'payouts list --account ACCOUNT --state held';

const becameUnknown = async ({ world }: Rig) => {
  world.sandbox.addFaults([{ kind: 'drop-after', endpoint: 'withdraw', times: 1 }]);
  await world.producer.enqueueMany(cents(['P-1']));
  await until('it is unknown', async () => (await world.producer.stats()).unknown === 1);
};

/** Money at risk, as the index of the runbooks has it. */
const AT_RISK: readonly Sight[] = [
  {
    ...ofWay("Someone else uses the gateway's secret key", ['bad', 'balanceFell', 'payouts pause --account ACCOUNT']),
    finds: 'paused',
  },
  {
    name: 'A payment is found after its payout was written off',
    ...V2,
    happens: async (rig) => {
      await becameUnknown(rig);
      const { sandbox } = rig.world;
      const calls = sandbox.stats().calls.transactionstatus;
      sandbox.addFaults([{ kind: 'latency-after', endpoint: 'transactionstatus', delayMs: 6_000, times: 1 }]);
      await until('the worker asks for it', () => sandbox.stats().calls.transactionstatus > calls);
      await rig.runText('payouts resolve P-1 --write-off --reason "paid by hand"');
      const isLate = async () => (await rig.world.producer.stats()).latePayments === 1;
      await until('its payment is found', isLate);
    },
    shows: ['bad', 'paidLate', EVENTS],
    finds: 'P-1',
  },
  {
    name: "The gateway has another payment with a payout's order id",
    ...V2,
    happens: async (rig) => {
      await becameUnknown(rig);
      await rig.client.hset(`${rig.prefix}:payout:P-1`, 'amount', '77');
      const isFound = async () => (await rig.client.hget(`${rig.prefix}:ledger`, 'otherPayment')) !== null;
      await until('the worker has asked for it', isFound);
    },
    shows: ['bad', 'otherPayment', EVENTS],
    finds: 'P-1',
  },
  {
    ...ofWay('Redis came back empty', ['bad', 'mismatch', 'payouts adopt-ledger --account ACCOUNT --journal ']),
    finds: 'payouts adopt-ledger',
  },
  {
    ...ofWay('A payout is held, since someone altered it in Redis', ['bad', 'tampering', EVENTS]),
    finds: 'P-1',
  },
  ofWay('Someone removes a pause from Redis', ['bad', 'pauseKept', EVENTS]),
  {
    name: 'The worker itself sends too fast',
    prepare: async ({ environment }) => {
      const mistake = new URL('short-interval.mjs', import.meta.url).href;
      await Promise.resolve(Object.assign(environment, { NODE_OPTIONS: `--import=${mistake}` }));
    },
    happens: async (rig) => {
      await rig.world.enqueue(6);
      await until('the gateway has blocked the account', () => rig.world.sandbox.stats().blocked);
    },
    shows: ['bad', 'tooClose', 'payouts pause --account ACCOUNT'],
  },
  {
    name: "An approver's key is stolen, and an operator pauses as its runbook says",
    happens: async (rig) => rig.follow('key-stolen', 'payouts pause --reason "key ann-laptop stolen"'),
    shows: ['bad', 'paused', RESUME],
    finds: 'key ann-laptop stolen',
  },
];

const NO_MONEY: readonly Sight[] = [
  { ...ofWay('The account is paused', ['bad', 'paused', RESUME]), finds: 'to check it' },
  {
    ...ofWay('The gateway rejects one payout after another', ['bad', 'paused', RESUME]),
    indexed: 'rejections in a row',
    finds: 'P-1',
  },
  { ...ofWay('Redis hangs', ['bad', 'redisDown', 'payouts doctor']), finds: 'not reachable' },
  { ...ofWay('Redis is full', ['bad', 'redisRefused', DOCTOR], HEARTBEAT_MISSED_MS), finds: 'it is full' },
  { ...ofWay('Redis may forget what was sent', ['bad', 'redisRefused', DOCTOR]), finds: 'allkeys-lru' },
  { ...ofWay('A replica of Redis is missing', ['bad', 'replicasMissing', DOCTOR]), finds: 'only 0 of 1' },
  {
    name: 'The worker is stopped in good order',
    happens: async ({ worker }) => {
      worker.kill('SIGTERM');
      await worker.ended;
    },
    shows: ['bad', 'noWorker', 'payouts worker'],
  },
  ofWay('The worker hangs, and none stands by', ['bad', 'silent', 'payouts worker'], HEARTBEAT_MISSED_MS),
  { ...ofWay('The gateway is down', ['bad', 'gatewayDown', 'payouts gateway balance']), finds: 'ECONNREFUSED' },
  { ...ofWay('The ledger is of another gateway', ['bad', 'otherGateway', DOCTOR]), finds: 'staging' },
  { ...ofWay('The send journal is damaged', ['bad', 'refused', DOCTOR]), finds: 'cannot be read' },
  ofWay("The journal's disk does not answer any more", ['bad', 'disk', DOCTOR]),
  { ...ofWay('The ledger was written by another version', ['bad', 'otherVersion', '']), finds: 'format 99' },
  {
    name: 'A person holds a payout',
    happens: async (rig) => {
      await rig.operator.pause({ by: 'ann', reason: 'to hold one' });
      await rig.world.producer.enqueueMany(cents(['P-1']));
      await rig.runText('payouts hold P-1 --reason "ask the shop"');
      await rig.runText('payouts resume --reason WHY');
    },
    shows: ['warn', 'holds', LIST_HELD],
    finds: 'ask the shop',
  },
  {
    ...ofWay('The gateway never settles a payment', [
      'warn',
      'stuck',
      'payouts list --account ACCOUNT --state in_progress',
    ]),
    finds: 'P-1',
  },
  {
    name: 'The gateway refuses one payout',
    sandbox: { faults: [{ kind: 'reject', message: 'wrong address', times: 1 }] },
    happens: async ({ world }) => {
      await world.enqueue(1);
      await until('it is rejected', async () => (await world.producer.stats()).rejected === 1);
    },
    shows: ['warn', 'rejected', 'payouts list --account ACCOUNT --state rejected'],
    finds: 'wrong address',
  },
  {
    name: 'The receiver of notifications fails for more than five minutes',
    prepare: async (rig) => {
      await rig.startExporter('notify');
      await until('it has its group', async () => (await rig.client.exists(`${rig.prefix}:events`)) === 1);
      const [seconds] = await rig.client.time();
      // Redis stamps events with its own clock; the first may be of any time.
      const id = `${(Number(seconds) - 240) * 1_000}-1`;
      const event = { type: 'paused', at: '1893456000000', by: 'ann', reason: 'to check it' };
      await rig.client.xadd(`${rig.prefix}:events`, id, ...Object.entries(event).flat());
    },
    happens: async ({ client, prefix }) => {
      const [first] = await client.xrange(`${prefix}:events`, '-', '+', 'COUNT', 1);
      const isLate = async () =>
        Number((await client.time())[0]) * 1_000 >= Number.parseInt(first?.[0] ?? '', 10) + 300_000;
      await until('the event waits for five minutes', isLate, 90_000);
    },
    shows: ['warn', 'notificationsLate', EVENTS],
  },
  { ...ofWay('A payout is held, since nobody signed it', ['warn', 'holds', LIST_HELD]), finds: 'P-1' },
  { ...ofWay('A rule of the policy holds a payout', ['warn', 'holds', LIST_HELD]), finds: 'denied' },
];

export const SIGHTS: readonly Sight[] = [...AT_RISK, ...NO_MONEY];

/**
 * A fault of `test/told`. It can be known from the moment at which `/readyz` of the worker says it.
 * @param knownAfterMs - how much later on the page, where the worker cannot report it
 */
function ofWay(name: string, shows: Shows, knownAfterMs = 0): Sight {
  const way = WAYS.find((each) => each.name === name);
  if (way === undefined) throw new Error(`test/told has no way "${name}"`);
  const { happens, told } = way;
  return {
    ...way,
    shows,
    happens: async (rig: DrillRig) => {
      await happens(rig);
      if (told.readyz.status !== 'none') {
        await untilAnswer(
          `/readyz says ${told.readyz.words}`,
          async () => rig.readyz(),
          ({ body }) => body.includes(told.readyz.words),
          120_000,
        );
      }
      return performance.now() + knownAfterMs;
    },
  };
}

import {
  fillAccount,
  type SampleAccount,
  writeSampleBatches,
  writeSampleWorker,
} from '../../test/dashboard/support/sample-account.js';
import { Random } from '../../test/doubles/random.js';
import { POSITION } from '../../src/ledger/reads/batches.js';
import { writeGatewayFacts } from '../../src/ledger/reads/gateway-facts.js';
import { toHourFields, type MinuteStatistics } from '../../src/ledger/reads/statistics.js';
import { readWorkers, writeWorkerReport } from '../../src/ledger/reads/workers.js';
import { aPayout } from '../../test/ledger/support/a-payout.js';
import { PAYOUT_STATES } from '../../src/ledger/states.js';

const MINUTE_MS = 60_000;
const MINUTES = 24 * 60;
const BEAT_EVERY_MS = 300;
const REPORT_EVERY_MS = 3_000;
const SEND_EVERY_MS = 1_200;

const SENDER = 'payouts-1:4711';

/** A day of sends, with a busy and a quiet time, as the sender would have counted it. The same each time. */
async function writeSampleStatistics({ redis, connection, clock }: SampleAccount): Promise<void> {
  const random = new Random(7);
  const now = clock.wallNow();
  const minutes: MinuteStatistics[] = [];
  let backlog = 0;
  for (let age = MINUTES; age >= 0; age -= 1) {
    backlog += age % 360 === 200 ? 9_000 : age === 42 ? 3_668 : 0;
    const sent = Math.min(backlog, age === 0 ? 15 : 57 + random.whole(0, 2));
    if (sent === 0) continue;
    backlog -= sent;
    const smallestGapMs = 1_011 + random.whole(0, 12);
    const largestGapMs = random.chance(0.04) ? random.between(4_000, 34_000) : smallestGapMs + random.between(40, 940);
    const at = Math.floor(now / MINUTE_MS) * MINUTE_MS - age * MINUTE_MS;
    const others = { completed: sent, rejected: random.chance(0.02) ? 1 : 0, unknown: 0 };
    minutes.push({ at, sent, smallestGapMs, largestGapMs: Math.round(largestGapMs), ...others, backlog });
  }
  const usdt = { paymentId: 6, symbol: 'USD' };
  const btc = { paymentId: 1, symbol: 'USD' };
  await redis.hset(connection.keys.statistics, {
    ...toHourFields(minutes),
    lastSendAt: JSON.stringify(now - 96_000),
    pace: JSON.stringify(Array.from({ length: 20 }, (_, index) => 1_020 + index)),
    sums: JSON.stringify({
      queued: [
        { ...usdt, count: 1_204, amount: '92710.5' },
        { ...btc, count: 12, amount: '0.41' },
      ],
    }),
    today: JSON.stringify({
      day: Math.floor(now / (MINUTES * MINUTE_MS)),
      sent: [
        { ...usdt, count: 8_211, amount: '640214.77' },
        { ...btc, count: 96, amount: '3.2004' },
      ],
      completed: [{ ...usdt, count: 8_190, amount: '638600.1' }],
      rejected: [{ ...usdt, count: 3, amount: '9120' }],
      failed: [{ ...usdt, count: 1, amount: '250' }],
    }),
  });
}

/** What the gateway said last. @param balance - in USD */
async function writeSampleFacts({ connection, clock }: SampleAccount, balance = '412000'): Promise<void> {
  const at = clock.wallNow() - 40_000;
  const currencies = [
    { paymentId: 1, name: 'BTC', usdRate: '64000' },
    { paymentId: 6, name: 'USDT (TRC-20)', usdRate: '1' },
    { paymentId: 7, name: 'USDT (ERC-20)', usdRate: '1' },
    { paymentId: 12, name: 'ETH', usdRate: '3000' },
  ];
  const balances = [{ paymentId: undefined, symbol: 'USD', amount: balance }];
  await writeGatewayFacts(connection, { currencies, currenciesAt: at }, { balance: balances, balanceAt: at });
}

/** What a living sender writes, in real time. @returns what ends it */
function keepAlive(account: SampleAccount, { sends }: { readonly sends: boolean }): () => void {
  const { redis, connection } = account;
  const { sender } = connection.keys;
  const reporting = setInterval(() => void reportAgain(account), REPORT_EVERY_MS);
  const heartbeat = setInterval(() => void redis.hincrby(sender, 'beat', 1), BEAT_EVERY_MS);
  const sending = sends ? setInterval(() => void redis.hincrby(sender, 'sends', 1), SEND_EVERY_MS) : undefined;
  return () => {
    for (const timer of [reporting, heartbeat, sending]) clearInterval(timer);
  };
}

async function reportAgain({ connection }: SampleAccount): Promise<void> {
  for (const { name, ...report } of await readWorkers(connection)) {
    await writeWorkerReport(connection, name, { ...report, at: report.at + REPORT_EVERY_MS });
  }
}

/** An account in one condition, and the pages to take pictures of. */
export interface Scene {
  readonly name: string;
  /** Brings an account into the condition. @returns what ends it */
  readonly prepare: (account: SampleAccount) => Promise<() => void>;
  /** Whether a shop signs payouts and a policy holds some. @defaultValue false */
  readonly isSigned?: boolean;
  /** The name of each picture, and the path under the account. */
  readonly pages: Readonly<Record<string, string>>;
}

const OVERVIEW = { overview: 'overview' };

type SampleReport = Parameters<typeof writeSampleWorker>[2];

/** A sender that holds the lease, with its report and that of a standby. */
async function prepareSender(account: SampleAccount, report: SampleReport = {}): Promise<void> {
  const { redis, connection } = account;
  await redis.hset(connection.keys.sender, 'owner', `${SENDER}:9f3a1c22`);
  await writeSampleWorker(account, SENDER, { role: 'sender', ...report });
  await writeSampleWorker(account, 'payouts-2:812', {});
}

async function prepareFull(account: SampleAccount, report: SampleReport = {}, balance?: string): Promise<void> {
  await enqueueBacklog(account);
  await fillAccount(account);
  await writeSampleStatistics(account);
  await writeSampleFacts(account, balance);
  await prepareSender(account, report);
}

const BACKLOG = 1_213;
const BATCH = 'september';

/** What came of the first payouts of the batch. */
async function sendSome(account: SampleAccount): Promise<void> {
  for (let index = 1; index <= 24; index += 1) {
    const payoutId = `bonus:${index}`;
    const given = { amount: '120', paymentId: 6, batch: BATCH };
    if (index % 8 === 0) await account.sendAs(payoutId, { kind: 'rejected', message: 'Invalid address' }, given);
    else await account.sendAs(payoutId, { kind: 'accepted', gatewayId: `b0${index}` }, given);
    if (index % 8 !== 0 && index < 20)
      await account.ledger.change({ payoutId, from: 'in_progress', to: 'completed', fee: '1' });
  }
}

/** Payouts that wait, in the ledger alone. */
async function enqueueBacklog({ ledger }: SampleAccount): Promise<void> {
  const payouts = Array.from({ length: BACKLOG }, (_, index) =>
    aPayout(`salary:${index + 1}`, { amount: '77', paymentId: 6, symbol: 'USD', batch: BATCH }),
  );
  await ledger.enqueue(payouts);
  await ledger.clearOutbox(
    'queued',
    payouts.map(({ payoutId }) => payoutId),
  );
}

/** The time of Redis after a delay given in ms. */
async function inMs({ redis }: SampleAccount, ms: number): Promise<number> {
  return Number((await redis.time())[0]) * 1_000 + ms;
}

const PAYOUT_OF_STATE: Readonly<Record<string, string>> = {
  completed: 'order%3A2041',
  failed: 'order%3A2042',
  'in-progress': 'order%3A2043',
  unknown: 'order%2F2044%2Ba%3Db',
  rejected: 'order%3A2045',
  queued: 'order%3A2047',
  cancelled: 'order%3A2048',
  sending: 'order%3A2049',
};

const SHOPS = ['affiliates-august', 'affiliates-september', 'refunds', 'salaries-september'];

/** Batches of several sizes, which some payouts have left in each way. */
async function enqueueBatches(account: SampleAccount): Promise<void> {
  for (const [index, batch] of SHOPS.entries()) {
    for (let number = 1; number <= 6 + 2 * index; number += 1) {
      const payoutId = `${batch}:${number}`;
      const given = {
        amount: `${1_200 + 37 * number}.5`,
        paymentId: 6,
        batch,
        reference: `Invoice ${2_026_000 + number}`,
      };
      if (index === SHOPS.length - 1 && number > 9) await account.enqueue(payoutId, given);
      else if (number % 5 === 0)
        await account.sendAs(payoutId, { kind: 'rejected', message: 'Invalid address' }, given);
      else if (number === 9)
        await account.sendAs(
          payoutId,
          { kind: 'unknown', reason: 'no response within 60000 ms; the request may have been paid' },
          given,
        );
      else {
        await account.sendAs(
          payoutId,
          { kind: 'accepted', gatewayId: `4f1d${index}e${number}a7c09b52d8830f6e12` },
          given,
        );
        await account.ledger.change({ payoutId, from: 'in_progress', to: 'completed', fee: '1' });
      }
    }
  }
  await account.ledger.change({
    payoutId: 'refunds:5',
    from: 'rejected',
    to: 'cancelled',
    by: 'ann',
    reason: 'paid by other means',
  });
  await account.ledger.change({
    payoutId: 'affiliates-september:5',
    from: 'rejected',
    to: 'queued',
    by: 'bob',
    reason: 'the address was corrected at the gateway',
  });
  await account.ledger.pause('ann', 'the gateway announced maintenance until 14:00');
  await account.ledger.resume('ann', 'the gateway is back');
}

/** Every condition of an account that has a face of its own. */
export const SCENES: readonly Scene[] = [
  {
    name: 'docs',
    isSigned: true,
    prepare: async (account) => {
      await enqueueBatches(account);
      await sendSome(account);
      await prepareFull(account);
      await account.ledger.comment('salaries-september:9', { by: 'ann', text: 'I am on it: asked the gateway' });
      await writeSampleBatches(account, [...SHOPS, BATCH]);
      // Redis's clock is not the sample's.
      const countedAt = JSON.stringify(`${account.clock.wallNow() - 2_000}-0`);
      await account.redis.hset(account.connection.keys.batches, { [POSITION]: countedAt });
      return keepAlive(account, { sends: true });
    },
    pages: {
      ...OVERVIEW,
      payouts: 'payouts',
      selected: 'payouts?state=rejected&all=1',
      payout: 'payouts/salaries-september:9',
      held: 'held',
      batches: 'batches',
      batch: 'batch?name=affiliates-september',
      activity: 'activity',
      policy: 'policy',
      audit: 'audit',
      diagnostics: 'diagnostics',
    },
  },
  {
    name: 'sending',
    prepare: async (account) => {
      await sendSome(account);
      await prepareFull(account);
      return keepAlive(account, { sends: true });
    },
    pages: {
      ...OVERVIEW,
      'overview-day': 'overview?range=day',
      ...Object.fromEntries(PAYOUT_STATES.map((state) => [`list-${state}`, `payouts?state=${state}`])),
      ...Object.fromEntries(Object.entries(PAYOUT_OF_STATE).map(([name, id]) => [`payout-${name}`, `payouts/${id}`])),
      'list-all': 'payouts?state=',
      batch: 'batch?name=september',
      batches: 'batches',
      activity: 'activity',
      held: 'held',
      diagnostics: 'diagnostics',
      policy: 'policy',
      audit: 'audit',
      'nothing-found': 'payouts?q=nothing',
      'found-by-amount': 'payouts?q=9000',
      'filter-with-mistake': 'payouts?state=&amount=12x',
      'not-found': 'none',
    },
  },
  {
    name: 'signed',
    isSigned: true,
    prepare: async (account) => {
      await prepareFull(account);
      return keepAlive(account, { sends: true });
    },
    pages: {
      held: 'held',
      'held-by-rule': 'held?rule=day',
      payout: 'payouts/signed:large',
      policy: 'policy',
      audit: 'audit',
    },
  },
  {
    name: 'idle',
    prepare: async (account) => {
      await prepareSender(account);
      await writeSampleFacts(account);
      return keepAlive(account, { sends: false });
    },
    pages: OVERVIEW,
  },
  {
    name: 'paused',
    prepare: async (account) => {
      await prepareFull(account);
      await account.ledger.pause('ann', 'the gateway announced maintenance until 14:00');
      return keepAlive(account, { sends: false });
    },
    pages: OVERVIEW,
  },
  {
    name: 'mismatch',
    prepare: async (account) => {
      await prepareFull(account);
      const objection = {
        kind: 'ledger',
        reason: 'The ledger does not know 3 sends that the journal has.',
        host: 'payouts-1',
        dir: '/var/lib/payouts/journal',
        sends: 8_307,
        at: account.clock.wallNow(),
      };
      await account.redis.hset(account.connection.keys.objections, 'k3j9x2', JSON.stringify(objection));
      return keepAlive(account, { sends: false });
    },
    pages: OVERVIEW,
  },
  {
    name: 'sender-gone',
    prepare: async (account) => {
      await prepareFull(account);
      return () => undefined;
    },
    pages: OVERVIEW,
  },
  {
    name: 'gateway-down',
    prepare: async (account) => {
      const lastError = 'No connection to the gateway at https://gateway.example: connect ECONNREFUSED 203.0.113.7:443';
      await prepareFull(account, {
        lastError,
        lastErrorCode: 'GATEWAY_UNAVAILABLE',
        failedAttempts: 7,
        nextRetryAt: await inMs(account, 28_000),
      });
      return keepAlive(account, { sends: false });
    },
    pages: OVERVIEW,
  },
  {
    name: 'gateway-down-idle',
    prepare: async (account) => {
      await prepareSender(account);
      await writeSampleFacts(account);
      const failure =
        '/balance: No connection to the gateway at https://gateway.example: connect ECONNREFUSED 203.0.113.7:443';
      await writeGatewayFacts(account.connection, {
        failure,
        failureCode: 'GATEWAY_UNAVAILABLE',
        failureAt: account.clock.wallNow(),
      });
      return keepAlive(account, { sends: false });
    },
    pages: OVERVIEW,
  },
  {
    name: 'newer-ledger',
    prepare: async (account) => {
      await account.redis.hset(account.connection.keys.ledger, 'format', '3');
      return () => undefined;
    },
    pages: OVERVIEW,
  },
  {
    name: 'takeover',
    prepare: async (account) => {
      await prepareFull(account, { holdOffUntil: await inMs(account, 30_000) });
      return keepAlive(account, { sends: false });
    },
    pages: OVERVIEW,
  },
  {
    name: 'short-balance',
    prepare: async (account) => {
      await prepareFull(account, {}, '51200');
      return keepAlive(account, { sends: true });
    },
    pages: OVERVIEW,
  },
  {
    name: 'refused',
    prepare: async (account) => {
      const reason = 'This Redis may forget what was sent: appendonly is off';
      await prepareFull(account, { role: 'refused', reason });
      return keepAlive(account, { sends: false });
    },
    pages: OVERVIEW,
  },
  {
    name: 'new',
    prepare: async (account) => {
      await account.redis.del(account.connection.keys.sender);
      return () => undefined;
    },
    pages: OVERVIEW,
  },
];

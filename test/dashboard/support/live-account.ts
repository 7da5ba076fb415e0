import { Random } from '../../doubles/random.js';
import { POSITION, readBatchSums } from '../../../src/ledger/reads/batches.js';
import { writeGatewayFacts } from '../../../src/ledger/reads/gateway-facts.js';
import { toHourFields, type MinuteStatistics } from '../../../src/ledger/reads/statistics.js';
import { STREAM_BEGINNING } from '../../../src/ledger/reads/state-events.js';
import { readWorkers, writeWorkerReport, type WorkerReport } from '../../../src/ledger/reads/workers.js';
import type { SampleAccount } from './sample-account.js';

const MINUTE_MS = 60_000;
const MINUTES = 24 * 60;
const BEAT_EVERY_MS = 300;
const REPORT_EVERY_MS = 3_000;
const SEND_EVERY_MS = 1_200;

/** The name and the lease of the sample's sender. */
export const SENDER = 'payouts-1:4711';

/** A day of sends, with a busy and a quiet time, as the sender would have counted it. The same each time. */
export async function writeSampleStatistics({ redis, connection, clock }: SampleAccount): Promise<void> {
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
export async function writeSampleFacts({ connection, clock }: SampleAccount, balance = '412000'): Promise<void> {
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

/** A report of a worker process that runs for three hours. */
export async function writeSampleWorker(
  { redis, connection }: SampleAccount,
  name: string,
  report: Partial<WorkerReport>,
): Promise<void> {
  const at = Number((await redis.time())[0]) * 1_000;
  const startedAt = at - 3 * 60 * MINUTE_MS;
  await writeWorkerReport(connection, name, { role: 'standby', at, startedAt, version: '0.3.0', ...report });
}

/** What a living sender writes, in real time. @returns what ends it */
export function keepAlive(account: SampleAccount, { sends }: { readonly sends: boolean }): () => void {
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

/** The sums of batches, as the sender would have counted them up to now. */
export async function writeSampleBatches(
  { redis, connection }: SampleAccount,
  names: readonly string[],
): Promise<void> {
  const [newest] = await redis.xrevrange(connection.keys.events, '+', '-', 'COUNT', 1);
  const kept: Record<string, string> = { [POSITION]: JSON.stringify(newest?.[0] ?? STREAM_BEGINNING) };
  for (const name of names) kept[name] = JSON.stringify(await readBatchSums(connection, name));
  await redis.hset(connection.keys.batches, kept);
}

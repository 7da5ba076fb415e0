import { setTimeout as delay } from 'node:timers/promises';
import { type Arrival, startSandbox } from 'payout-queue/sandbox';
import { newAccount, type SamplePayout, samplePayouts } from '../sample-payouts.js';
import { gapsOf } from '../statistics.js';
import { until } from '../until.js';
import type { Client, OpenEngine, Shown } from './engine.js';
import type { Fault } from './faults.js';
import type { Program } from './program.js';

/** What the gateway saw of one engine under one fault, and how the engine shows it. */
export interface Outcome {
  readonly arrivals: number;
  readonly paidTwice: number;
  readonly tooClose: number;
  /** The shortest gap between two arrivals. */
  readonly shortestMs: number;
  /** The gaps that are too close, the shortest first. */
  readonly closeGapsMs: readonly number[];
  /** Paid to another recipient than the merchant's. */
  readonly misled: number;
  /** Never at the gateway, and the engine shows nothing that is left to do. */
  readonly lost: number;
  /** The engine shows them as failed or not finished, so that a person looks. */
  readonly asks: number;
}

const SECOND_MS = 1_000;
const LATENCY_MS = { latencyBeforeMs: { min: 2, max: 10 }, latencyAfterMs: { min: 2, max: 10 } };
/** Longer than a worker stands still, and than an engine takes to miss one that ended. */
const QUIET_MS = 100_000;
/** What arrives after the engine shows all as ended. */
const TAIL_MS = 4_000;
/** A worker is ended before the response to what arrived is back. */
const SOON = { everyMs: 5 };

export async function runCell(
  openEngine: OpenEngine,
  fault: Fault,
  { count, isQuick }: { readonly count: number; readonly isQuick: boolean },
): Promise<Outcome> {
  const account = newAccount();
  const { latencyBeforeMs = LATENCY_MS.latencyBeforeMs, latencyAfterMs = LATENCY_MS.latencyAfterMs } = fault;
  // It blocks no account, so that all can be counted to the end.
  const sandbox = await startSandbox({ accounts: [account], latencyBeforeMs, latencyAfterMs, minGapMs: 0 });
  const workers: Program[] = [];
  const engine = await openEngine({ ...account, baseUrl: sandbox.url }, isQuick);
  try {
    const startWorker = async (name = 'first') => {
      const worker = await engine.startWorker(name);
      workers.push(worker);
      return worker;
    };
    const worker = await startWorker();
    const client = await engine.client();
    const payouts = distinctPayouts(count);
    const { platformId } = account;
    const countWritten = () => sandbox.stats(platformId).calls.withdraw;
    sandbox.setFaults(fault.rules?.(count) ?? []);
    await client.enqueue(payouts);
    await fault.play?.({
      ...{ count, engine, client, sandbox, payouts, worker, startWorker },
      arrived: async (share) =>
        until('so many arrived', () => sandbox.arrivals(platformId).length >= Math.round(share * count), SOON),
      async written(more) {
        const before = countWritten();
        await until('so many were written', () => countWritten() >= before + more, SOON);
      },
    });
    const shown = await untilEnded(client, payouts, () => sandbox.arrivals(platformId).length, QUIET_MS);
    await delay(TAIL_MS);
    return countOutcome(payouts, sandbox.arrivals(platformId), shown);
  } finally {
    await Promise.all(workers.map(async (each) => each.kill()));
    await engine.close();
    await sandbox.close();
  }
}

/** The gateway has no id of a payout: the amount says which one it is. */
function distinctPayouts(count: number): SamplePayout[] {
  return samplePayouts(count).map((payout, index) => ({ ...payout, amount: `${100 + index}.5` }));
}

/** @returns what the engine shows once nothing waits, or nothing has arrived for `quietMs` */
async function untilEnded(
  client: Client,
  payouts: readonly SamplePayout[],
  countArrivals: () => number,
  quietMs: number,
): Promise<ReadonlyMap<string, Shown>> {
  const payoutIds = payouts.map(({ payoutId }) => payoutId);
  let [arrivals, changedAt] = [countArrivals(), performance.now()];
  for (;;) {
    const shown = await client.look(payoutIds);
    if (![...shown.values()].includes('waits') || performance.now() - changedAt > quietMs) return shown;
    await delay(500);
    if (countArrivals() !== arrivals) [arrivals, changedAt] = [countArrivals(), performance.now()];
  }
}

function countOutcome(
  payouts: readonly SamplePayout[],
  arrivals: readonly Arrival[],
  shown: ReadonlyMap<string, Shown>,
): Outcome {
  const of = ({ amount }: SamplePayout) => arrivals.filter((arrival) => arrival.amount === amount);
  const count = (holds: (payout: SamplePayout) => boolean) => payouts.filter(holds).length;
  const isShown = ({ payoutId }: SamplePayout, ...kinds: readonly Shown[]) =>
    kinds.includes(shown.get(payoutId) ?? 'missing');
  const gapsMs = gapsOf(arrivals.map(({ atMs }) => atMs)).sort((one, other) => one - other);
  const close = gapsMs.filter((gapMs) => gapMs < SECOND_MS);
  return {
    arrivals: arrivals.length,
    paidTwice: count((payout) => of(payout).length > 1),
    tooClose: close.length,
    // Rounded down: 999.6 is too close.
    shortestMs: Math.floor(gapsMs[0] ?? NaN),
    closeGapsMs: close.map(Math.floor),
    misled: count((payout) => of(payout).some(({ addressTo }) => addressTo !== payout.addressTo)),
    lost: count((payout) => of(payout).length === 0 && isShown(payout, 'done', 'missing')),
    asks: count((payout) => isShown(payout, 'asks', 'waits')),
  };
}

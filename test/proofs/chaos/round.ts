import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Payout } from '../../../src/ledger/payout.js';
import type { Payment } from '../../../src/sandbox/sandbox-account.js';
import { until } from '../../support/until.js';
import { UNSIGNED, adoptJournal, writeKeyFiles } from '../signing.js';
import { paymentOf, PLATFORM_ID, WORKERS, type Fault, type Plan, type Stage } from './plan.js';
import { type GatewayBook, startGateway, startHost, startRedis, type WorkerHost } from './processes.js';
import { TcpProxy } from './tcp-proxy.js';
import { isKnownByOrderId, openUsers } from './users.js';

/** Each that the application asked for, as the ledger has it in the end. */
type Payouts = ReadonlyMap<string, Payout | undefined>;

function* findBroken({ stats, arrivals, payments }: GatewayBook, payouts: Payouts, minGapMs: number) {
  const tooFast = arrivals.filter(({ gapMs }) => gapMs !== null && gapMs < minGapMs);
  for (const { gapMs, addressTo } of tooFast) {
    yield `TOO FAST: ${gapMs?.toFixed(2)} ms after the withdraw before it, to ${String(addressTo)}`;
  }
  if (stats.blocked && tooFast.length === 0) yield `blocked: ${String(stats.blockedReason)}`;
  for (const [addressTo, count] of Object.entries(stats.paymentsPerAddress)) {
    if (count > 1) yield `TWICE: ${addressTo} was paid ${count} times`;
  }
  // An account that was blocked for its pace pays nothing more.
  if (stats.blocked) return;
  for (const [payoutId, payout] of payouts) {
    const paid = payments.find(({ addressTo }) => addressTo === paymentOf(payoutId).addressTo);
    const problem = findProblem(payout, paid);
    if (problem !== undefined) yield `LOST: ${payoutId} ${problem}`;
  }
}

function findProblem(payout: Payout | undefined, paid: Payment | undefined) {
  switch (payout?.state) {
    case 'completed':
      if (paid === undefined) return 'is completed, but the gateway has paid nothing';
      if (payout.gatewayId !== paid.gatewayId) return 'is completed as another payment';
      return payout.txhash === paid.txhash ? undefined : 'is completed with the hash of another payment';
    case 'unknown':
      if (paid === undefined || !isKnownByOrderId(paid)) return undefined;
      return `is unknown in the end, although the gateway has its payment with order id ${String(paid.orderId)}`;
    case 'rejected':
      return paid === undefined ? undefined : 'is rejected, but the gateway has paid it';
    default:
      return `is ${payout?.state ?? 'not in the ledger'} in the end, which nothing in this round explains`;
  }
}

/** @param unsigned - what nobody signed, in the end; a Redis that came back older may have forgotten it */
function* findBrokenSigning({ payments, stats }: GatewayBook, payouts: Payouts, unsigned: Payout | undefined) {
  if (stats.blocked) return;
  const signed = new Map([...payouts.keys()].map(paymentOf).map(({ addressTo, amount }) => [addressTo, amount]));
  for (const { addressTo, amount, paymentId } of payments) {
    if (signed.get(addressTo) === amount && paymentId === 1) continue;
    yield `UNSIGNED: ${amount} of currency ${paymentId} to ${addressTo} was paid, which nobody signed`;
  }
  for (const [payoutId, payout] of payouts) {
    const { state, held, verified } = payout ?? {};
    if (state === 'completed' && verified === true) continue;
    yield `NOT PAID: ${payoutId} is ${String(state)} in the end, without a receipt; ${held?.message ?? ''}`;
  }
  if (unsigned !== undefined && unsigned.state !== 'held') {
    yield `UNSIGNED: ${UNSIGNED.payoutId}, which nobody signed, is ${unsigned.state}`;
  }
}

/** @param unsigned - payouts that nobody signed, or that were to be sent again without a signed act */
function findUnexplainedHolds(logs: readonly string[], unsigned: ReadonlySet<string>) {
  const lines = logs.flatMap((log) => log.split('\n')).filter((line) => line.includes('"msg":"payout held'));
  return lines.flatMap((line) => {
    const { payoutId, reason } = JSON.parse(line) as Readonly<{ payoutId: string; reason: string }>;
    const isExplained = unsigned.has(payoutId) && /^It is not signed|there is no signed act/.test(reason);
    return isExplained ? [] : [`HELD without a cause: ${payoutId}: ${reason}`];
  });
}

/** In the history of a payout that a worker found at the gateway: no person did. */
const FOUND_BY_ORDER_ID = 'the worker found its payment at the gateway, by its order id';
const HOST_NAME = import.meta.resolve('../../worker/support/host-name.mjs');
const FIRST_SEND_WITHIN_MS = 30_000;
const DRAINED_WITHIN_MS = 90_000;
const DECIDED_WITHIN_MS = 180_000;

export type RoundResult = Awaited<ReturnType<typeof runRound>>;

/** Payouts are sent while the plan's faults strike; then the faults end, and everything has to drain. */
export async function runRound(plan: Plan, dir: string, watch: (stage: Stage) => void = () => undefined) {
  const { timing, signed, sharedJournal } = plan;
  const trace: string[] = [];
  const broken: string[] = [];
  const states: Record<string, number> = {};
  let found = 0;
  const opened: (() => Promise<unknown>)[] = [];
  const startedAt = performance.now();
  let chaosBeganAt = Infinity;
  let book: GatewayBook | undefined;
  const journalDir = (worker: number) => join(dir, sharedJournal ? 'journal' : `journal-${worker}`);
  const workers = Array.from({ length: WORKERS }, (_, worker) => worker);
  const journalDirs = [...new Set(workers.map(journalDir))];

  const note = (text: string) => {
    const line = `${(performance.now() - startedAt).toFixed(0).padStart(6)} ms  ${text}`;
    trace.push(line);
    appendFileSync(join(dir, 'trace.log'), `${new Date().toISOString()} ${line}\n`);
  };

  const open = async () => {
    const redis = await startRedis(dir, note);
    opened.push(async () => redis.stop());
    const gateway = await startGateway(plan, dir);
    opened.push(gateway.end);
    if (signed) for (const folder of journalDirs) await adoptJournal(folder, PLATFORM_ID);
    const keys = signed ? await writeKeyFiles(dir) : undefined;
    const hosts: WorkerHost[] = [];
    const users = openUsers({
      ...{ plan, redisUrl: redis.url, gatewayUrl: gateway.url, keys, note, dir, journalDir: journalDir(0) },
      sinceChaosMs: () => Math.max(-1, performance.now() - chaosBeganAt),
      readPayments: gateway.readPayments,
      countKeptPauses: async () => countKeptPauses(hosts),
    });
    opened.push(async () => users.stop());
    const links: TcpProxy[] = [];
    for (const worker of workers) {
      const link = await TcpProxy.start(redis.port);
      links.push(link);
      opened.push(async () => link.close());
      const environment = {
        ...{ ...timing.environment, TIME_SCALE: String(timing.timeScale) },
        ...{ MAX_UNKNOWNS_IN_A_ROW: String(plan.maxUnknownsInARow), SEND_JOURNAL_DIR: journalDir(worker) },
        ...(!sharedJournal && {
          TAKEOVER_QUARANTINE_MS: String(timing.ownJournalQuarantineMs),
          ...{ HOST_NAME: `host-${worker}`, NODE_OPTIONS: `--import=${HOST_NAME}` },
        }),
        ...{ REDIS_URL: `redis://127.0.0.1:${link.port}`, GATEWAY_BASE_URL: gateway.url, GATEWAY_API: plan.api },
        ...keys?.workerEnvironment,
      };
      const host = startHost(`worker-${worker}`, dir, environment, (defect) => broken.push(defect));
      hosts.push(host);
      opened.push(async () => host.kill());
    }
    return { hosts, links, redis, gateway, users };
  };

  const letHappen = async ({ kind, atMs, copyAtMs, drawn, strike }: Fault, stage: Stage) => {
    await delay(copyAtMs);
    if (kind === 'redis-older') await stage.redis.copy();
    await delay(atMs - copyAtMs);
    note(`${kind}: ${drawn}: begins`);
    await strike(stage);
    note(`${kind}: over`);
  };

  const pass = async (stage: Stage) => {
    const { users, gateway } = stage;
    const hasSent = async () => (await gateway.readStats()).arrivals > 0;
    await until('the first withdrawal arrived', hasSent, FIRST_SEND_WITHIN_MS);
    chaosBeganAt = performance.now();
    note('the first withdrawal arrived; the chaos begins');
    await Promise.all([delay(timing.chaosMs), ...plan.faults.map(async (fault) => letHappen(fault, stage))]);
    note('the faults are over');
    const isAtRest = async () => {
      const stats = await users.readStats();
      if (stats === undefined || !users.haveAskedForAll() || stats.paused || stats.objections.length > 0) return false;
      if (stats.queued + stats.sending + stats.in_progress > 0) return false;
      return !signed || users.isDecided(stats);
    };
    const isDrained = async () => {
      if ((await gateway.readStats()).blocked) return true;
      // What is found in between is in progress.
      return (await isAtRest()) && (await users.haveFoundAll()) && isAtRest();
    };
    const withinMs = (signed ? DECIDED_WITHIN_MS : DRAINED_WITHIN_MS) + timing.chaosMs / 5;
    await until('every payout is settled', isDrained, withinMs);
    note('nothing is under way any more');
  };

  try {
    const stage = await open();
    watch(stage);
    // One that gets stuck is judged all the same.
    await pass(stage).catch((error: unknown) => broken.push((error as Error).message));
    const { producer, operator, payoutIds } = stage.users;
    const payouts = new Map<string, Payout | undefined>();
    for (const payoutId of payoutIds) {
      const payout = await producer.get(payoutId);
      payouts.set(payoutId, payout);
      const state = payout?.state ?? 'missing';
      states[state] = (states[state] ?? 0) + 1;
      if (payout?.history.some(({ reason }) => reason === FOUND_BY_ORDER_ID) === true) found += 1;
    }
    book = await stage.gateway.readBook();
    broken.push(...findBroken(book, payouts, timing.minGapMs), ...operator.lacking);
    if (signed) {
      broken.push(
        ...findBrokenSigning(book, payouts, await producer.get(UNSIGNED.payoutId)),
        ...findUnexplainedHolds(await readLogs(stage.hosts), operator.unsigned),
        ...(await operator.verifyJournals(journalDirs)),
      );
    }
    if (operator.adoptions > 0 && !plan.forgets) broken.push('the worker refused a Redis that had forgotten nothing');
  } catch (error) {
    broken.push((error as Error).message);
  } finally {
    for (const close of opened.reverse()) await close();
  }
  const { arrivals = [], stats } = book ?? {};
  return { broken, trace, states, found, arrivals: arrivals.length, smallestGapMs: stats?.smallestGapMs ?? null };
}

/** A pause that a worker keeps is told each time that it would send. */
const countKeptPauses = async (hosts: readonly WorkerHost[]) =>
  (await readLogs(hosts)).join('').split('was not ended by a signed act: ').length - 1;

const readLogs = async (hosts: readonly WorkerHost[]) => Promise.all(hosts.map(async (host) => host.readLog()));

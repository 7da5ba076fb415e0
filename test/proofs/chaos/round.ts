import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Payout } from '../../../src/ledger/payout.js';
import { until } from '../../support/until.js';
import { UNSIGNED, adoptJournal, writeKeyFiles, type KeyFiles } from '../signing.js';
import { paymentOf, PLATFORM_ID, WORKERS, type Fault, type Plan, type Stage } from './plan.js';
import { type GatewayBook, Gateway, WorkerHost, RedisServer } from './processes.js';
import { TcpProxy } from './tcp-proxy.js';
import { Users } from './users.js';

type Payouts = ReadonlyMap<string, Payout | undefined>;

async function readPayouts(
  payoutIds: readonly string[],
  get: (payoutId: string) => Promise<Payout | undefined>,
): Promise<Payouts> {
  const payouts = new Map<string, Payout | undefined>();
  for (const payoutId of payoutIds) payouts.set(payoutId, await get(payoutId));
  return payouts;
}

function countStates(payouts: Payouts): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { state = 'missing' } of [...payouts.values()].map((payout): { state?: string } => payout ?? {})) {
    counts[state] = (counts[state] ?? 0) + 1;
  }
  return counts;
}

function findBroken({ stats, arrivals, payments }: GatewayBook, payouts: Payouts, minGapMs: number) {
  const broken: string[] = [];
  for (const { gapMs, addressTo } of arrivals) {
    if (gapMs !== null && gapMs < minGapMs) {
      broken.push(`TOO FAST: ${gapMs.toFixed(2)} ms after the withdraw before it, to ${String(addressTo)}`);
    }
  }
  if (stats.blocked && broken.length === 0) broken.push(`blocked: ${String(stats.blockedReason)}`);
  for (const [addressTo, count] of Object.entries(stats.paymentsPerAddress)) {
    if (count > 1) broken.push(`TWICE: ${addressTo} was paid ${count} times`);
  }
  if (stats.blocked) return broken;
  for (const [payoutId, payout] of payouts) {
    const paid = payments.find(({ addressTo }) => addressTo === paymentOf(payoutId).addressTo);
    const problem = findProblem(payout, paid?.txhash);
    if (problem !== undefined) broken.push(`LOST: ${payoutId} ${problem}`);
  }
  return broken;
}

function findProblem(payout: Payout | undefined, txhash: string | undefined) {
  switch (payout?.state) {
    case 'completed':
      if (txhash === undefined) return 'is completed, but the gateway has paid nothing';
      return payout.txhash === txhash ? undefined : 'is completed with the hash of another payment';
    case 'unknown':
      return undefined;
    case 'rejected':
      return txhash === undefined ? undefined : 'is rejected, but the gateway has paid it';
    default:
      return `is ${payout?.state ?? 'not in the ledger'} in the end, which nothing in this round explains`;
  }
}

/** @param unsigned - what nobody signed, in the end; a Redis that came back older may have forgotten it */
function findBrokenSigning({ payments, stats }: GatewayBook, payouts: Payouts, unsigned: Payout | undefined) {
  if (stats.blocked) return [];
  const broken: string[] = [];
  const signed = new Map([...payouts.keys()].map(paymentOf).map(({ addressTo, amount }) => [addressTo, amount]));
  for (const { addressTo, amount, paymentId } of payments) {
    if (signed.get(addressTo) === amount && paymentId === 1) continue;
    broken.push(`UNSIGNED: ${amount} of currency ${paymentId} to ${addressTo} was paid, which nobody signed`);
  }
  for (const [payoutId, payout] of payouts) {
    const { state, held, verified } = payout ?? {};
    if (state === 'completed' && verified === true) continue;
    broken.push(`NOT PAID: ${payoutId} is ${String(state)} in the end, without a receipt; ${held?.message ?? ''}`);
  }
  if (unsigned !== undefined && unsigned.state !== 'held') {
    broken.push(`UNSIGNED: ${UNSIGNED.payoutId}, which nobody signed, is ${unsigned.state}`);
  }
  return broken;
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

const HOST_NAME = import.meta.resolve('../../worker/support/host-name.mjs');
const FIRST_SEND_WITHIN_MS = 30_000;
const DRAINED_WITHIN_MS = 90_000;
const DECIDED_WITHIN_MS = 180_000;

export type RoundResult = Readonly<{
  broken: readonly string[];
  trace: readonly string[];
  states: Readonly<Record<string, number>>;
  arrivals: number;
  smallestGapMs: number | null;
}>;

/** A round: payouts are sent while the plan's faults strike; then the faults end, and everything has to drain. */
export class Round {
  readonly #plan: Plan;
  readonly #dir: string;
  readonly #trace: string[] = [];
  readonly #broken: string[] = [];
  readonly #startedAt = performance.now();
  readonly #opened: (() => Promise<void>)[] = [];
  #chaosBeganAt = Infinity;

  readonly #watch: (stage: Stage) => void;

  constructor(plan: Plan, dir: string, watch: (stage: Stage) => void = () => undefined) {
    this.#plan = plan;
    this.#dir = dir;
    this.#watch = watch;
  }

  async run(): Promise<RoundResult> {
    let book: GatewayBook | undefined;
    let states: RoundResult['states'] = {};
    try {
      const stage = await this.#open();
      this.#watch(stage);
      // A round that gets stuck is judged all the same: what the gateway saw may say why.
      await this.#pass(stage).catch((error: unknown) => this.#broken.push((error as Error).message));
      const { producer, operator, payoutIds } = stage.users;
      const payouts = await readPayouts(payoutIds, async (payoutId) => producer.get(payoutId));
      states = countStates(payouts);
      book = await stage.gateway.readBook();
      this.#broken.push(...findBroken(book, payouts, this.#plan.timing.minGapMs), ...operator.lacking);
      if (this.#plan.signed) {
        this.#broken.push(
          ...findBrokenSigning(book, payouts, await producer.get(UNSIGNED.payoutId)),
          ...findUnexplainedHolds(await readLogs(stage.hosts), operator.unsigned),
          ...(await operator.verifyJournals(this.#journalDirs())),
        );
      }
      if (operator.adoptions > 0 && !this.#plan.forgets) {
        this.#broken.push('the worker refused a Redis that had forgotten nothing');
      }
    } catch (error) {
      this.#broken.push((error as Error).message);
    } finally {
      for (const close of this.#opened.reverse()) await close();
    }
    const { arrivals = [], stats: { smallestGapMs } = { smallestGapMs: null } } = book ?? {};
    return { broken: this.#broken, trace: this.#trace, states, arrivals: arrivals.length, smallestGapMs };
  }

  async #open(): Promise<Stage> {
    const plan = this.#plan;
    const note = (text: string) => {
      this.#note(text);
    };
    const redis = await RedisServer.start(this.#dir, note);
    this.#opened.push(async () => redis.stop());
    const gateway = await Gateway.start(plan, this.#dir);
    this.#opened.push(async () => gateway.end());
    const keys = plan.signed ? await this.#openKeys() : undefined;
    const hosts: WorkerHost[] = [];
    const users = new Users({
      ...{ plan, redisUrl: redis.url, gatewayUrl: gateway.url, keys, note },
      ...{ dir: this.#dir, journalDir: this.#journalDir(0) },
      sinceChaosMs: () => Math.max(-1, performance.now() - this.#chaosBeganAt),
      readPayments: async () => gateway.readPayments(),
      countKeptPauses: async () => countKeptPauses(hosts),
    });
    this.#opened.push(async () => users.stop());
    const links: TcpProxy[] = [];
    for (let worker = 0; worker < WORKERS; worker += 1) {
      const link = await TcpProxy.start(redis.port);
      links.push(link);
      this.#opened.push(async () => link.close());
      const environment = {
        ...this.#environmentOf(worker),
        REDIS_URL: `redis://127.0.0.1:${link.port}`,
        GATEWAY_BASE_URL: gateway.url,
        ...keys?.workerEnvironment,
      };
      const onDefect = (defect: string): unknown => this.#broken.push(defect);
      const host = new WorkerHost(`worker-${worker}`, this.#dir, environment, onDefect);
      hosts.push(host);
      this.#opened.push(async () => host.kill());
    }
    return { hosts, links, redis, gateway, users };
  }

  #environmentOf(worker: number): Record<string, string> {
    const { timing, maxUnknownsInARow, sharedJournal } = this.#plan;
    return {
      ...timing.environment,
      TIME_SCALE: String(timing.timeScale),
      MAX_UNKNOWNS_IN_A_ROW: String(maxUnknownsInARow),
      SEND_JOURNAL_DIR: this.#journalDir(worker),
      ...(!sharedJournal && {
        TAKEOVER_QUARANTINE_MS: String(timing.ownJournalQuarantineMs),
        ...{ HOST_NAME: `host-${worker}`, NODE_OPTIONS: `--import=${HOST_NAME}` },
      }),
    };
  }

  async #openKeys(): Promise<KeyFiles> {
    for (const dir of this.#journalDirs()) await adoptJournal(dir, PLATFORM_ID);
    return writeKeyFiles(this.#dir);
  }

  #journalDirs() {
    return [...new Set(Array.from({ length: WORKERS }, (_, worker) => this.#journalDir(worker)))];
  }

  #journalDir(worker: number) {
    return join(this.#dir, this.#plan.sharedJournal ? 'journal' : `journal-${worker}`);
  }

  async #pass(stage: Stage) {
    const { users, gateway } = stage;
    const hasSent = async () => (await gateway.readStats()).arrivals > 0;
    await until('the first withdrawal arrived', hasSent, FIRST_SEND_WITHIN_MS);
    this.#chaosBeganAt = performance.now();
    this.#note('the first withdrawal arrived; the chaos begins');
    await Promise.all([
      delay(this.#plan.timing.chaosMs),
      ...this.#plan.faults.map(async (fault) => this.#letHappen(fault, stage)),
    ]);
    this.#note('the faults are over');
    const isDrained = async () => {
      // An account that was blocked for its pace pays nothing more; the verdict says so.
      if ((await gateway.readStats()).blocked) return true;
      const stats = await users.readStats();
      if (stats === undefined || !users.haveAskedForAll || stats.paused || stats.objections.length > 0) return false;
      if (stats.queued + stats.sending + stats.in_progress > 0) return false;
      return !this.#plan.signed || users.isDecided(stats);
    };
    const withinMs = (this.#plan.signed ? DECIDED_WITHIN_MS : DRAINED_WITHIN_MS) + this.#plan.timing.chaosMs / 5;
    await until('every payout is settled', isDrained, withinMs);
    this.#note('nothing is under way any more');
  }

  async #letHappen(fault: Fault, stage: Stage) {
    const { kind, atMs, copyAtMs, drawn } = fault;
    await delay(copyAtMs);
    if (kind === 'redis-older') await stage.redis.copy();
    await delay(atMs - copyAtMs);
    this.#note(`${kind}: ${drawn}: begins`);
    await fault.strike(stage);
    this.#note(`${kind}: over`);
  }

  #note(text: string) {
    const line = `${(performance.now() - this.#startedAt).toFixed(0).padStart(6)} ms  ${text}`;
    this.#trace.push(line);
    appendFileSync(join(this.#dir, 'trace.log'), `${new Date().toISOString()} ${line}\n`);
  }
}

async function countKeptPauses(hosts: readonly WorkerHost[]) {
  const logs = await readLogs(hosts);
  return logs.reduce((count, log) => count + log.split('was not ended by a signed act: ').length - 1, 0);
}

async function readLogs(hosts: readonly WorkerHost[]) {
  return Promise.all(hosts.map(async (host) => host.readLog()));
}

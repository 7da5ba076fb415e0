import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startDashboard, type DashboardServer } from '../../../src/dashboard/index.js';
import { until } from '../../support/until.js';
import type { AccountStats } from '../../../src/ledger/reads/account-stats.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { adoptJournal, UNSIGNED, writeKeyFiles, type KeyFiles } from '../signing.js';
import { PLATFORM_ID, SECRET_KEY } from './account.js';
import { describeFault, strike, type Stage } from './faults.js';
import { Gateway, type GatewayBook } from './gateway.js';
import { Users } from './users.js';
import { forgets, WORKERS, type Fault, type Plan } from './plan.js';
import { RedisServer } from './redis-server.js';
import { TcpProxy } from './tcp-proxy.js';
import { findBrokenSigning, findUnexplainedHolds } from './signed-verdict.js';
import { findBroken } from './verdict.js';
import { WorkerHost } from './worker-host.js';

const HOST_NAME = '../../worker/support/host-name.mjs';
const FIRST_SEND_WITHIN_MS = 30_000;
const DRAINED_WITHIN_MS = 90_000;
/** With an operator who runs a command for each payout that is open. */
const DECIDED_WITHIN_MS = 180_000;

export interface RoundResult {
  readonly broken: readonly string[];
  readonly trace: readonly string[];
  /** How many payouts there were, and in which state they ended. */
  readonly states: Readonly<Record<string, number>>;
  readonly arrivals: number;
  readonly smallestGapMs: number | null;
}

/** A round: payouts are sent while the plan's faults strike; then the faults end, and everything has to drain. */
export class Round {
  readonly #plan: Plan;
  readonly #dir: string;
  readonly #trace: string[] = [];
  readonly #broken: string[] = [];
  readonly #startedAt = performance.now();
  /** Undone in the opposite order. */
  readonly #opened: (() => Promise<void>)[] = [];
  #chaosBeganAt: number | undefined;

  /** @param dir - an empty folder for all data and logs of the round */
  constructor(plan: Plan, dir: string) {
    this.#plan = plan;
    this.#dir = dir;
  }

  async run(): Promise<RoundResult> {
    let book: GatewayBook | undefined;
    let payouts = new Map<string, Payout | undefined>();
    try {
      const stage = await this.#open();
      await this.#pass(stage);
      payouts = await readPayouts(stage.users);
      book = await stage.gateway.readBook();
      this.#broken.push(...findBroken(book, payouts, this.#plan.timing.minGapMs));
      this.#broken.push(...stage.users.operator.lacking);
      if (this.#plan.signed) this.#broken.push(...(await this.#judgeSigning(stage, book, payouts)));
      if (stage.users.operator.adoptions > 0 && !forgets(this.#plan)) {
        this.#broken.push('the worker refused a Redis that had forgotten nothing');
      }
    } catch (error) {
      this.#broken.push((error as Error).message);
    } finally {
      for (const close of this.#opened.reverse()) await close();
    }
    return {
      broken: this.#broken,
      trace: this.#trace,
      states: countStates(payouts.values()),
      arrivals: book?.arrivals.length ?? 0,
      smallestGapMs: book?.stats.smallestGapMs ?? null,
    };
  }

  async #judgeSigning(
    { hosts, users: { producer, operator, decisions } }: Stage,
    book: GatewayBook,
    payouts: ReadonlyMap<string, Payout | undefined>,
  ): Promise<string[]> {
    const broken = findBrokenSigning(book, payouts, await producer.get(UNSIGNED.payoutId));
    const unsigned = new Set([UNSIGNED.payoutId, ...(decisions?.unsigned ?? [])]);
    broken.push(...findUnexplainedHolds(await readLogs(hosts), unsigned));
    const problem = await operator.verifyJournals(this.#journalDirs());
    if (problem !== undefined) broken.push(problem);
    return broken;
  }

  /** A round that gets stuck is judged all the same: what the gateway saw may say why. */
  async #pass(stage: Stage): Promise<void> {
    try {
      await until(
        'the first withdrawal arrived',
        async () => stage.gateway.readStats().then(({ arrivals }) => arrivals > 0),
        FIRST_SEND_WITHIN_MS,
      );
      await this.#letChaosHappen(stage);
      await this.#drain(stage);
    } catch (error) {
      this.#broken.push((error as Error).message);
    }
  }

  async #open(): Promise<Stage> {
    const note = (text: string): void => {
      this.#note(text);
    };
    const redis = await RedisServer.start(this.#dir, note);
    this.#opened.push(async () => redis.stop());
    const gateway = await Gateway.start(this.#plan, this.#dir);
    this.#opened.push(async () => gateway.end());
    const dashboard = this.#plan.readsPage ? await this.#startDashboard(redis.url) : undefined;
    const keys = this.#plan.signed ? await this.#openKeys() : undefined;
    const hosts: WorkerHost[] = [];
    const users = new Users({
      redisUrl: redis.url,
      dashboardUrl: dashboard?.url,
      dir: this.#dir,
      journalDir: this.#journalDir(0),
      enqueueAtMs: this.#plan.enqueueAtMs,
      sinceChaosMs: () => (this.#chaosBeganAt === undefined ? -1 : performance.now() - this.#chaosBeganAt),
      note,
      gatewayUrl: gateway.url,
      keys,
      forgetsKey: this.#plan.forgetsKey,
      pauseAtMs: this.#plan.pauseAtMs,
      readPayments: async () => gateway.readPayments(),
      countKeptPauses: async () => countKeptPauses(hosts),
    });
    this.#opened.push(async () => users.stop());
    users.start();
    const links: TcpProxy[] = [];
    for (let worker = 0; worker < WORKERS; worker += 1) {
      const link = await TcpProxy.start(redis.port);
      links.push(link);
      this.#opened.push(async () => link.close());
      const host = this.#startHost(worker, link, { gateway, keys });
      hosts.push(host);
      this.#opened.push(async () => host.kill());
    }
    return { hosts, links, redis, gateway, users };
  }

  async #startDashboard(redisUrl: string): Promise<DashboardServer> {
    const dashboard = await startDashboard({ redisUrl, platformId: PLATFORM_ID, host: '127.0.0.1', port: 0 });
    this.#opened.push(async () => dashboard.close());
    return dashboard;
  }

  #startHost(
    worker: number,
    link: TcpProxy,
    { gateway, keys }: { readonly gateway: Gateway; readonly keys: KeyFiles | undefined },
  ): WorkerHost {
    const { timing, maxUnknownsInARow } = this.#plan;
    return new WorkerHost({
      name: `worker ${worker}`,
      logFile: join(this.#dir, `worker-${worker}.log`),
      environment: {
        ...timing.environment,
        ...(this.#plan.sharedJournal ? {} : { TAKEOVER_QUARANTINE_MS: String(timing.ownJournalQuarantineMs) }),
        TIME_SCALE: String(timing.timeScale),
        MAX_UNKNOWNS_IN_A_ROW: String(maxUnknownsInARow),
        REDIS_URL: `redis://127.0.0.1:${link.port}`,
        GATEWAY_BASE_URL: gateway.url,
        GATEWAY_PLATFORM_ID: String(PLATFORM_ID),
        GATEWAY_SECRET_KEY: SECRET_KEY,
        SEND_JOURNAL_DIR: this.#journalDir(worker),
        ...(this.#plan.sharedJournal
          ? {}
          : { HOST_NAME: `host-${worker}`, NODE_OPTIONS: `--import=${import.meta.resolve(HOST_NAME)}` }),
        ...keys?.workerEnvironment,
      },
      onDefect: (defect) => this.#broken.push(defect),
    });
  }

  /** Keys, and journals that count as complete. */
  async #openKeys(): Promise<KeyFiles> {
    for (const dir of this.#journalDirs()) await adoptJournal(dir, PLATFORM_ID);
    return writeKeyFiles(this.#dir);
  }

  #journalDirs(): string[] {
    return [...new Set(Array.from({ length: WORKERS }, (_, worker) => this.#journalDir(worker)))];
  }

  #journalDir(worker: number): string {
    return join(this.#dir, this.#plan.sharedJournal ? 'journal' : `journal-${worker}`);
  }

  async #letChaosHappen(stage: Stage): Promise<void> {
    this.#chaosBeganAt = performance.now();
    this.#note('the first withdrawal arrived; the chaos begins');
    await Promise.all([
      delay(this.#plan.timing.chaosMs),
      ...this.#plan.faults.map(async (fault) => this.#letFaultHappen(fault, stage)),
    ]);
    this.#note('the faults are over');
  }

  async #letFaultHappen(fault: Fault, stage: Stage): Promise<void> {
    if (fault.kind === 'redis-older') {
      await delay(fault.copyAtMs);
      await stage.redis.copy();
      this.#note('Redis is copied');
    }
    await delay(fault.atMs - ('copyAtMs' in fault ? fault.copyAtMs : 0));
    this.#note(`${describeFault(fault)}: begins`);
    await strike(fault, stage);
    this.#note(`${fault.kind}: over`);
  }

  async #drain({ users, gateway }: Stage): Promise<void> {
    await until(
      'every payout is settled',
      async () => {
        // An account that was blocked for its pace pays nothing more; the verdict says so.
        if ((await gateway.readStats()).blocked) return true;
        const stats = await users.readStats();
        if (stats === undefined || !users.haveAskedForAll || stats.paused) return false;
        if (stats.objections.length > 0) return false;
        const { queued, sending, in_progress: inProgress } = stats;
        if (queued + sending + inProgress > 0) return false;
        return !this.#plan.signed || (await isDecided(stats, users));
      },
      this.#plan.signed ? DECIDED_WITHIN_MS : DRAINED_WITHIN_MS,
    );
    this.#note('nothing is under way any more');
  }

  #note(text: string): void {
    const line = `${(performance.now() - this.#startedAt).toFixed(0).padStart(6)} ms  ${text}`;
    this.#trace.push(line);
    appendFileSync(join(this.#dir, 'trace.log'), `${new Date().toISOString()} ${line}\n`);
  }
}

async function readPayouts({ producer, payoutIds }: Users): Promise<Map<string, Payout | undefined>> {
  const payouts = new Map<string, Payout | undefined>();
  for (const payoutId of payoutIds) payouts.set(payoutId, await producer.get(payoutId));
  return payouts;
}

/** With keys, whether an operator has nothing to decide any more. */
async function isDecided({ unknown, rejected, held }: AccountStats, { producer }: Users): Promise<boolean> {
  const unsigned = await producer.get(UNSIGNED.payoutId);
  return unknown + rejected + held === (unsigned?.state === 'held' ? 1 : 0);
}

/** A pause that a worker keeps is told each time that it would send. */
async function countKeptPauses(hosts: readonly WorkerHost[]): Promise<number> {
  const logs = await readLogs(hosts);
  return logs.reduce((count, log) => count + log.split('was not ended by a signed act: ').length - 1, 0);
}

async function readLogs(hosts: readonly WorkerHost[]): Promise<string[]> {
  return Promise.all(hosts.map(async (host) => host.readLog()));
}

function countStates(payouts: Iterable<Payout | undefined>): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const payout of payouts) {
    const state = payout?.state ?? 'missing';
    counts[state] = (counts[state] ?? 0) + 1;
  }
  return counts;
}

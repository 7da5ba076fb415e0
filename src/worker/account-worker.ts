import { hostname } from 'node:os';
import { followSignals, isAborted, untilAborted } from '../base/clock.js';
import { JournalUnavailableError } from '../base/errors.js';
import type { AccountJournal } from '../journal/control-journal.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { MissingReplica } from '../ledger/known-replicas.js';
import type { PublishedHead } from '../ledger/reads/workers.js';
import type { PayoutQueues } from '../queues/payout-queues.js';
import type { KeyringFacts, PolicyFacts } from './account-control.js';
import type { AccountPart, AccountStatus, OpeningRuntime } from './account-runtime.js';
import { AccountSending } from './account-sending.js';
import { GatewayEvents } from './gateway-events.js';
import type { RecentWork } from './monitoring/recent-work.js';
import type { RedisCheck } from './redis-monitor.js';
import { repairClockJumps } from './repair-clock-jump.js';
import { describeWorker, publishWorker } from './publish-worker.js';
import type { AccountFitness } from './sharing/own-report.js';
import { longestPollDelayMs, StatusJobs } from './status-jobs.js';

/** How often the ledger's gateway is checked, in ms. */
const ASK_AGAIN_MS = 1_000;

const OPEN_AGAIN_MS = 3_000;

/** Reading weeks of sends takes seconds. A hanging disk never answers. */
const OPEN_WITHIN_MS = 30_000;

const SLOW_JOURNAL = `The send journal could not be opened within ${OPEN_WITHIN_MS / 1_000} s: its disk does not answer, or is slow.`;

/** Stands by for one account's lease, then sends; polls transactions all the time. */
export class AccountWorker {
  readonly #runtime: OpeningRuntime;
  readonly #part: CurrentPart;
  readonly #openJournal: () => Promise<AccountJournal>;
  readonly #close: () => Promise<void>;
  readonly #stop = new AbortController();
  /** Takes what the gateway sends; undefined if this one sends nothing. @internal */
  readonly events: GatewayEvents | undefined;
  #sending: AccountSending | undefined;
  #journalTrouble: { readonly reason: string; readonly cause?: 'disk' } | undefined;
  #isStopped = false;
  #running: Promise<void> | undefined;
  #polling: Promise<void> | undefined;
  #beside: Promise<unknown> | undefined;
  /** Aborted after the send in progress has ended too. */
  readonly #over = new AbortController();

  /** @internal @param close - of the account's own connections; never waits for Redis */
  constructor(
    runtime: OpeningRuntime,
    part: AccountPart,
    openJournal: () => Promise<AccountJournal>,
    close: () => Promise<void>,
  ) {
    this.#runtime = runtime;
    this.#part = new CurrentPart(part);
    this.#openJournal = openJournal;
    this.#close = close;
    this.events = GatewayEvents.of(runtime);
  }

  get platformId(): number {
    return this.#runtime.platformId;
  }

  /** @internal */
  get ledger(): PayoutLedger {
    return this.#runtime.ledger;
  }

  /** @internal */
  get queues(): PayoutQueues {
    return this.#runtime.queues;
  }

  /** Results of the last sends and polls. @internal */
  get work(): RecentWork {
    return this.#runtime.work;
  }

  /** Whether this process sends for the account, stands by, or refuses to send, and why. */
  get status(): AccountStatus {
    if (this.#isStopped) return { role: 'stopped' };
    if (this.#journalTrouble !== undefined) return { role: 'refused', ...this.#journalTrouble };
    const status = this.#sending?.status ?? { role: 'standby' };
    const reason = this.#runtime.redisState.refusal(this.ledger.connection.keys.ledger);
    if (reason === undefined || status.role === 'refused') return status;
    const missing = this.missingReplicas;
    return {
      ...{ role: 'refused', reason, cause: missing.length > 0 ? 'replicas' : 'redis' },
      ...(missing.length > 0 && {
        missing: missing.map(({ name, since }) => ({ name, since: new Date(since).toISOString() })),
      }),
      ...(status.role === 'sender' && { epoch: status.epoch }),
    };
  }

  /** Those of Redis that do not acknowledge, so that nothing is sent. @internal */
  get missingReplicas(): readonly MissingReplica[] {
    return this.#runtime.redisState.missing(this.ledger.connection.keys.ledger);
  }

  /** What this process does for the account. @internal */
  get part(): AccountPart {
    return this.#part.part;
  }

  /** Redis trouble affects every process, so only the journal decides. @internal */
  get fitness(): AccountFitness {
    if (this.#journalTrouble !== undefined) return 'refused';
    if (this.#sending === undefined) return 'opening';
    // The holder of the lease is about to record an outcome. No other process can do that better.
    return this.#sending.status.role === 'refused' && !this.holdsLease ? 'refused' : 'fit';
  }

  get holdsLease(): boolean {
    return this.#sending?.holdsLease ?? false;
  }

  /** Facts about Redis, the same for all accounts. @internal */
  get redis(): Pick<RedisCheck, 'mayForget'> {
    return this.#runtime.redisState;
  }

  /** Undefined if the ledger alone decides what is sent. */
  get keyring(): KeyringFacts | undefined {
    return this.#runtime.control?.keyring;
  }

  /** Undefined if no policy limits the account. */
  get policy(): PolicyFacts | undefined {
    return this.#runtime.control?.policy;
  }

  /** The last published end of the journal; undefined while this process does not send. @internal */
  get journalHead(): PublishedHead | undefined {
    return this.#sending?.journalHead;
  }

  /** Begins to stand by, send and poll. Safe to call twice. */
  start(): void {
    if (this.#running !== undefined) return;
    this.#polling = this.#inTurns(async (part, end) => (part === 'send' ? this.#poll(end) : untilAborted(end)));
    this.#running = this.#run();
    this.#beside = Promise.all([this.#report(), this.#repairClockJumps()]);
  }

  /**
   * Gives this process another part. It records the response of a send in progress before it gives up the account.
   * @internal
   */
  assign(part: AccountPart): void {
    this.#part.assign(part);
  }

  async #inTurns(take: (part: AccountPart, end: AbortSignal) => Promise<void>): Promise<void> {
    const { signal } = this.#stop;
    while (!isAborted(signal)) {
      const { part, changed } = this.#part;
      const turn = followSignals(signal, changed);
      await take(part, turn.signal).finally(turn.end);
    }
  }

  async #poll(end: AbortSignal): Promise<void> {
    if (!(await this.#isOurs(end))) return;
    const statusJobs = new StatusJobs(this.#runtime);
    await untilAborted(end);
    await statusJobs.close();
    this.work.endPolling();
  }

  /**
   * Waits while the ledger belongs to another gateway. This one does not know its transactions and would take jobs from
   * workers that do.
   * @returns false if the signal was aborted first
   */
  async #isOurs(end: AbortSignal): Promise<boolean> {
    const { clock, audience } = this.#runtime;
    while (!isAborted(end)) {
      const bound = await this.ledger.readAudience().catch(() => 'not known yet');
      if (bound === undefined || bound === audience) return true;
      await clock.sleep(ASK_AGAIN_MS, end);
    }
    return false;
  }

  async #report(): Promise<void> {
    const { clock, control, pacer } = this.#runtime;
    const { connection } = this.ledger;
    const name = `${hostname()}:${process.pid}`;
    const startedAt = clock.wallNow();
    const describe = (): ReturnType<typeof describeWorker> | undefined => {
      const { status, work, journalHead } = this;
      // With hundreds of accounts, reports of idle processes would be most of the load.
      if (this.part === 'rest' && status.role === 'standby') return undefined;
      return describeWorker({ status, work, opensAt: pacer.openAt, startedAt, journalHead, clock });
    };
    await Promise.all([
      publishWorker(this.#runtime, name, describe, this.#over.signal),
      control?.report(connection, name, this.#over.signal),
    ]);
  }

  async #repairClockJumps(): Promise<void> {
    const { redisClocks, settings } = this.#runtime;
    const options = {
      longestPollDelayMs: longestPollDelayMs(settings.pollMaxMs),
      readRedisClock: () => redisClocks.readingOf(this.ledger.connection.keys.ledger),
      isSender: () => this.#sending?.status.role === 'sender',
    };
    await repairClockJumps(this.#runtime, options, this.#over.signal);
  }

  async #run(): Promise<void> {
    const journal = await this.#openPatiently();
    this.#journalTrouble = undefined;
    if (journal === undefined) return;
    this.#runtime.replicas.setJournal(() => journal.knownReplicas);
    const { control, ledger, senderLedger, relay, gateway } = this.#runtime;
    const sendControl = control?.open({
      ...{ journal, connection: ledger.connection, ledger, senderLedger },
      ...{ relay, gateway },
    });
    const runtime = { ...this.#runtime, journal, sendControl, authority: sendControl?.authority };
    const sending = (this.#sending = new AccountSending(runtime));
    const standingBy = sending.standBy(this.#stop.signal);
    await this.#inTurns(async (part, end) => (part === 'rest' ? sending.rest(end) : sending.run(part, end)));
    await standingBy;
    await sending.close();
  }

  /**
   * Retries until it succeeds, so one broken journal blocks no other account.
   * @returns undefined if the process stops first
   */
  async #openPatiently(): Promise<AccountJournal | undefined> {
    const { clock } = this.#runtime;
    const stop = this.#stop.signal;
    while (!isAborted(stop)) {
      // One at a time: each hanging call holds one of the process's few threads.
      const opening = this.#openJournal().then(
        (journal) => ({ journal }),
        (error: unknown) => ({ error: error as NodeJS.ErrnoException }),
      );
      let opened = await this.#untilOpened(opening);
      while (opened === undefined && !isAborted(stop)) {
        this.#noteJournalTrouble(SLOW_JOURNAL, true);
        opened = await this.#untilOpened(opening);
      }
      if (opened === undefined) {
        void opening.then(closeLate);
        return undefined;
      }
      if ('journal' in opened) return opened.journal;
      this.#noteJournalTrouble(opened.error.message, isOfDisk(opened.error));
      await clock.sleep(OPEN_AGAIN_MS, stop);
    }
    return undefined;
  }

  #noteJournalTrouble(message: string, isDisk: boolean): void {
    const { logger } = this.#runtime;
    if (message !== this.#journalTrouble?.reason)
      logger.error({ error: message }, 'nothing is sent without the send journal');
    this.#journalTrouble = { reason: message, ...(isDisk && { cause: 'disk' }) };
  }

  /** @returns undefined after the time limit, or if the process stops */
  async #untilOpened<Opened>(opening: Promise<Opened>): Promise<Opened | undefined> {
    const turn = followSignals(this.#stop.signal);
    const late = this.#runtime.clock.sleep(OPEN_WITHIN_MS, turn.signal).then(() => undefined);
    return await Promise.race([opening, late]).finally(turn.end);
  }

  /**
   * Starts no new send, records the response of the send in progress, releases the lease and ends. Safe to call twice,
   * and before start.
   */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.events?.close();
    await this.#polling;
    await this.#running;
    this.#over.abort();
    await this.#beside;
    await this.#close();
    this.#runtime.gateway.close();
    this.#isStopped = true;
  }
}

/** The process stopped meanwhile. A slow disk must not hold that up. */
async function closeLate(opened: { readonly journal: AccountJournal } | { readonly error: Error }): Promise<void> {
  if ('journal' in opened) await opened.journal.close().catch(() => undefined);
}

/** Errors of Node's file system name the call that failed. A damaged or newer journal is no trouble of its disk. */
function isOfDisk(error: NodeJS.ErrnoException): boolean {
  return error.syscall !== undefined || error instanceof JournalUnavailableError;
}

class CurrentPart {
  #part: AccountPart;
  #changed = new AbortController();

  constructor(part: AccountPart) {
    this.#part = part;
  }

  get part(): AccountPart {
    return this.#part;
  }

  get changed(): AbortSignal {
    return this.#changed.signal;
  }

  assign(part: AccountPart): void {
    if (part === this.#part) return;
    this.#part = part;
    const before = this.#changed;
    this.#changed = new AbortController();
    before.abort();
  }
}

import { hostname } from 'node:os';
import { type Clock, followSignals, isAborted, untilAborted } from '../base/clock.js';
import type { Logger } from '../base/logger.js';
import type { SendJournal } from '../journal/send-journal.js';
import { connectLedger } from '../ledger/ledger-connection.js';
import { PayoutLedger } from '../ledger/payout-ledger.js';
import { RedisSenderLedger, WatchedLedger } from '../ledger/redis-sender-ledger.js';
import type { PublishedHead } from '../ledger/reads/workers.js';
import { type AccountAccess, openAccount } from '../queues/open-account.js';
import type { PayoutQueues } from '../queues/payout-queues.js';
import type { KeyringFacts, PolicyFacts } from './account-control.js';
import { AccountSending } from './account-sending.js';
import {
  type AccountPart,
  type AccountStatus,
  type AccountWorkerOptions,
  CurrentPart,
} from './account-worker-options.js';
import type { JobWorkerContext } from './job-worker.js';
import type { RecentWork } from './monitoring/recent-work.js';
import type { RedisCheck } from './redis-monitor.js';
import { repairClockJumps } from './repair-clock-jump.js';
import { describeWorker, publishWorker } from './publish-worker.js';
import type { AccountFitness } from './sharing/own-report.js';
import { longestPollDelayMs, StatusJobs } from './status-jobs.js';

/** How often the ledger's gateway is checked, in ms. */
const ASK_AGAIN_MS = 1_000;

/** Stands by for one account's lease, then sends; polls transactions all the time. */
export class AccountWorker {
  readonly platformId: number;
  readonly #options: AccountWorkerOptions;
  readonly #account: AccountAccess;
  /** For gateway statuses. They can be fetched again, so their writes need no confirmation. */
  readonly #polledLedger: PayoutLedger;
  readonly #part: CurrentPart;
  readonly #stop = new AbortController();
  #sending: AccountSending | undefined;
  #journalTrouble: string | undefined;
  #isStopped = false;
  #running: Promise<void> | undefined;
  #polling: Promise<void> | undefined;
  #beside: Promise<unknown> | undefined;
  /** Aborted after the send in progress has ended too. */
  readonly #over = new AbortController();

  constructor(options: AccountWorkerOptions) {
    const { platformId, connections, clock, logger, telemetry } = options;
    this.platformId = platformId;
    this.#options = options;
    this.#account = openAccount(
      {
        ...{ platformId, clock, logger, connection: connections.commands },
        firstPollAfterMs: options.settings.pollMinMs,
        ...(telemetry && { telemetry }),
      },
      options.confirmations.commands,
    );
    this.#polledLedger = new PayoutLedger(this.ledger.connection);
    this.#part = new CurrentPart(options.part);
  }

  get ledger(): PayoutLedger {
    return this.#account.ledger;
  }

  get queues(): PayoutQueues {
    return this.#account.queues;
  }

  /** Results of the last sends and polls. */
  get work(): RecentWork {
    return this.#options.work;
  }

  get status(): AccountStatus {
    if (this.#isStopped) return { role: 'stopped' };
    if (this.#journalTrouble !== undefined) return { role: 'refused', reason: this.#journalTrouble };
    const status = this.#sending?.status ?? { role: 'standby' };
    const reason = this.#options.judgement.refusal(this.ledger.connection.keys.ledger);
    if (reason === undefined || status.role === 'refused') return status;
    return { role: 'refused', reason, cause: 'redis', ...(status.role === 'sender' && { epoch: status.epoch }) };
  }

  /** What this process does for the account. */
  get part(): AccountPart {
    return this.#part.part;
  }

  /** Redis trouble affects every process, so only the journal decides. */
  get fitness(): AccountFitness {
    if (this.#journalTrouble !== undefined) return 'refused';
    if (this.#sending === undefined) return 'opening';
    // The holder of the lease is about to record an outcome. No other process can do that better.
    return this.#sending.status.role === 'refused' && !this.holdsLease ? 'refused' : 'fit';
  }

  get holdsLease(): boolean {
    return this.#sending?.holdsLease ?? false;
  }

  /** Facts about Redis, the same for all accounts. */
  get redis(): Pick<RedisCheck, 'mayForget' | 'missingReplicas'> {
    return this.#options.judgement;
  }

  /** Undefined if the ledger alone decides what is sent. */
  get keyring(): KeyringFacts | undefined {
    return this.#options.control?.keyring;
  }

  /** Undefined if no policy limits the account. */
  get policy(): PolicyFacts | undefined {
    return this.#options.control?.policy;
  }

  /** The last published end of the journal; undefined while this process does not send. */
  get journalHead(): PublishedHead | undefined {
    return this.#sending?.journalHead;
  }

  /** Begins to stand by, send and poll. Safe to call twice. */
  start(): void {
    if (this.#running !== undefined) return;
    if (this.#options.settings.pauseOnUnexplainedDrop) {
      this.#options.logger.warn({}, 'PAYOUT_PAUSE_ON_UNEXPLAINED_DROP does nothing any more: see CHANGELOG.md');
    }
    this.#polling = this.#inTurns(async (part, end) => (part === 'send' ? this.#poll(end) : untilAborted(end)));
    this.#running = this.#run();
    this.#beside = Promise.all([this.#report(), this.#repairClockJumps()]);
  }

  /** Gives this process another part. It records the response of a send in progress before it gives up the account. */
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
    const { gateway, settings, audience, control } = this.#options;
    const { pollMinMs, pollMaxMs, pollRate } = settings;
    const context = { ...this.#jobWorkerContext, audience, ledger: this.#polledLedger, gateway };
    if (!(await this.#isOurs(end))) return;
    const statusJobs = new StatusJobs({ ...context, receipts: control?.receipts, pollMinMs, pollMaxMs, pollRate });
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
    const { clock, audience } = this.#options;
    while (!isAborted(end)) {
      const bound = await this.ledger.readAudience().catch(() => 'not known yet');
      if (bound === undefined || bound === audience) return true;
      await clock.sleep(ASK_AGAIN_MS, end);
    }
    return false;
  }

  async #report(): Promise<void> {
    const { clock, control } = this.#options;
    const { connection } = this.ledger;
    const name = `${hostname()}:${process.pid}`;
    const startedAt = clock.wallNow();
    const describe = (): ReturnType<typeof describeWorker> | undefined => {
      const { status, work, journalHead } = this;
      // With hundreds of accounts, reports of idle processes would be most of the load.
      if (this.part === 'rest' && status.role === 'standby') return undefined;
      return describeWorker({ status, work, opensAt: this.#sending?.opensAt, startedAt, journalHead, clock });
    };
    await Promise.all([
      publishWorker(this.#account, name, describe, this.#over.signal),
      control?.report(connection, name, this.#over.signal),
    ]);
  }

  async #repairClockJumps(): Promise<void> {
    const { redisClocks, settings } = this.#options;
    const options = {
      longestPollDelayMs: longestPollDelayMs(settings.pollMaxMs),
      readRedisClock: () => redisClocks.readingOf(this.ledger.connection.keys.ledger),
      isSender: () => this.#sending?.status.role === 'sender',
    };
    await repairClockJumps(this.#account, options, this.#over.signal);
  }

  get #jobWorkerContext(): JobWorkerContext {
    const { connections, clock, work, logger, telemetry } = this.#options;
    const { connection } = this.ledger;
    return {
      redis: connections.queue,
      prefix: connection.keys.prefix,
      connection,
      queues: this.#account.queues,
      clock,
      observer: work.observer,
      logger,
      ...(telemetry && { telemetry }),
    };
  }

  async #run(): Promise<void> {
    const onTrouble = (message: string): void => {
      this.#journalTrouble = message;
    };
    const journal = await openJournalPatiently({ ...this.#options, onTrouble }, this.#stop.signal);
    this.#journalTrouble = undefined;
    if (journal === undefined) return;
    const { platformId, connections, confirmations, clock } = this.#options;
    const connection = connectLedger(connections.sender, platformId, clock);
    const sending = (this.#sending = new AccountSending({
      ...{ ...this.#options, ledger: this.ledger, relay: this.#account.relay, journal },
      senderLedger: new RedisSenderLedger(connection, confirmations.sender),
      watchedLedger: new WatchedLedger(connection, confirmations.sender),
      jobs: this.#jobWorkerContext,
    }));
    const standingBy = sending.standBy(this.#stop.signal);
    await this.#inTurns(async (part, end) => (part === 'rest' ? sending.rest(end) : sending.run(part, end)));
    await standingBy;
    await sending.close();
  }

  /**
   * Starts no new send, records the response of the send in progress, releases the lease and ends. Safe to call twice,
   * and before start.
   */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#polling;
    await this.#running;
    this.#over.abort();
    await this.#beside;
    await this.#account.close();
    this.#options.gateway.close();
    this.#isStopped = true;
  }
}

interface OpenJournalOptions {
  readonly openJournal: () => Promise<SendJournal>;
  readonly onTrouble: (message: string) => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

const OPEN_AGAIN_MS = 3_000;

/** Reading weeks of sends takes seconds. A hanging disk never answers. */
const OPEN_WITHIN_MS = 30_000;

/**
 * Retries until it succeeds, so one broken journal blocks no other account.
 * @returns undefined if the signal was aborted first
 */
async function openJournalPatiently(
  { openJournal, onTrouble, clock, logger }: OpenJournalOptions,
  stop: AbortSignal,
): Promise<SendJournal | undefined> {
  let trouble: string | undefined;
  const note = (message: string): void => {
    if (message !== trouble) logger.error({ error: message }, 'nothing is sent without the send journal');
    onTrouble((trouble = message));
  };
  while (!isAborted(stop)) {
    // One at a time: each hanging call holds one of the process's few threads.
    const opening = openJournal().catch((error: unknown) => error as Error);
    let opened = await untilOpened(opening, { clock, stop });
    while (opened === undefined && !isAborted(stop)) {
      note(
        `The send journal could not be opened within ${OPEN_WITHIN_MS / 1_000} s: its disk does not answer, or is slow.`,
      );
      opened = await untilOpened(opening, { clock, stop });
    }
    if (opened === undefined) return undefined;
    if (!(opened instanceof Error)) return opened;
    note(opened.message);
    await clock.sleep(OPEN_AGAIN_MS, stop);
  }
  return undefined;
}

async function untilOpened<Opened>(
  opening: Promise<Opened>,
  { clock, stop }: { readonly clock: Clock; readonly stop: AbortSignal },
): Promise<Opened | undefined> {
  const turn = followSignals(stop);
  try {
    return await Promise.race([opening, clock.sleep(OPEN_WITHIN_MS, turn.signal).then(() => undefined)]);
  } finally {
    turn.end();
  }
}

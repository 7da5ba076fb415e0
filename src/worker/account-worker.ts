import { randomBytes, randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Telemetry } from 'bullmq';
import { GUARD_MS, type AccountSettings } from '../account-settings.js';
import type { Clock } from '../clock.js';
import { ReceiptSigner } from '../control/receipt-signer.js';
import type { SigningKey } from '../control/signing-key-file.js';
import type { GatewayClient } from '../gateway/gateway-client.js';
import type { SendJournal } from '../journal/send-journal.js';
import type { Confirmation } from '../ledger/confirm-write.js';
import { connectLedger } from '../ledger/ledger-connection.js';
import { PayoutLedger } from '../ledger/payout-ledger.js';
import { RedisSenderLedger } from '../ledger/redis-sender-ledger.js';
import type { JournalHead } from '../ledger/sender-ledger.js';
import { tellJournalHead, type ToldHead } from '../ledger/tell-of-control.js';
import type { Logger } from '../logger.js';
import { openAccount, type AccountAccess } from '../queues/open-account.js';
import type { PayoutQueues } from '../queues/payout-queues.js';
import type { RedisClient } from '../redis.js';
import { doActiveWork } from './active-work.js';
import { keptIntervalMs, Pacer } from './sender/pacer.js';
import type { RecentWork } from './monitoring/recent-work.js';
import type { RedisClocks } from './redis-clocks.js';
import type { RedisJudgement } from './redis-watch.js';
import { repairClockJumps } from './repair-clock-jump.js';
import { SenderLoop } from './sender/sender-loop.js';
import type { JobWorkerContext } from './job-worker.js';
import type { CurrentKeyring } from './current-keyring.js';
import type { CurrentPolicy } from './current-policy.js';
import type { AccountStatus } from './account-status.js';
import { describeWorker } from './describe-worker.js';
import { reportAccount } from './report-account.js';
import { SignedAuthority } from './signed-authority.js';
import { openJournalPatiently } from './open-journal-patiently.js';
import { openAccountPolicy } from './policy/open-account-policy.js';
import { longestPollDelayMs, StatusJobs } from './status-jobs.js';
import { JournalHeadTeller } from './tell-journal-head.js';

/** Connections that the accounts of a process share. */
export interface WorkerConnections {
  readonly commands: RedisClient;
  readonly sender: RedisClient;
  readonly queue: RedisClient;
}

/** How writes on these connections are known to be kept. */
export interface WorkerConfirmations {
  readonly commands: Confirmation;
  readonly sender: Confirmation;
}

export interface AccountWorkerOptions {
  readonly platformId: number;
  readonly settings: AccountSettings;
  readonly connections: WorkerConnections;
  readonly confirmations: WorkerConfirmations;
  readonly judgement: RedisJudgement;
  readonly redisClocks: Pick<RedisClocks, 'readingOf'>;
  readonly gateway: GatewayClient;
  /** Opens the account's journal. @throws Error when it cannot be read or written */
  readonly openJournal: () => Promise<SendJournal>;
  /** The folder of the journal, for operators. */
  readonly journalDir: string;
  /** For how many days its files are kept. */
  readonly journalDays: number;
  /** Whose signatures count; undefined where the ledger alone decides what is sent. */
  readonly keyring?: CurrentKeyring | undefined;
  /** What may leave the account; undefined where everything may. */
  readonly policy?: CurrentPolicy | undefined;
  /** Signs final states; undefined where they are not signed. */
  readonly receiptKey?: SigningKey | undefined;
  readonly clock: Clock;
  /** Its observer measures the account's work. */
  readonly work: RecentWork;
  readonly logger: Logger;
  readonly telemetry?: Telemetry;
}

const DAY_MS = 24 * 60 * 60 * 1_000;

/** 48 bits: they have to differ among the attempts of one payout. */
const TOKEN_BYTES = 6;

/** One account's worker: stands by until it has the lease, then sends; polls transactions all the while. */
export class AccountWorker {
  readonly platformId: number;
  readonly #options: AccountWorkerOptions;
  readonly #account: AccountAccess;
  /** For status responses of the gateway, which can be fetched again: their writes need not be confirmed. */
  readonly #polledLedger: PayoutLedger;
  readonly #senderLedger: RedisSenderLedger;
  readonly #stop = new AbortController();
  #loop: SenderLoop | undefined;
  #pacer: Pacer | undefined;
  /** Why the journal could not be opened. */
  #journalTrouble: string | undefined;
  #isStopped = false;
  #running: Promise<void> | undefined;
  /** What runs beside the sender in every process of the account, until the end. */
  #beside: Promise<unknown> | undefined;
  /** Aborted when the send in progress is over too. */
  readonly #over = new AbortController();
  #statusJobs: StatusJobs | undefined;
  #heads: JournalHeadTeller | undefined;

  constructor(options: AccountWorkerOptions) {
    const { platformId, connections, clock, logger, telemetry } = options;
    this.platformId = platformId;
    this.#options = options;
    const { confirmations } = options;
    this.#account = openAccount({
      ...{ platformId, clock, logger, connection: connections.commands, confirmation: confirmations.commands },
      firstPollAfterMs: options.settings.pollMinMs,
      ...(telemetry && { telemetry }),
    });
    this.#polledLedger = new PayoutLedger(this.ledger.connection);
    this.#senderLedger = new RedisSenderLedger(
      connectLedger(connections.sender, platformId, clock),
      confirmations.sender,
    );
  }

  get ledger(): PayoutLedger {
    return this.#account.ledger;
  }

  get queues(): PayoutQueues {
    return this.#account.queues;
  }

  /** What the last sends and polls came to. */
  get work(): RecentWork {
    return this.#options.work;
  }

  get status(): AccountStatus {
    if (this.#isStopped) return { role: 'stopped' };
    if (this.#journalTrouble !== undefined) return { role: 'refused', reason: this.#journalTrouble };
    const status = this.#loop?.status ?? { role: 'standby' };
    const reason = this.#options.judgement.refusal(this.ledger.connection.keys.ledger);
    if (reason === undefined || status.role === 'refused') return status;
    return { role: 'refused', reason, cause: 'redis', ...(status.role === 'sender' && { epoch: status.epoch }) };
  }

  /** What this process found out about Redis: the same for all its accounts. */
  get redis(): Pick<RedisJudgement, 'mayForget' | 'missingReplicas'> {
    return this.#options.judgement;
  }

  /** Whose signatures count, the same for all its accounts; undefined where the ledger alone decides what is sent. */
  get keyring(): Pick<CurrentKeyring, 'keys' | 'reloadTrouble'> | undefined {
    return this.#options.keyring;
  }

  /** What may leave the account; undefined where everything may. */
  get policy(): Pick<CurrentPolicy, 'reloadTrouble' | 'hash'> | undefined {
    return this.#options.policy;
  }

  /** Where the send journal ended when this process told it last; undefined while it does not send. */
  get journalHead(): ToldHead | undefined {
    return this.#heads?.told;
  }

  /** Begins to stand by, send and poll. Safe to call twice. */
  start(): void {
    if (this.#running !== undefined) return;
    const { gateway, settings, platformId, keyring, clock, receiptKey: key } = this.#options;
    const { pollMinMs, pollMaxMs, pollRate } = settings;
    const context = { ...this.#jobWorkerContext, ledger: this.#polledLedger, gateway };
    const receipts = key && new ReceiptSigner({ key, platformId, keyring, clock });
    this.#statusJobs = new StatusJobs({ ...context, receipts, pollMinMs, pollMaxMs, pollRate });
    this.#running = this.#run();
    this.#beside = Promise.all([this.#report(), this.#repairClockJumps()]);
  }

  async #report(): Promise<void> {
    const { clock, policy, logger } = this.#options;
    const startedAt = clock.wallNow();
    const describe = (): ReturnType<typeof describeWorker> => {
      const { status, work, journalHead } = this;
      return describeWorker({ status, work, opensAt: this.#pacer?.openAt, startedAt, journalHead, clock });
    };
    await reportAccount({ connection: this.ledger.connection, policy, describe, clock, logger }, this.#over.signal);
  }

  async #repairClockJumps(): Promise<void> {
    const { clock, redisClocks, settings, logger } = this.#options;
    const { queues, ledger } = this;
    const options = {
      ...{ clock, queues, logger, longestPollDelayMs: longestPollDelayMs(settings.pollMaxMs) },
      readRedisClock: () => redisClocks.readingOf(ledger.connection.keys.ledger),
      isSender: () => this.#loop?.status.role === 'sender',
    };
    await repairClockJumps(options, this.#over.signal);
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
    if (journal !== undefined) await this.#sendWith(journal);
  }

  async #sendWith(journal: SendJournal): Promise<void> {
    const { platformId, clock, gateway, judgement, keyring, logger, journalDir, journalDays } = this.#options;
    const { observer } = this.#options.work;
    const { minWithdrawGapMs } = gateway.capabilities;
    const intervalMs = keptIntervalMs(this.#options.settings.intervalMs, minWithdrawGapMs);
    const settings = { ...this.#options.settings, intervalMs };
    const pacer = (this.#pacer = new Pacer({ clock, intervalMs, inFlightMaxMs: settings.inFlightMaxMs }));
    const doubtMs = GUARD_MS + settings.inFlightMaxMs;
    const signatures = keyring && new SignedAuthority({ platformId, keyring, journal, clock, doubtMs });
    const { ledger } = this;
    const policy = openAccountPolicy({
      ...{ ...this.#options, current: this.#options.policy, senderLedger: this.#senderLedger },
      ...{ ledger, relay: this.#account.relay, journal, signatures, doubtMs },
    });
    const authority = policy?.authority ?? signatures;
    const tell = async (head: JournalHead): Promise<void> => tellJournalHead(ledger.connection, head);
    const heads = (this.#heads = new JournalHeadTeller({ journal, tell, clock, logger }));
    this.#loop = new SenderLoop({
      clock,
      ledger: this.#senderLedger,
      relayOutbox: async (changedBefore, signal) =>
        this.#senderLedger.isOutboxEmpty ? 0 : this.#account.relay.relayOutbox(changedBefore, signal),
      journal,
      journalPlace: { host: hostname(), dir: journalDir },
      journalKeptMs: journalDays * DAY_MS,
      gateway,
      pacer,
      settings,
      guardMs: GUARD_MS,
      hindrance: () => judgement.hindrance(this.ledger.connection.keys.ledger),
      makeOwner: () => `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`,
      makeToken: () => randomBytes(TOKEN_BYTES).toString('base64url'),
      stop: this.#stop.signal,
      work: async (active, end) => {
        await policy?.takeOver(end);
        const telling = heads.keep(end);
        await doActiveWork(
          {
            ...this.#jobWorkerContext,
            ledger: this.ledger,
            relay: this.#account.relay,
            retentionDays: settings.retentionDays,
            gateway,
            balanceEveryMs: settings.balanceEveryMs,
            currenciesEveryMs: settings.currenciesEveryMs,
            policy,
            pauseOnUnexplainedDrop: settings.pauseOnUnexplainedDrop,
          },
          active,
          end,
        );
        await telling;
      },
      ...(authority && { authority }),
      ...(signatures && { resumeAuthority: signatures }),
      observer,
      logger,
    });
    const standingBy = policy?.standBy(this.#stop.signal);
    await this.#loop.run();
    await standingBy;
    await journal.close();
    await heads.tellLast();
  }

  /**
   * Begins no new send, waits for the response of the one in progress and its recording, releases the lease, and ends.
   * Safe to call twice, and before start.
   */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#statusJobs?.close();
    await this.#running;
    this.#over.abort();
    await this.#beside;
    await this.#account.close();
    this.#options.gateway.close();
    this.#isStopped = true;
  }
}
